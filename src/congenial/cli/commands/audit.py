"""Test the guarantee of PLAN on made-up counts."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from congenial.cli.answer import DONE, FAILED, Answer, Command, plain
from congenial.cli.arguments import PLAN, WholeNumber
from congenial.cli.loading import compile_once, load, progress
from congenial.durability.signals import uninterrupted

if TYPE_CHECKING:
    from congenial.auditing.finding import Finding


@click.command("audit", cls=Command)
@PLAN
@click.option(
    "--draws",
    type=WholeNumber(min=100),
    help="Number of simulated draws for each made-up dataset; by default 50,000, or 6,000 with "
    "imaging, topdown and the posterior, and fewer if a release has more than a few hundred "
    "counts.",
)
@click.option(
    "--confidence",
    type=click.FloatRange(min=0.5, max=1.0, max_open=True),
    default=0.999,
    show_default=True,
    help="If the guarantee is true, draws refute it by mistake with a probability of at most "
    "1 minus this number.",
)
@click.option(
    "--seed",
    type=WholeNumber(min=0),
    default=0,
    show_default=True,
    help="Seed of the draws, which are simulations.",
)
def command(plan: Path, draws: int | None, confidence: float, seed: int) -> Answer:
    """Test the guarantee of PLAN on made-up counts.

    The audit enumerates all releases of a few counts with their probabilities, computes privacy
    losses, and simulates draws. A failed check shows a fault. Passed checks prove the guarantee
    only for the enumerated and computed datasets. No row is counted and nothing is spent.
    """
    read = load(plan, rows=False)
    compile_once(read.method.name, quiet=False)
    with uninterrupted():
        from congenial.preview.plan_audit import as_text, audit_plan
        from congenial.releases.specification import claim_of
    with progress() as notify:
        found = audit_plan(
            read, plan.parent, draws=draws, confidence=confidence, seed=seed, notify=notify
        )
    result = {
        "passed": found.passed,
        "guarantee": claim_of(found.model, found.guarantee),
        "sentence": found.guarantee.sentence,
        "confidence": found.drawn.confidence,
        "seed": found.seed,
        "enumerated": None if found.exact is None else _plain(found.exact.findings),
        "drawn": _plain(found.drawn.findings),
    }
    return Answer(result, as_text(found), DONE if found.passed else FAILED)


def _plain(findings: tuple[Finding, ...]) -> list[dict[str, object]]:
    return [plain(finding, without="worst") for finding in findings]
