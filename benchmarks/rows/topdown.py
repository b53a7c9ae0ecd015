"""TopDown with the root exact and every count at least 0, beside one solver call a parent.

Noise is Gaussian of scale 3 on Poisson(3) leaves. PIQP solves the quadratic programme of every
parent. With integers, HiGHS then finds the rounding of least change, as the Census Bureau's
algorithm does. Our time includes our random words. On the larger tree, a time is divided by the
time in which numpy copies the vector once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

import congenial as cg
from benchmarks import worlds
from benchmarks.record import Case, Measure, Seen
from benchmarks.timing import faster, ratio, repeated, rounds
from congenial.imaging.solvers.descent import Descent
from congenial.invariants.written import resolve_invariant
from congenial.types import FloatArray

SCALE = 3.0
REAL = "real, PIQP's time over ours"
WHOLE = "integers, PIQP's and HiGHS's time over ours"
TIME = "integers, setting up included"
COPIES = {False: "without rounding", True: "integers"}
AGAIN = 20


def cases(quick: bool) -> tuple[Case, ...]:
    """Return a case beside solvers and one beside reading and writing."""
    beside = (
        Measure(REAL, "×", 500.0, "higher"),
        Measure(WHOLE, "×", 500.0, "higher"),
        Measure(TIME, "s", 0.1),
    )
    copied = (
        Measure(COPIES[False], "× a copy", 15.0),
        Measure(COPIES[True], "× a copy", 100.0),
    )
    return (
        Case("topdown", "1-50-3,000-80,000", beside, 120.0, partial(_solvers, quick)),
        Case("topdown", "1-50-2,000-50,000-1,000,000", copied, 60.0, partial(_copies, quick)),
    )


def _noisy(tree: cg.Tree) -> FloatArray:
    x = worlds.poisson(tree)
    y = x + np.random.default_rng(worlds.SEED).normal(0.0, SCALE, len(tree))
    y[0] = x[0]
    return y


def _descents(tree: cg.Tree) -> dict[bool, Descent]:
    resolved = resolve_invariant(cg.exactly([0]) & cg.nonnegative(), len(tree), tree)
    return {integer: Descent(tree, resolved, integer) for integer in (False, True)}


def _solvers(quick: bool) -> Iterator[Seen]:
    from benchmarks.peers import families

    tree = worlds.uneven(*((3, 9, 40) if quick else (50, 3_000, 80_000)))
    y, source = _noisy(tree), cg.secure()
    ours = _descents(tree)
    imposed = cg.exactly([0]) & cg.nonnegative()
    apart = np.abs(ours[False].apply(y, source) - families.topdown(tree, y, integer=False)).max()
    steps = {
        "real": repeated(partial(ours[False].apply, y, source), AGAIN),
        "piqp": lambda: families.topdown(tree, y, integer=False),
        "whole": repeated(partial(ours[True].apply, y, source), AGAIN),
        "once": lambda: cg.topdown(y, tree, imposed),
    }
    times = rounds(steps, repeats=7, budget=20.0)
    yield faster(REAL, times["real"] / AGAIN, times["piqp"], f"PIQP {apart:.0e} from ours")
    rounded = rounds(
        {
            "whole": steps["whole"],
            "highs": lambda: families.topdown(tree, y, integer=True),
        },
        repeats=2,
        budget=40.0,
    )
    yield faster(WHOLE, rounded["whole"] / AGAIN, rounded["highs"])
    taken = times["once"]
    yield Seen(TIME, float(np.median(taken)), float(taken.min()), float(taken.max()))


def _copies(quick: bool) -> Iterator[Seen]:
    tree = worlds.grown((3, 2, 2, 2) if quick else (50, 40, 25, 20))
    y, source = _noisy(tree), cg.secure()
    ours = _descents(tree)
    for integer, descent in ours.items():
        descent.apply(y, source)
        steps: dict[str, Callable[[], object]] = {
            "ours": partial(descent.apply, y, source),
            "copy": repeated(y.copy, AGAIN),
        }
        times = rounds(steps, repeats=11, budget=15.0)
        yield ratio(COPIES[integer], times["ours"], times["copy"] / AGAIN)
