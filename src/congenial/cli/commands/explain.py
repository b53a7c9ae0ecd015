"""Say what a release of PLAN will do, before anything is spent."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from congenial.cli.answer import Answer, Command, in_decimals
from congenial.cli.arguments import PLAN
from congenial.cli.loading import compile_once
from congenial.signals import held

if TYPE_CHECKING:
    from congenial.preview.explanation import LevelForecast
    from congenial.releases.accuracy import LevelAccuracy
    from congenial.releases.specification import Claim, WorstNeighbours


@dataclass(frozen=True)
class Result:
    """The explanation of a plan; `guarantee` and `worst_neighbours` as in a certificate."""

    plan: dict[str, Any]
    nodes: int
    levels: tuple[LevelForecast, ...]
    basis: str
    route: str
    guarantee: Claim
    sentence: str
    worst_neighbours: WorstNeighbours
    unused_levels: tuple[str, ...]
    found_split: dict[str, float] | None
    debit: dict[str, str] | None
    remaining: dict[str, str] | None
    ledger_fault: str
    accuracy: tuple[LevelAccuracy, ...]
    intervals: str
    source_missing: bool
    nested_sums: tuple[str, ...]
    odd_names: tuple[str, ...]


@click.command("explain", cls=Command)
@PLAN
def command(plan: Path) -> Answer:
    """Say what a release of PLAN, a TOML file, will do, before anything is spent.

    How much noise each level has, which errors to expect, what is protected and what is not. Rows
    are not opened, unless the plan takes the names of its nodes from them.
    """
    with held():
        from congenial.data.public_domain import find_files
        from congenial.plan.plan import read_plan
    read = read_plan(plan)
    find_files(read, plan.parent, rows=False)
    compile_once(read.method.name, quiet=False)
    with held():
        from congenial.accounting.amounts import amount_of
        from congenial.preview.explanation import as_text, explain
        from congenial.releases.certificate import plain_plan
    found = explain(read, plan.parent)
    guarantee = found.guarantee
    debit = None
    if read.privacy.ledger is not None:
        debit = in_decimals(amount_of(guarantee.epsilon, guarantee.delta))
    result = Result(
        plain_plan(read),
        found.nodes,
        found.forecasts,
        found.basis,
        found.route,
        found.claim,
        guarantee.sentence,
        found.claim.worst_neighbours,
        found.unused,
        found.found,
        debit,
        None if found.remaining is None else in_decimals(found.remaining),
        found.ledger_fault,
        found.accuracy,
        found.intervals,
        found.missing,
        found.nested,
        found.odd,
    )
    return Answer(result, as_text(found))
