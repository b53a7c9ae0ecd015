"""Tables of race by age whose margins cross: TopDown and the closest point, beside PIQP.

Total, race, age and race by age are measured at five levels with Gaussian noise of scale 10; every
count is at least 0 and the total of all exact. Counts are made up, and skewed like those of census
blocks. "Fits" are the quadratic programmes of all families, given the same cells of their parents.
Both sides have set up their programmes before. With integers, the time includes the rounding and
our random words. The time of the whole release includes the setup.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

import congenial as cg
from benchmarks import worlds
from benchmarks.record import Case, Measure, Seen
from benchmarks.timing import faster, ratio, rounds
from congenial.imaging.noisy import precision
from congenial.imaging.solvers.cell_descent import CellDescent
from congenial.imaging.solvers.closest_cells import solve_cells
from congenial.imaging.solvers.sparse import solve_sparse
from congenial.invariants.written import Invariant, resolve_invariant
from congenial.types import FloatArray, IntArray

SCALE = 10.0
FITS = "fits, PIQP's time over ours"
ABOVE = "least squares above PIQP's"
CLOSEST = "closest point, PIQP's time over ours"
WHOLE = "TopDown, whole release"
LINKED = "TopDown of two compared tables, time over that of the tables alone"
LEVELS = ("state", "county", "tract", "group", "block")


def cases(quick: bool) -> tuple[Case, ...]:
    """Return a case beside PIQP, and one of the size of Rhode Island."""
    beside = (
        Measure(FITS, "×", 5.0, "higher"),
        Measure(ABOVE, "of them", 1e-6),
        Measure(CLOSEST, "×"),
    )
    shapes = ((2, 2, 2, 3), (2, 2, 2, 4)) if quick else ((3, 8, 4, 25), (5, 48, 4, 26))
    small, large = (int(np.prod(shape)) for shape in shapes)
    alone = (Measure(WHOLE, "s", 60.0),)
    linked = (Measure(LINKED, "×", 3.0),)
    return (
        Case("cells", f"{small:,} blocks", beside, 240.0, partial(_beside, shapes[0])),
        Case("cells", f"{large:,} blocks", alone, 120.0, partial(_alone, shapes[1])),
        Case("cells", f"{small:,} blocks, two tables", linked, 60.0, partial(_linked, shapes[0])),
    )


def _world(shape: tuple[int, ...]) -> tuple[cg.Workload, FloatArray, Invariant, FloatArray]:
    """The workload, weights of its measurements, the invariant, and measurements."""
    rng = np.random.default_rng(worlds.SEED)
    leaves = int(np.prod(shape))
    each = np.unravel_index(np.arange(leaves), shape)
    paths = [("s", *map(str, one)) for one in zip(*each, strict=True)]
    axes = {"race": tuple("abcdefgh"), "age": ("minor", "adult")}
    table = cg.Table(axes, geography=cg.Tree.from_paths(paths), levels=LEVELS)
    workload = cg.Workload.of(table, [(), ("race",), ("age",), ("race", "age")])
    people = rng.lognormal(2.5, 1.3, size=leaves)[:, None] * rng.dirichlet(np.full(16, 0.3), leaves)
    x = workload.answers(rng.poisson(people).reshape(table.shape))
    mechanism = cg.Additive(cg.DiscreteGaussian(SCALE), workload)
    invariant = cg.consistent(workload) & cg.nonnegative() & cg.exactly(margins=[()], level="state")
    engine = cg.imaging.topdown_image(mechanism, invariant)
    y = engine.measure(x, rng=cg.seeded(worlds.SEED)).astype(np.float64)
    return workload, precision(mechanism), invariant, y


def _beside(shape: tuple[int, ...]) -> Iterator[Seen]:
    from benchmarks.peers import cells

    workload, weight, invariant, y = _world(shape)
    resolved = resolve_invariant(invariant, len(workload), workload)
    descent = CellDescent(workload, resolved, weight, integer=False)
    geography = descent.tables[0]
    areas = descent.areas(geography, descent.bounds(geography, resolved, y), y)
    x = geography.read(np.asarray(descent.apply(y, cg.secure())))
    theirs = cells.topdown(areas, x)
    off = [areas.weight * (geography.summed(each) - areas.target) ** 2 for each in (x, theirs)]
    yield Seen(ABOVE, max(0.0, float(off[0].sum() / off[1].sum() - 1.0)))
    times = rounds(
        {
            "ours": lambda: descent.apply(y, cg.secure()),
            "piqp": lambda: cells.topdown(areas, x),
        },
        repeats=3,
        budget=60.0,
    )
    apart = float(np.abs(x - theirs).max())
    yield faster(FITS, times["ours"], times["piqp"], f"PIQP {apart:.0e} from ours")
    known = np.where(resolved.pinned, 0.0, weight)
    times = rounds(
        {
            "ours": lambda: solve_cells(CellDescent(workload, resolved, known, False), y),
            "piqp": lambda: solve_sparse(resolved, y, known / known.max()),
        },
        repeats=3,
        budget=60.0,
    )
    yield faster(CLOSEST, times["ours"], times["piqp"])


def _alone(shape: tuple[int, ...]) -> Iterator[Seen]:
    workload, weight, invariant, y = _world(shape)
    step = partial(cg.topdown, y, workload, invariant, weights=weight)
    step()
    taken = rounds({"ours": step}, repeats=3, budget=30.0)["ours"]
    yield Seen(WHOLE, float(np.median(taken)), float(taken.min()), float(taken.max()))


def _linked(shape: tuple[int, ...]) -> Iterator[Seen]:
    """People and homes; in every block at least as many people as homes in use."""
    rng = np.random.default_rng(worlds.SEED)
    leaves = int(np.prod(shape))
    each = np.unravel_index(np.arange(leaves), shape)
    areas = cg.Tree.from_paths([("s", *map(str, one)) for one in zip(*each, strict=True)])
    people = cg.Table({"race": tuple("abcd")}, geography=areas, levels=LEVELS, name="people")
    homes = cg.Table({"used": ("yes", "no")}, geography=areas, levels=LEVELS, name="homes")
    tables = (
        cg.Workload.of(people, [(), ("race",)]),
        cg.Workload.of(homes, [(), ("used",)]),
    )
    used = rng.poisson(rng.lognormal(1.5, 1.3, leaves))
    living = used + rng.poisson(used)
    by_race = rng.multinomial(living, [0.6, 0.2, 0.1, 0.1])
    by_use = np.stack([used, rng.poisson(0.1 * used)], axis=1)

    def step(workload: cg.Workload, *counts: IntArray, known: Invariant) -> Callable[[], object]:
        mechanism = cg.Additive(cg.DiscreteLaplace(SCALE), workload)
        invariant = cg.consistent(workload) & cg.nonnegative() & known
        engine = cg.imaging.topdown_image(mechanism, invariant)
        y = engine.measure(workload.answers(*counts), rng=cg.seeded(worlds.SEED))
        return partial(engine.apply, y, cg.seeded(worlds.SEED))

    pair = cg.at_least_as_many(("people", ()), ("homes", {"used": "yes"}), level="block")
    both = step(tables[0] + tables[1], by_race, by_use, known=pair)
    alone = [
        step(table, counts, known=cg.consistent(table))
        for table, counts in zip(tables, (by_race, by_use), strict=True)
    ]
    steps: dict[str, Callable[[], object]] = {
        "linked": both,
        "alone": lambda: [one() for one in alone],
    }
    times = rounds(steps, repeats=5, budget=30.0)
    yield ratio(LINKED, times["linked"], times["alone"])
