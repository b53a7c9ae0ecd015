"""The closest point in L2 with leaves at least 0 and the root exact, beside general solvers.

Counts are Poisson(3) leaves (the taxi trips on 270 nodes) with Gaussian noise of scale 3 at every
node. "Again" is the time for another vector after the setup: for us with a kept projector, for PIQP
its update and solve. "At once" includes the setup on both sides: `project` with its invariant, and
PIQP with given matrices. In L1, all of `project` is timed. OSQP and Clarabel are timed with their
setup. The residual is that of the certificate of optimality, relative to the largest number; the
certificate uses our values alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

import congenial as cg
from benchmarks import worlds
from benchmarks.record import Case, Measure, Seen
from benchmarks.timing import faster, repeated, rounds
from congenial.imaging.closest import Projector
from congenial.imaging.solvers.problem import link, prepare, residual
from congenial.invariants.written import Invariant, resolve_invariant
from congenial.kernels.projection.forest import Costs
from congenial.types import FloatArray

SCALE = 3.0
TARGET = 50.0
RESIDUAL = "residual of ours"
AGAIN = "again, PIQP's time over ours"
ONCE = "at once, PIQP's time over ours"
L1 = "in L1, at once"
OTHERS = {"osqp": "OSQP's time over ours, again", "clarabel": "Clarabel's time over ours, again"}
# OSQP takes minutes on larger trees.
_MOST_OSQP = 150_000


def cases(quick: bool) -> tuple[Case, ...]:
    """Return a case a size."""
    sizes = (0, 1_000) if quick else (0, 10_000, 100_000, 1_000_000)
    found = []
    for leaves in sizes:
        name = f"{leaves:,} leaves" if leaves else "270 nodes"
        measures = [
            Measure(RESIDUAL, "of the largest number", 1e-9),
            Measure(AGAIN, "×", TARGET, "higher"),
            Measure(ONCE, "×"),
            Measure(L1, "ns/node"),
            *(Measure(OTHERS[peer], "×") for peer in _peers(leaves)),
        ]
        found.append(Case("imaging", name, tuple(measures), 150.0, partial(_run, leaves, quick)))
    return tuple(found)


def _peers(leaves: int) -> tuple[str, ...]:
    return ("osqp", "clarabel") if leaves <= _MOST_OSQP else ("clarabel",)


def noisy(leaves: int) -> tuple[cg.Tree, FloatArray, Invariant]:
    """Return a tree of so many leaves, the taxi tree for 0, noisy counts and the invariant."""
    if leaves:
        tree = worlds.grown((max(2, leaves // 500), 25, 20))
        x = worlds.poisson(tree)
    else:
        tree, x = worlds.taxi()
    y = x + np.random.default_rng(worlds.SEED).normal(0.0, SCALE, len(tree))
    y[0] = x[0]
    return tree, y, cg.consistent(tree) & cg.exactly([0]) & cg.nonnegative()


def _run(leaves: int, quick: bool) -> Iterator[Seen]:
    from benchmarks.peers import quadratic

    tree, y, invariant = noisy(leaves)
    n = len(tree)
    resolved = resolve_invariant(invariant, n, tree)
    projector = Projector(resolved, np.ones(n), "l2", integer=False)
    z = np.asarray(projector.apply(y), dtype=np.float64)
    task = prepare(link(tree, n), resolved, np.zeros(0), y, np.ones(n), integer=False)
    costs = Costs(task.y, task.y, np.zeros(n), task.weight)
    yield Seen(RESIDUAL, residual(task, z - task.center, costs, quadratic=True))
    given = quadratic.problem(tree, y)
    once, again = quadratic.piqp(given)
    apart = float(np.abs(once() - z).max())
    calls = 1 if quick else max(1, 200_000 // n)  # short times are taken many at once
    few = max(1, calls // 50)
    steps = {
        "ours again": repeated(partial(projector.apply, y), calls),
        "piqp again": repeated(again, few),
        "ours": repeated(partial(cg.project, y, invariant), few),
        "piqp": repeated(once, few),
    }
    times = rounds(steps, repeats=7, budget=60.0)
    ours = times["ours again"] / calls
    note = f"PIQP {apart:.0e} from ours"
    yield faster(AGAIN, ours, times["piqp again"] / few, note)
    yield faster(ONCE, times["ours"] / few, times["piqp"] / few)
    l1 = {"l1": repeated(partial(cg.project, y, invariant, norm="l1"), few)}
    taken = 1e9 * rounds(l1, repeats=5, budget=20.0)["l1"] / few / n
    yield Seen(L1, float(np.median(taken)), float(taken.min()), float(taken.max()))
    for name in _peers(leaves):
        other = getattr(quadratic, name)(given)
        apart = float(np.abs(other() - z).max())
        taken = rounds({name: other}, repeats=1, budget=0.0)[name]
        seen = np.full(taken.size, np.median(ours))
        yield faster(OTHERS[name], seen, taken, f"{apart:.0e} from ours")
