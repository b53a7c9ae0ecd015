"""Say what a release of PLAN will do, before anything is spent."""

from __future__ import annotations

from pathlib import Path

import click

from congenial.cli.answer import Answer, Command, in_decimals, with_options
from congenial.cli.arguments import COUNTS, PLAN, TOTAL
from congenial.cli.loading import compile_once, load, progress
from congenial.durability.signals import uninterrupted


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
        compile_once(method, crossing=read.crossing, quiet=False)
    with uninterrupted():
        from congenial.accounting.amounts import amount_of
        from congenial.preview.explanation import as_text, explain
        from congenial.releases.certificate import plain_plan
    with progress() as notify:
        found = explain(read, plan.parent, total=total, counts=counts, notify=notify)
    guarantee = found.guarantee
    debit = None
    if read.privacy.ledger is not None:
        debit = in_decimals(amount_of(guarantee.epsilon, guarantee.delta))
    result = {
        "plan": plain_plan(read),
        "nodes": found.nodes,
        "levels": found.forecasts,
        "sizes": found.sizes,
        "default_method": found.default or None,
        "basis": with_options(found.basis),
        "will_not_run": found.will_not_run,
        "route": found.route,
        "guarantee": found.claim,
        "sentence": guarantee.sentence,
        "worst_neighbours": found.claim.worst_neighbours,
        "unused_levels": found.unused,
        "found_split": found.found,
        "debit": debit,
        "remaining": None if found.remaining is None else in_decimals(found.remaining),
        "ledger_fault": found.ledger_fault,
        "accuracy": found.accuracy,
        "intervals": found.intervals,
        "source_missing": found.missing,
        "nested_sums": found.nested,
        "odd_names": found.odd,
    }
    return Answer(result, with_options(as_text(found)))
