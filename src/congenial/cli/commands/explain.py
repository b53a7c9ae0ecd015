"""Say what a release of PLAN will do, before anything is spent."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from congenial.cli.answer import Answer, Command, in_decimals, with_options
from congenial.cli.arguments import COUNTS, PLAN, TOTAL
from congenial.cli.loading import compile_once, load
from congenial.durability.signals import uninterrupted

if TYPE_CHECKING:
    from congenial.preview.explanation import LevelForecast, SizeForecast
    from congenial.releases.accuracy import LevelAccuracy
    from congenial.releases.specification import Claim, WorstNeighbours


@dataclass(frozen=True)
class Result:
    """The explanation of a plan; `guarantee` and `worst_neighbours` as in a certificate."""

    plan: dict[str, Any]
    nodes: int
    levels: tuple[LevelForecast, ...]
    sizes: tuple[SizeForecast, ...]
    default_method: str | None
    basis: str
    will_not_run: str
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
@TOTAL
@COUNTS
def command(plan: Path, total: int | None, counts: Path | None) -> Answer:
    """Say what a release of PLAN, a TOML file, will do, before anything is spent.

    It says how much noise each level has, which errors to expect, and what is protected. Errors are
    those of simulated releases of made-up or public counts. The rows are read only if the plan
    takes the names of its nodes from them.
    """
    with uninterrupted():
        from congenial.plan.sections import best_method
    read = load(plan, rows=False)
    for method in dict.fromkeys(
        (read.method.name, best_method(bounded=read.invariants.bounded).name)
    ):
        compile_once(method, quiet=False)
    with uninterrupted():
        from congenial.accounting.amounts import amount_of
        from congenial.preview.explanation import as_text, explain
        from congenial.releases.certificate import plain_plan
    found = explain(read, plan.parent, total=total, counts=counts)
    guarantee = found.guarantee
    debit = None
    if read.privacy.ledger is not None:
        debit = in_decimals(amount_of(guarantee.epsilon, guarantee.delta))
    result = Result(
        plain_plan(read),
        found.nodes,
        found.forecasts,
        found.sizes,
        found.default or None,
        with_options(found.basis),
        found.will_not_run,
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
    return Answer(result, with_options(as_text(found)))
