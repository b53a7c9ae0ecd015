"""An order to write a release, and the release once it is written."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from congenial.accounting.guarantee import Guarantee
from congenial.domain.workers import HERE, Workers
from congenial.ledger.records import Debit
from congenial.randomness import Randomness
from congenial.releases.certificate import Certificate
from congenial.releases.model import Model
from congenial.releases.specification import Simulation


@dataclass(frozen=True, eq=False)
class Order:
    """An order to write a release."""

    place: Path  # Directory for its files.
    base: Path  # Directory from which the plan's relative paths start.
    frame: object | None = field(repr=False)  # Rows to count instead of the plan's source.
    randomness: Randomness
    simulation: Simulation | None
    with_truth: bool  # Whether the confidential counts are written, too; in simulations only.
    # Debits the release; called once all is known that can be refused before any noise is drawn.
    reserve: Callable[[Model, Guarantee], Debit | None]
    notify: Callable[[str], None]  # Called with the name of each step as it begins.
    workers: Workers = HERE  # They move the measurements of parts.


@dataclass(frozen=True, eq=False)
class Written:
    """A release whose files are written."""

    certificate: Certificate
    debit: Debit | None
    nodes: int  # Number of released counts.
    odd_names: tuple[str, ...]  # Sentences about names that could be taken for others.
