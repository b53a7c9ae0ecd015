"""TopDown in one pass beside the Census Bureau's several passes, on the same measurements."""

from __future__ import annotations

import time
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np

import congenial as cg
from congenial.exhibits.exhibit import Cell, Exhibit, Figure
from congenial.invariants.written import Invariant
from congenial.types import BoolArray, FloatArray, IntArray
from papers.studies import sources
from papers.studies.bureau_passes import Margins, descend
from papers.studies.looks import ERRORS, frame, legend_below, level_line, line
from papers.studies.study import Study, replicates

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

OURS, TWO = "one pass, ours", "two passes"
LEVELS = ("state", "county", "tract", "block group", "block")
_PLAN = Path(__file__).parents[2] / "examples" / "washington" / "plan.toml"
_RACES, _AGES = (
    ("hisp", "white", "black", "aian", "asian", "nhpi", "other", "two"),
    (
        "adult",
        "child",
    ),
)
_MARGINS = ((), ("age",), ("race",), ("race", "age"))
_TEXTS = ("total", "age", "race", "race by age")
# Least counts of the size classes of blocks and of their cells.
_SIZES = (0, 1, 10, 100)
# Standard errors beyond which a difference is named.
_BEYOND = 2.0
_FULL = 10


@dataclass(frozen=True, eq=False)
class World:
    """Counties that are released together.

    Attributes
    ----------
    name, title : str
    counties : tuple of str
        FIPS codes.
    """

    name: str
    title: str
    counties: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Found:
    """Errors of both algorithms.

    Attributes
    ----------
    names : tuple of (str, str)
        Of each group: the level, or blocks or cells of a size, and the margin.
    number : ndarray of int64, shape (groups,)
        Counts in each.
    error : dict of ndarray of float64, shape (replicates, groups)
        Mean absolute error of each algorithm.
    bias : dict of ndarray of float64, shape (replicates, groups)
        Mean error.
    seconds : dict of ndarray of float64, shape (replicates,)
    """

    names: tuple[tuple[str, str], ...]
    number: IntArray
    error: dict[str, FloatArray]
    bias: dict[str, FloatArray]
    seconds: dict[str, FloatArray]


def worlds() -> tuple[World, ...]:
    """Return the counties of the study: a small one, and one of middle size beside it."""
    return (
        World("asotin", "Asotin County", ("53003",)),
        World("two", "Asotin and Whitman Counties", ("53003", "53075")),
    )


def run(
    seed: int,
    effort: float,
    *,
    workers: int = 1,
    notify: Callable[[str], None] = lambda _: None,
) -> Study:
    """Release every world by both algorithms.

    Parameters
    ----------
    seed : int
    effort : float
        Share of the full study's replicates.
    workers : int
        Processes for the algorithm of several passes.
    notify : callable
        Told which world is at work.
    """
    found: list[tuple[World, Found]] = []
    chosen = worlds()
    seeds = cg.seeded(seed).bits(len(chosen)).tolist()
    for world, one in zip(chosen, seeds, strict=True):
        notify(world.title)
        found.append((world, released(world, replicates(_FULL, effort), one, workers)))
    return study_of(found)


def released(world: World, number: int, seed: int, workers: int = 1) -> Found:
    """Release a world's counts several times by both algorithms, from the same measurements."""
    workload, x = _counted(world.counties)
    mechanism, invariant = _measuring(workload)
    engine = cg.imaging.topdown_image(mechanism, invariant)
    margins, levels = _layout(workload)
    names, member = _groups(workload, x)
    measured = np.isfinite(mechanism.scales) & (mechanism.scales > 0.0)
    weight = np.where(measured, mechanism.scales, np.inf) ** -2.0
    weight[0] = 0.0  # the exact total of the state
    rows: dict[str, list[tuple[FloatArray, FloatArray, float]]] = {OURS: [], TWO: []}
    for one in cg.seeded(seed).bits(number).tolist():
        source = cg.seeded(one)
        y = engine.measure(x, rng=source)
        begin = time.perf_counter()
        ours = np.asarray(engine.apply(y, source))
        middle = time.perf_counter()
        cells = descend(
            margins,
            levels,
            int(x[0]),
            _by_level(workload, weight),
            _by_level(workload, np.asarray(y, dtype=np.float64)),
            workers=workers,
        )
        end = time.perf_counter()
        theirs = workload.roll_up(cells[-1].ravel())
        for name, z, taken in ((OURS, ours, middle - begin), (TWO, theirs, end - middle)):
            errors = np.array([np.abs(z - x)[at].mean() for at in member])
            rows[name].append((errors, np.array([(z - x)[at].mean() for at in member]), taken))
    return Found(
        names,
        np.array([at.sum() for at in member]),
        {name: np.array([row[0] for row in made]) for name, made in rows.items()},
        {name: np.array([row[1] for row in made]) for name, made in rows.items()},
        {name: np.array([row[2] for row in made]) for name, made in rows.items()},
    )


def _counted(counties: tuple[str, ...]) -> tuple[cg.Workload, IntArray]:
    """Return the queries, at levels from the state down, and their answers."""
    paths: list[tuple[str, ...]] = []
    parts = []
    for county in counties or (None,):
        blocks, _ = sources.blocks(county)
        tree, counts = sources.blocks(county, cells=True)
        state = () if county is None else ("53",)
        paths += [(*state, *blocks.path(int(leaf))) for leaf in blocks.leaves]
        parts.append(counts[tree.leaves])
    geography = cg.Tree.from_paths(paths)
    table = cg.Table({"race": _RACES, "age": _AGES}, geography=geography, levels=LEVELS)
    workload = cg.Workload.of(table, list(_MARGINS))
    return workload, workload.answers(np.concatenate(parts).reshape(table.shape))


def _measuring(workload: cg.Workload) -> tuple[cg.Additive, Invariant]:
    """Return the noise of the example's people, and their invariants."""
    plan = tomllib.loads(_PLAN.read_text(encoding="utf-8"))["privacy"]
    split: dict[str, dict[tuple[str, ...], float]] = {}
    for query, share in plan["split"].items():
        level, counted, margin = query.split(": ")
        if counted != "people":
            continue
        name = {"root": "state", "block_group": "block group"}.get(level, level)
        split.setdefault(name, {})[_MARGINS[_TEXTS.index(margin)]] = share
    invariant = cg.consistent(workload) & cg.nonnegative() & cg.exactly(margins=[()], level="state")
    noise = cg.calibrate(
        workload,
        invariant,
        epsilon=plan["epsilon"],
        delta=plan["delta"],
        neighbours=plan["neighbours"],
        method="imaging",
        split=split,
    )
    return cg.Additive(noise, workload), invariant


def _layout(workload: cg.Workload) -> tuple[Margins, list[IntArray]]:
    """Return the classes of the cells, and the places of all parents."""
    table = workload.tables[0]
    tree = cast(cg.Tree, table.geography)
    order = [block.margin for block in workload.blocks if block.level == 0]
    below = [
        np.searchsorted(table.nodes(level - 1), tree.parents[table.nodes(level)])
        for level in range(1, tree.depth)
    ]
    levels = [np.zeros(1, dtype=np.int64), *below]
    return Margins(tuple(table.classes(margin) for margin in order)), levels


def _by_level(workload: cg.Workload, values: FloatArray) -> list[list[FloatArray]]:
    """Return the values of all queries by level and margin, shape (areas, classes) each."""
    found: list[list[FloatArray]] = [[] for _ in LEVELS]
    for block in workload.blocks:
        found[block.level].append(values[block.ids])
    return found


def _groups(
    workload: cg.Workload, x: IntArray
) -> tuple[tuple[tuple[str, str], ...], list[BoolArray]]:
    """Return names and members: each margin of a level, and blocks and their cells by size."""
    names: list[tuple[str, str]] = []
    member: list[BoolArray] = []
    for at, block in enumerate(workload.blocks):
        here = workload.level == at
        text = " by ".join(block.margin) or "total"
        if (block.level, text) != (0, "total"):
            names.append((LEVELS[block.level], text))
            member.append(here)
        if LEVELS[block.level] != "block" or text not in {"total", "race by age"}:
            continue
        for low, high in zip(_SIZES, (*_SIZES[1:], np.inf), strict=True):
            size = f"{low}–{high - 1:.0f}" if high < np.inf else f"{low} or more"
            some = here & (x >= low) & (x < high)
            if some.any():
                counted = "cell" if block.margin else "block"
                names.append((f"{counted} of {'0' if low == 0 else size}", text))
                member.append(some)
    return tuple(names), member


def differences(found: Found) -> tuple[FloatArray, FloatArray]:
    """Return two passes' mean absolute error less ours, and the standard error over replicates."""
    differ = found.error[TWO] - found.error[OURS]
    return differ.mean(axis=0), differ.std(axis=0, ddof=1) / np.sqrt(len(differ))


def study_of(found: list[tuple[World, Found]]) -> Study:
    """Return the tables of releases."""
    findings = (
        "The Census Bureau's TopDown fits the children of an area in two passes. The first pass "
        "fits their totals. The second pass fits all other margins, and changes the totals by at "
        "most 0.01. Rounding has the same two passes. TopDown of congenial fits and rounds all "
        "margins at once. Both algorithms get the same measurements of the 2010 counts of "
        "people, by the plan `examples/washington/plan.toml`. `papers/studies/bureau_passes.py` "
        "follows Abowd et al. (2022), and lists its choices where the article says nothing. "
        "There, PIQP solves the quadratic programmes, and HiGHS the roundings.",
        "The example divides the budget of a level equally among its margins. So the noise of a "
        "total has the same scale as that of a single cell. The measured cells also say "
        "something about the totals. A pass that fixes totals first does not use this "
        "information. Larger shares of the budget for totals were not tried.",
        *(_told(world, one) for world, one in found),
        "Times are elapsed times, and differ from run to run. One pass uses several threads, and "
        "two passes use one, so the times do not compare equal resources.",
    )
    tables = [_errors(world, one) for world, one in found]
    rows: list[tuple[Cell, ...]] = []
    for world, one in found:
        ours, two = (float(np.median(one.seconds[name])) for name in (OURS, TWO))
        blocks = int(one.number[one.names.index(("block", "total"))])
        rows.append((world.title, blocks, _round(ours), _round(two), _round(two / ours)))
    columns = ("counties", "blocks", f"{OURS}, s", f"{TWO}, s", "ratio")
    tables.append(Exhibit("times", "Time of one release", columns, tuple(rows)))
    draw = partial(
        _draw,
        shown=[(world.title, table) for (world, _), table in zip(found, tables, strict=False)],
    )
    figure = Figure(
        "errors",
        "Error of two passes, divided by that of one",
        draw,
        size=(8.0, 4.2),
        note="Bars are 2 standard errors of the difference, divided by the error of one pass.",
    )
    title = "TopDown in one pass, and in the Census Bureau's two"
    return Study("bureau", title, findings, tuple(tables), (figure,))


def _draw(canvas: Canvas, shown: list[tuple[str, Exhibit]]) -> None:
    """Draw the ratio of errors of every margin, by level."""
    panels = canvas.subplots(1, len(shown), sharey=True, squeeze=False)[0]
    for panel, (title, table) in zip(panels, shown, strict=True):
        for place, margin in enumerate(_TEXTS):
            rows = [r for r in table.rows if r[1] == margin and r[0] in LEVELS[2:]]
            one, two, error = (np.array([float(str(row[k])) for row in rows]) for k in (3, 4, 6))
            panel.errorbar(
                np.arange(len(rows)) + 0.06 * (place - 0.5 * (len(_TEXTS) - 1)),
                two / one,
                yerr=ERRORS * error / one,
                capsize=2,
                label=margin,
                **line(place),
            )
        panel.set_xticks(range(len(LEVELS[2:])), LEVELS[2:])
        level_line(panel, 1.0)
        frame(panel)
        panel.set_title(title, fontsize="medium")
    panels[0].set_ylabel("error of two passes over one pass\n(above 1, one pass is better)")
    legend_below(canvas, panels[0], len(_TEXTS))


def _told(world: World, found: Found) -> str:
    """Say where either algorithm has the smaller errors."""
    differ, error = differences(found)
    smaller = [g for g in range(len(differ)) if differ[g] < -_BEYOND * error[g]]
    larger = [g for g in range(len(differ)) if differ[g] > _BEYOND * error[g]]
    text = (
        f"**{world.title}.** A group of counts is one margin at one level, or the counts of one "
        "size in a margin of the blocks. By more than two standard errors, two passes have larger "
        f"errors than one pass in {len(larger)} of {len(differ)} groups, and smaller errors in "
        f"{len(smaller)}"
    )
    if smaller:
        mean = np.maximum(found.error[OURS].mean(axis=0), 1e-12)
        each = "; ".join(
            f"{', '.join(found.names[g])} ({100 * differ[g] / mean[g]:+.1f}%, standard error "
            f"{100 * error[g] / mean[g]:.1f}%)"
            for g in smaller
        )
        text += f": {each}"
    return f"{text}."


def _errors(world: World, found: Found) -> Exhibit:
    differ, error = differences(found)
    rows: list[tuple[Cell, ...]] = []
    for g, name in enumerate(found.names):
        mean = (found.error[which].mean(axis=0)[g] for which in (OURS, TWO))
        bias = (found.bias[which].mean(axis=0)[g] for which in (OURS, TWO))
        numbers = (*mean, differ[g], error[g], *bias)
        rows.append((*name, int(found.number[g]), *(_round(float(value)) for value in numbers)))
    columns = (
        *("counts", "margin", "number", OURS, TWO, "difference", "standard error"),
        *(f"{OURS}: bias", f"{TWO}: bias"),
    )
    number = len(found.error[OURS])
    notes = (
        f"Errors are mean absolute errors of {number} releases. The difference is the error of "
        "two passes minus that of one, with its standard error over the releases. Bias is the "
        "mean of released minus true count. A cell of 1–9 is a count of one race and age in a "
        "block, from 1 to 9.",
    )
    return Exhibit(
        f"{world.name}-errors", f"Mean absolute error: {world.title}", columns, tuple(rows), notes
    )


def _round(value: float, digits: int = 3) -> float:
    """Round to significant digits, so that last bits of another processor do not show."""
    return float(f"{value:.{digits}g}")
