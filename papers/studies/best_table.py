"""The table of least expected error beside projections, conditioning and the noise alone."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, cast

import numba
import numpy as np

from congenial.exhibits.exhibit import Cell, Exhibit, Figure
from congenial.exhibits.files import as_rows
from congenial.randomness import seeded
from congenial.types import FloatArray, IntArray
from papers.studies import sources
from papers.studies.best_table_worlds import (
    ALPHA,
    INTERVALS,
    METHODS,
    PROJECTIONS,
    RELEASED,
    TABLE,
    Found,
    World,
    released,
)
from papers.studies.looks import ERRORS, epsilon_axis, frame, level_line, line
from papers.studies.study import DIGITS, Study, replicates

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

_EPSILONS = (0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
_HOURS, _FEW_EPSILONS = (0.25, 0.5, 1.0, 2.0, 8.0), (0.5, 1.0, 2.0, 8.0)
# Threads at most: the laws of a state's blocks take some 2 GB each.
_MOST_WORKERS = 16
# Below this share of the replicates one county stands for the state, and larger tables are left
# out.
_WHOLE, _COUNTY = 0.05, "53067"
_BLOCKS = ("county", "tract", "block group", "block")
# Classes of families by their mean count, each with a known law of its own.
_CLASSES = 20
# Scales of noise that a measurement may be off where its expected error is worked out, and
# measurements at a time.
_REACH, _BATCH = 25.0, 500
# Panels of the figure beside each other.
_ACROSS = 3
# Size classes with the largest excess that the page names.
_WORST = 3
# Scale of noise from which on integers are fine enough for intervals of about their probability.
_COARSE = 2.0
Replicates = dict[float, Found]


def worlds(effort: float) -> tuple[World, ...]:
    """Return the tables of the study."""
    zones = World(
        "zones", "trips by taxi zone", ("borough", "zone"), sources.taxi, _EPSILONS, (40,) * 7
    )
    hours = World(
        "hours",
        "trips by taxi zone and hour",
        ("borough", "zone", "hour"),
        sources.taxi_hours,
        _HOURS,
        (4, 4, 4, 4, 24),
    )
    if effort < _WHOLE:
        county = partial(sources.blocks, _COUNTY)
        return zones, World("blocks", "people by census block", _BLOCKS[1:], county, (1.0,), (40,))
    p12 = World(
        "p12",
        "people by county, sex and age",
        ("state", "county", "cell"),
        sources.all_counties,
        _FEW_EPSILONS,
        (2, 2, 2, 8),
    )
    blocks = World(
        "blocks",
        "people by census block, Washington",
        _BLOCKS,
        sources.blocks,
        _FEW_EPSILONS,
        (2, 2, 2, 10),
        bounded=False,
        laws=True,
    )
    cells = World(
        "cells",
        "people by census block, race and voting age, one county",
        (*_BLOCKS[1:], "cell"),
        partial(sources.blocks, _COUNTY, cells=True),
        (0.5, 1.0, 2.0),
        (4, 4, 4),
        bounded=False,
    )
    every_cell = World(
        "state",
        "people by census block, race and voting age, Washington",
        (*_BLOCKS, "cell"),
        partial(sources.blocks, cells=True),
        (1.0,),
        (1,),
        bounded=False,
    )
    return zones, hours, p12, blocks, cells, every_cell


def run(
    seed: int,
    effort: float,
    *,
    workers: int | None = None,
    notify: Callable[[str], None] = lambda _: None,
) -> Study:
    """Release every table by every method.

    Parameters
    ----------
    seed : int
    effort : float
        Share of the full study's replicates; small ones take one county's blocks for the state's.
    workers : int, optional
        Threads, by default as many as numba uses (NUMBA_NUM_THREADS).
    notify : callable
        Told which table is at work.
    """
    if workers is None:
        workers = min(int(numba.config.NUMBA_NUM_THREADS), _MOST_WORKERS)
    found: list[tuple[World, Replicates]] = []
    chosen = worlds(effort)
    # so that a world's draws do not depend on the others
    seeds = seeded(seed).bits(len(chosen) * len(_EPSILONS)).reshape(len(chosen), -1).tolist()
    for world, own in zip(chosen, seeds, strict=True):
        made: Replicates = {}
        for epsilon, full, one in zip(world.epsilons, world.replicates, own, strict=False):
            notify(f"{world.title}, epsilon {epsilon:g}")
            count = replicates(full, effort, least=min(full, 2))
            made[epsilon] = released(world, epsilon, seeded(one).bits(count).tolist(), workers)
        found.append((world, made))
    return study_of(found)


def study_of(found: list[tuple[World, Replicates]]) -> Study:
    """Return the tables and figures of releases."""
    tables = [table for world, made in found for table in _tables(world, made)]
    known = [(world, known_laws(world, made)) for world, made in found if world.laws]
    tables += [table for _, table in known]
    by_name = {table.name: table for table in tables}
    shown = [(world, by_name[f"{world.name}-errors"]) for world, _ in found]
    draw = partial(_draw, shown=shown)
    tall = 3.2 * -(-len(shown) // _ACROSS)
    figure = Figure(
        "errors",
        "Error divided by that of the best of imaging and TopDown",
        draw,
        size=(10.0, tall),
        note="Bars are 2 standard errors. All panels have the same scale.",
    )
    findings = (
        "Every method releases every table at the same final epsilons. All methods except "
        "conditioning get the same measurements. These have discrete Laplace noise, with the "
        "same share of epsilon at each level. Neighbours differ by one substituted record. The "
        "root is published exactly, and no count may be negative. A plan with `method.name = "
        "'posterior'` releases the table of least expected error if its `method.loss` is `l1`, "
        "the default. The best projection is the best of imaging and TopDown. A method is "
        "*worse* if its error is larger by more than two standard errors. Released intervals are "
        "intervals around the measurements. Conditioning has wider noise, because bounds add to "
        "its epsilon. Some tables also have a second posterior, whose prior treats leaves as "
        "independent. With many leaves, this posterior is left out, and so is conditioning.",
        *(_told(world, made) for world, made in found),
        _overview(shown),
        *(_told_of_laws(world, table) for world, table in known),
        "The prior of the table of least expected error treats the parts of a node alike, except "
        "for their expected shares of the node. Small counts are therefore moved towards the "
        "counts beside them. Small counts then often have much smaller errors, but some sizes have "
        "larger ones. A projection with a smaller error at one level may have a larger one at "
        "another, as said above.",
        "An interval around the measurement has the stated coverage for every true count. A "
        "posterior's interval is shorter on average. It has the stated coverage on average over "
        "counts like those of its prior. In some size classes it has less coverage, because a "
        "count that differs much from the counts beside it is moved towards these counts. So "
        "releases have intervals around the measurements.",
    )
    title = "The table of least expected error, beside other methods"
    return Study("best-table", title, findings, tuple(tables), (figure,))


def excess(made: Found) -> tuple[FloatArray, FloatArray, list[str]]:
    """Compare the table of least expected error with the best projection of each group.

    Returns
    -------
    relative, error : ndarray of float64, shape (groups,)
        Paired difference as a share of the projection's error, and its standard error, as if counts
        were independent.
    best : list of str
        The projection of least mean error.
    """
    ours = made.error[TABLE]
    theirs = np.array([made.error[name] for name in PROJECTIONS])
    at = np.nan_to_num(theirs.mean(axis=1), nan=np.inf).argmin(axis=0)
    best = np.take_along_axis(theirs, at[None, None, :], axis=0)[0]
    mean = np.maximum(best.mean(axis=0), 1e-12)
    differ = (ours - best).mean(axis=0)
    squares = np.array([made.spread[name] for name in PROJECTIONS]).mean(axis=1)
    square = np.take_along_axis(squares, at[None, :], axis=0)[0]
    number = made.groups.member.sum(axis=1) * len(ours)
    error = np.sqrt(np.maximum(square - differ**2, 0.0) / np.maximum(number, 1))
    return differ / mean, error / mean, [PROJECTIONS[k] for k in at]


def _told(world: World, made: Replicates) -> str:
    """Return what one world's releases come to, in a paragraph."""
    cases, classes, above = 0, 0, list[str]()
    larger: list[tuple[float, str]] = []
    held: list[float] = []
    short: list[float] = []
    above_zero: list[float] = []
    for epsilon, found in made.items():
        relative, error, best = excess(found)
        for at, name in enumerate(found.groups.names):
            if not np.isfinite(relative[at]):
                continue
            missed = bool(relative[at] > 2.0 * error[at])
            size = _percent(relative[at], error[at])
            if name in world.level_names:
                cases += 1
                if missed:
                    text = f"by {name} at epsilon {epsilon:g}, {size}"
                    above.append(text + _traded(world, found, at, best[at]))
                continue
            classes += 1
            if missed:
                larger.append((float(relative[at]), f"{name} at epsilon {epsilon:g}, {size}"))
        mean = found.covered[RELEASED].mean(axis=0)[len(world.level_names) :]
        held += mean[np.isfinite(mean)].tolist()
        members = found.groups.member.sum(axis=1)[len(world.level_names) :]
        number = members * len(found.covered[RELEASED])
        below = (1.0 - ALPHA - mean) / np.sqrt(ALPHA * (1.0 - ALPHA) / np.maximum(number, 1))
        short += below[np.isfinite(below)].tolist()
        if min(found.scales) >= _COARSE:
            above_zero += mean[1:][np.isfinite(mean[1:])].tolist()
    where = f": {'; '.join(above)}" if above else ""
    sizes = "; ".join(text for _, text in sorted(larger, reverse=True)[:_WORST])
    by_size = ""
    if larger:
        by_size = (
            f" By size, it is worse in {len(larger)} of {classes} pairs of a class and an epsilon. "
            f"The largest: {sizes}."
        )
    return (
        f"**{world.title[0].upper()}{world.title[1:]}.** The table of least expected error is "
        f"worse than the best projection in {len(above)} of {cases} pairs of a level and an "
        f"epsilon{where}.{by_size} Released intervals of 90% contain the true count for at least "
        f"{min(held):.1%} of the counts of every size class{_short(short)}. In the size classes "
        f"above 0, with noise of scale {_COARSE:g} or more, they contain the true count for at "
        f"most {max(above_zero):.1%} of the counts."
    )


def _short(below: list[float]) -> str:
    """Say by how many standard errors a share of intervals is below the stated probability."""
    if max(below) <= 0.0:
        return ""
    return f"; no class is more than {max(below):.1f} standard errors below {1.0 - ALPHA:.0%}"


def _overview(shown: list[tuple[World, Exhibit]]) -> str:
    """Return the differences at the deepest levels as a table, a row for each world."""
    epsilons = sorted({cast(float, e) for _, table in shown for e in table.column("epsilon")})
    rows: list[tuple[Cell, ...]] = []
    for world, table in shown:
        at = table.columns.index("difference, %")
        found = {
            row[0]: f"{row[at]:.3g} ± {row[at + 1]:.2g}"
            for row in table.rows
            if row[1] == world.level_names[-1]
        }
        rows.append((world.title, *(found.get(epsilon) for epsilon in epsilons)))
    columns = ("counts", *(f"ε = {epsilon:g}" for epsilon in epsilons))
    return (
        "This table compares mean absolute errors at the deepest level. A number is the error of "
        "the table of least expected error, minus that of the best of imaging and TopDown, in % of "
        "the latter. Below 0, the table of least expected error is better:\n\n"
        + as_rows(Exhibit("overview", "Differences", columns, tuple(rows)), DIGITS)
    )


def _percent(relative: float, error: float) -> str:
    return f"{100 * relative:+.1f} ± {100 * error:.1f}%"


def _traded(world: World, found: Found, at: int, best: str) -> str:
    """Say how much larger the errors of a projection are at the level where they are largest."""
    levels = len(world.level_names)
    mine, other = (found.error[name].mean(axis=0)[:levels] for name in (TABLE, best))
    ratio = np.where(np.arange(levels) == at, 0.0, other / np.maximum(mine, 1e-12))
    most = int(np.argmax(ratio))
    if ratio[most] <= 1.0:
        return f" (the best projection is {best})"
    return (
        f" (the best projection there is {best}; its error by {world.level_names[most]} is "
        f"{ratio[most]:.2f} times that of the table of least expected error)"
    )


def known_laws(world: World, made: Replicates) -> Exhibit:
    """Compare with the median of each leaf's law, were the counts' own laws known.

    The leaves below nodes of about the same mean count, in 20 classes of as many nodes' leaves,
    have the shares of their true counts as their law; a leaf's measurement alone is used. No
    prior that takes leaves of a class as alike does better from a leaf's measurement.
    """
    tree, x = world.read()
    leaf = tree.leaves
    above = tree.parents[leaf]
    mean = x[above] / np.bincount(above, minlength=len(tree))[above]
    cuts = np.quantile(mean, np.linspace(0.0, 1.0, _CLASSES + 1)[1:-1])
    of_class = np.searchsorted(cuts, mean, side="right")
    rows: list[tuple[Cell, ...]] = []
    at = len(world.level_names) - 1
    for epsilon, found in made.items():
        known = sum(
            least_error(x[leaf[of_class == k]], found.scales[-1]) * float((of_class == k).mean())
            for k in np.unique(of_class)
        )
        relative, _, _ = excess(found)
        ours = float(found.error[TABLE].mean(axis=0)[at])
        best = ours / (1.0 + float(relative[at]))
        difference = 100.0 * (known / best - 1.0)
        values = ours, best, known, difference
        rows.append((epsilon, found.scales[-1], *(_round(value) for value in values)))
    title = f"Error under known laws: {world.title}"
    columns = ("epsilon", "scale", TABLE, "best projection", "known laws", "difference, %")
    notes = (
        f"Errors are mean absolute errors of a {world.level_names[-1]}. The known laws are those "
        f"of the true counts in {_CLASSES} classes of leaves, by the true mean of a leaf and its "
        "siblings. The error under them is the least, given the measurement of the leaf. The "
        "difference is from the best projection.",
    )
    return Exhibit(f"{world.name}-known", title, columns, tuple(rows), notes)


def _told_of_laws(world: World, table: Exhibit) -> str:
    """Say how much any prior may gain where the laws of counts are known."""
    pairs = zip(table.column("difference, %"), table.column("epsilon"), strict=True)
    gains = ", ".join(
        f"{abs(cast(float, gain)):.1f}% {'smaller' if cast(float, gain) < 0.0 else 'larger'} at "
        f"epsilon {cast(float, at):g}"
        for gain, at in pairs
    )
    leaf = world.level_names[-1]
    return (
        f"**The gain that a prior can have: {world.title}.** Divide the {leaf}s into {_CLASSES} "
        f"classes, by the true mean of a {leaf} and its siblings. Suppose that the law of the "
        f"true counts of each class were known. With this knowledge and a {leaf}'s own "
        "measurement, there is a least possible error. Compared with the error of the best "
        f"projection, it is {gains}. No prior can gain more from that measurement alone, if it "
        "treats the counts of a class alike."
    )


def least_error(x: IntArray, scale: float) -> float:
    """Return the least expected error of a count drawn from `x`, given one measurement of it.

    Parameters
    ----------
    x : ndarray of int64
        Not negative.
    scale : float
        Of discrete Laplace noise.
    """
    value, count = np.unique(x, return_counts=True)
    share = count / count.sum()
    q = math.exp(-1.0 / scale)
    reach = math.ceil(_REACH * scale)
    total = 0.0
    for begin in range(-reach, int(value[-1]) + reach + 1, _BATCH):
        y = np.arange(begin, min(begin + _BATCH, int(value[-1]) + reach + 1))[:, None]
        weight = (1.0 - q) / (1.0 + q) * q ** np.abs(y - value) * share
        below = np.cumsum(weight, axis=1)
        at = np.argmax(below >= 0.5 * below[:, -1:], axis=1)
        total += float((weight * np.abs(value - value[at][:, None])).sum())
    return total


def _tables(world: World, made: Replicates) -> Iterator[Exhibit]:
    shown = [m for m in METHODS if m in next(iter(made.values())).error]
    kinds = [k for k in INTERVALS if k in next(iter(made.values())).covered]
    errors: list[tuple[Cell, ...]] = []
    biases: list[tuple[Cell, ...]] = []
    covered: list[tuple[Cell, ...]] = []
    for epsilon, found in made.items():
        relative, error, best = excess(found)
        for g, name in enumerate(found.groups.names):
            nodes = int(found.groups.member[g].sum())
            if not nodes:
                continue
            mean = {m: found.error[m][:, g].mean() for m in shown}
            errors.append(
                (
                    *(epsilon, name, nodes, len(found.error[TABLE])),
                    *(_round(mean[m]) for m in shown),
                    *(best[g], _round(100 * relative[g]), _round(100 * error[g])),
                )
            )
            off = (_round(found.bias[m][:, g].mean()) for m in shown)
            biases.append((epsilon, name, *off))
            held = (_round(found.covered[k][:, g].mean(), 4) for k in kinds)
            covered.append(
                (epsilon, name, *held, *(_round(found.width[k][:, g].mean()) for k in kinds))
            )
    first = next(iter(made.values()))
    (scale,) = {f"{epsilon * f.scales[0]:.3g}" for epsilon, f in made.items()}
    yield Exhibit(
        f"{world.name}-errors",
        f"Mean absolute error: {world.title}",
        (
            *("epsilon", "counts", "number", "replicates", *shown),
            *("best projection", "difference, %", "standard error, %"),
        ),
        tuple(errors),
        (
            f"The noise has scale {scale} / epsilon at each level except the root.",
            "The difference is the error of the table of least expected error minus that of the "
            "best projection, on the same measurements. Its standard error assumes that "
            "counts are independent.",
        ),
    )
    yield Exhibit(
        f"{world.name}-bias",
        f"Mean error: {world.title}",
        ("epsilon", "counts", *(m for m in METHODS if m in first.bias)),
        tuple(biases),
    )
    yield Exhibit(
        f"{world.name}-intervals",
        f"Intervals of 90%: {world.title}",
        ("epsilon", "counts", *(f"{k}: held" for k in kinds), *(f"{k}: width" for k in kinds)),
        tuple(covered),
        ("A width is the upper end minus the lower end.",),
    )


def _round(value: float, digits: int = 3) -> float:
    """Round to significant digits, so that last bits of another processor do not show."""
    return float(f"{value:.{digits}g}")


def _draw(canvas: Canvas, shown: list[tuple[World, Exhibit]]) -> None:
    """Draw a panel for each world of at least two epsilons: the ratio of errors by level."""
    several = [(w, t) for w, t in shown if len(set(t.column("epsilon"))) > 1] or shown
    across = min(len(several), _ACROSS)
    panels = canvas.subplots(-(-len(several) // across), across, sharey=True, squeeze=False).ravel()
    for panel, (world, table) in zip(panels, several, strict=False):
        epsilons = [cast(float, epsilon) for epsilon in dict.fromkeys(table.column("epsilon"))]
        counts, off, error = (
            table.columns.index(name) for name in ("counts", "difference, %", "standard error, %")
        )
        for place, name in enumerate(world.level_names):
            rows = [row for row in table.rows if row[counts] == name]
            panel.errorbar(
                np.array(epsilons[-len(rows) :]) * 1.03 ** (place - 1),
                [1.0 + cast(float, row[off]) / 100.0 for row in rows],
                yerr=[ERRORS * cast(float, row[error]) / 100.0 for row in rows],
                capsize=2,
                label=name,
                **line(place),
            )
        level_line(panel, 1.0)
        epsilon_axis(panel, epsilons)
        frame(panel)
        panel.set_title(world.title.replace(", race", ",\nrace"), fontsize=9)
        panel.legend(fontsize=7, frameon=False, loc="lower left", ncols=2)
    low, high = panels[0].get_ylim()
    panels[0].set_ylim(low - 0.2 * (high - low), high)  # room for legends
    for panel in panels[len(several) :]:
        panel.set_axis_off()
    canvas.supylabel(
        "error over that of the best projection (below 1, least expected error is better)",
        fontsize=9,
    )
