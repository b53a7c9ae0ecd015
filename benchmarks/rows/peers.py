"""Effective draws a second of three chains on the 270-node taxi tree, to compare with `taxi`."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from importlib import import_module

from benchmarks import worlds
from benchmarks.peers.target import judge, target
from benchmarks.record import Case, Measure, Seen
from benchmarks.rows.taxi import SCALE

PEERS = (
    ("tree_mh", "the paper's tree Metropolis–Hastings"),
    ("nuts", "NUTS (blackjax)"),
    ("hit_and_run", "hit-and-run (hopsy)"),
)
# Above this the chains have not met: their effective sample size then means little.
MIXED = 1.05
MEASURE = "effective draws, the least over the leaves"


def cases(quick: bool) -> tuple[Case, ...]:
    """Return each peer with equalities only and with every leaf at least 0."""
    measures = (Measure(MEASURE, "draws/s", None, "higher"),)
    return tuple(
        Case(
            "peers",
            f"{title}, {name}",
            measures,
            90.0,
            partial(_run, module, bounded, quick),
        )
        for name, bounded in (("equalities only", False), ("every count ≥ 0", True))
        for module, title in PEERS
    )


def _run(module: str, bounded: bool, quick: bool) -> Iterator[Seen]:
    tree, x = worlds.taxi()
    law = target(tree, x, SCALE, nonnegative=bounded)
    chains = import_module(f"benchmarks.peers.{module}").run(law, seconds=0.2 if quick else 12.0)
    least, rhat = judge(chains)
    note = chains.note + f"; R̂ up to {rhat:.2f}"
    if not rhat <= MIXED:
        note += ", so the chains have not met and the number is not to be trusted"
    yield Seen(
        MEASURE,
        least / chains.seconds,
        detail={
            "effective_draws": least,
            "seconds": chains.seconds,
            "rhat": rhat,
        },
        note=note,
    )
