"""How often intervals hold the count, and how far estimates are off, by size of the count."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numba
import numpy as np

from congenial.randomness import seeded
from congenial.studies.coverage_methods import ALPHA, INVERSION, FloatArray
from congenial.studies.coverage_tallies import CLASSES, DECILES, Tally, tallies
from congenial.studies.record import Cell, Figure, Study, Table, replicates
from congenial.studies.sources import blocks, taxi

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

# Scale of the noise on every node.
SCALE = 4.0
# Replicates of each world: one of all blocks of a state takes far longer than one of zones, and
# tells of many more leaves.
REPLICATES = {"zones": 1_000, "blocks": 1_000}
# Where there are intervals by inversion: of a whole state's blocks so many may be empty that it is
# refused.
_INVERTED = frozenset({"zones"})
# Below this share of the replicates one county stands for the state.
_WHOLE, _COUNTY = 0.05, "53067"
_MOST_WORKERS = 8


def run(
    seed: int,
    effort: float,
    *,
    workers: int | None = None,
    notify: Callable[[str], None] = lambda _: None,
) -> Study:
    """Run every method on taxi trips by zone and on people by census block.

    Parameters
    ----------
    seed : int
    effort : float
        Share of the full study's replicates; small ones take one county's blocks.
    workers : int, optional
        Threads, by default as many as numba uses (NUMBA_NUM_THREADS) and 8 at most, for the sake of
        memory. What is found does not depend on them.
    notify : callable
        Told how far it is.
    """
    if workers is None:
        workers = min(int(numba.config.NUMBA_NUM_THREADS), _MOST_WORKERS)
    state = effort >= _WHOLE
    worlds = {
        "zones": ("trips by taxi zone", taxi()),
        "blocks": (
            f"people by census block, {'Washington' if state else 'one county'}",
            blocks(None if state else _COUNTY),
        ),
    }
    # each has a seed of its own, so that small efforts make the first replicates of the whole
    seeds = seeded(seed).bits(len(worlds)).tolist()
    found = {
        name: tallies(
            tree,
            x,
            SCALE,
            replicates(REPLICATES[name], effort, least=4),
            seeded(one),
            inverted=name in _INVERTED,
            workers=workers,
            notify=partial(_tell, notify, name),
        )
        for (name, (_, (tree, x))), one in zip(worlds.items(), seeds, strict=True)
    }
    tables = []
    for name, made in found.items():
        title = worlds[name][0]
        tables += [*_coverages(name, title, made), *_biases(name, title, made)]
    figures = (
        Figure("bias", "Bias by decile", lambda c: _draw_bias(c, found), size=(10.0, 7.6)),
        Figure(
            "coverage",
            f"Share of intervals of {1 - ALPHA:.0%} that hold the count, by its size",
            lambda c: _draw_coverage(c, found),
            size=(10.0, 4.2),
        ),
    )
    title = "Coverage of intervals and bias of estimates, by size of the count"
    sizes = {name: tree.leaves.size for name, (_, (tree, _)) in worlds.items()}
    return Study("coverage", title, _findings(found, sizes), tuple(tables), figures)


def _tell(notify: Callable[[str], None], name: str, told: str) -> None:
    notify(f"{name}: {told}")


def _names() -> tuple[str, ...]:
    ends = [*(c - 1 for c in CLASSES[1:]), None]
    return tuple(
        f"{low:,} and more" if high is None else str(low) if low == high else f"{low:,} to {high:,}"
        for low, high in zip(CLASSES, ends, strict=True)
    )


def _mean(values: FloatArray) -> float | None:
    """Mean over replicates, None where a class has no leaf."""
    return None if np.isnan(values).any() else float(values.mean())


def _standard_error(values: FloatArray) -> FloatArray:
    """Standard error of means over replicates."""
    return np.asarray(values.std(axis=0, ddof=1) / np.sqrt(len(values)))


def _coverages(name: str, title: str, made: tuple[Tally, ...]) -> tuple[Table, Table, Table]:
    """Tables of the coverage by class of the truth and of the estimate, and by level."""
    rows: list[tuple[Cell, ...]] = []
    given: list[tuple[Cell, ...]] = []
    deep: list[tuple[Cell, ...]] = []
    for tally in made:
        told = tally.method, len(tally.covered)
        for kept, values in ((rows, tally.covered), (given, tally.held), (deep, tally.levels)):
            errors = (_mean(np.atleast_1d(e)) for e in _standard_error(values))
            kept.append((*told, "coverage", *(_mean(column) for column in values.T)))
            kept.append((*told, "standard error", *errors))
        rows.append((*told, "mean width", *(_mean(column) for column in tally.width.T)))
    columns = ("method", "replicates", "what", *_names(), "all leaves")
    level = f"Intervals of {1 - ALPHA:.0%}"
    return (
        Table(
            f"{name}-coverage",
            f"{level} by the true count: {title}",
            columns,
            tuple(rows),
            ("Columns are classes of the true count of a leaf.",),
        ),
        Table(
            f"{name}-held",
            f"{level} by the estimate: {title}",
            columns,
            tuple(given),
            (
                "Columns are classes of the rounded estimate of a leaf, those below 0 in the "
                "first; empty where some replicate has none.",
            ),
        ),
        Table(
            f"{name}-levels",
            f"{level} by level: {title}",
            ("method", "replicates", "what", *(str(k) for k in range(made[0].levels.shape[1]))),
            tuple(deep),
            ("Columns are levels of the tree, 0 the total and the last the leaves.",),
        ),
    )


def _biases(name: str, title: str, made: tuple[Tally, ...]) -> tuple[Table, Table]:
    """Tables of the bias by decile of the truth and of the estimate."""
    deciles = tuple(str(k) for k in range(1, DECILES + 1))
    end = "largest standard error"

    def row(values: FloatArray) -> tuple[Cell, ...]:
        return *(float(b) for b in values.mean(axis=0)), float(_standard_error(values).max())

    true = [(t.method, len(t.bias), float(t.error.mean()), *row(t.bias)) for t in made]
    given = [(t.method, len(t.bias), *row(t.surplus)) for t in made]
    return (
        Table(
            f"{name}-bias",
            f"Mean absolute error of a leaf, and bias by decile of the true count: {title}",
            ("method", "replicates", "error", *deciles, end),
            tuple(true),
            ("Estimates of posteriors are their means.",),
        ),
        Table(
            f"{name}-estimate",
            f"Bias by decile of the estimate: {title}",
            ("method", "replicates", *deciles, end),
            tuple(given),
            ("Of equal estimates those that come first in the tree are taken to be less.",),
        ),
    )


def _findings(found: dict[str, tuple[Tally, ...]], sizes: dict[str, int]) -> tuple[str, ...]:
    told = [
        f"Discrete Laplace noise of scale {SCALE:g} on every node; each interval is meant to hold "
        f"the count with probability {1 - ALPHA:.0%}. Conditioning draws releases of its own, once "
        "with sums alone and once with no count below 0 too; all other methods are given the same "
        "measurements. The margins of conditioning that adds up are exact, and so are those of "
        "measurements, from the law of their noise alone; those of L2 take the spread of simulated "
        "images as that of a normal law. For conditioning on bounds, for L2 with no count below 0 "
        "and for TopDown nothing proves theirs: they are the margins without the bounds and those "
        "of one measurement, as a user might take them. The posterior of the releases that were "
        "conditioned on bounds is that which `read_release` gives, fitted to the released counts; "
        "the inversion of these gives the intervals that releases have, proved for all counts, on "
        "zones alone: it is refused for all the blocks, of which too many may be empty.",
    ]
    counts = {name: len(made[0].error) for name, made in found.items()}
    told.append(
        f"Every method has {counts['zones']:,} replicates on {sizes['zones']:,} zones and "
        f"{counts['blocks']:,} on {sizes['blocks']:,} blocks; standard errors are in the tables."
    )
    told += [_of_world(name, made) for name, made in found.items()]
    told += [
        "Bias by decile of the true count is not a fault of an estimate alone: the mean of any "
        "proper posterior is drawn towards what is likely beforehand, so that it is above the "
        "smallest counts and below the largest. What a user sees is the estimate. Where the prior "
        "is right, counts are on average what their estimates say, whatever the estimate: the "
        "tables by decile of the estimate are the ones to judge a prior by.",
        "A conditioned release can be nearer to the counts than the best estimate from noise that "
        "was not conditioned: its noise is drawn from the law at perfect agreement of all nodes.",
        "Coverage of a posterior holds on average over counts like those of its prior, not in "
        "every class of the true count: estimates are drawn towards their family, the more the "
        "smaller the count. By class of the estimate it can be judged.",
    ]
    return tuple(told)


def _of_world(name: str, made: tuple[Tally, ...]) -> str:
    by = {tally.method: tally for tally in made}
    free, flat, fitted, table = (
        by[method]
        for method in (
            "conditioning, adds up",
            "posterior, flat",
            "posterior, fitted",
            "conditioning, ≥ 0, posterior",
        )
    )
    worst = {t.method: float(np.nanmin(t.covered.mean(axis=0))) for t in made}
    least = min(worst, key=lambda method: worst[method])

    def at(values: FloatArray, decile: int) -> str:
        return f"{values[:, decile].mean():+.2f}"

    def most(tally: Tally) -> str:
        means = tally.surplus.mean(axis=0)
        return f"{means[np.argmax(np.abs(means))]:+.2f}"

    return (
        f"On {name}, the exact margins hold in {_range(free)} of the cases, whatever the class; "
        f"those of the fitted posterior in {_range(fitted)}, of the flat one in {_range(flat)}; "
        f"over all leaves in {free.covered[:, -1].mean():.1%}, {fitted.covered[:, -1].mean():.1%} "
        f"and {flat.covered[:, -1].mean():.1%}. Those of the posterior of a release conditioned on "
        f"bounds hold in {_range(table)}, over all leaves in {table.covered[:, -1].mean():.1%}, "
        f"of sums above them, by level, in {_sums(table)}. {_of_inversion(by)}"
        f"The least is {worst[least]:.1%}, of {least}. In the top decile of the true count the "
        f"mean of the flat posterior is off by {at(flat.bias, -1)}, that of the fitted one by "
        f"{at(fitted.bias, -1)}; in the top decile of the estimate by {at(flat.surplus, -1)} and "
        f"{at(fitted.surplus, -1)}; in whichever decile of the estimate it is most, by "
        f"{most(flat)} and {most(fitted)}. The mean absolute error of a leaf is "
        f"{flat.error.mean():.2f} and {fitted.error.mean():.2f}, against "
        f"{by['measurements'].error.mean():.2f} of measurements, "
        f"{by['L2, normal'].error.mean():.2f} of L2, "
        f"{by['L2 ≥ 0, normal'].error.mean():.2f} of L2 with no count below 0, "
        f"{by['TopDown, raw noise'].error.mean():.2f} of TopDown, {free.error.mean():.2f} of "
        f"conditioning and {by['conditioning, ≥ 0 too'].error.mean():.2f} of conditioning with no "
        "count below 0."
    )


def _of_inversion(by: dict[str, Tally]) -> str:
    if INVERSION not in by:
        return ""
    found, free = by[INVERSION], by["conditioning, adds up"]
    levels = found.levels.mean(axis=0)
    return (
        f"Those by its inversion hold in {levels.min():.1%} to {levels.max():.1%} of the nodes of "
        f"a level; of leaves they are {found.width[:, -1].mean():.1f} wide on average, against "
        f"{free.width[:, -1].mean():.1f} without bounds. "
    )


def _range(tally: Tally) -> str:
    shares = tally.covered[:, :-1].mean(axis=0)
    return f"{np.nanmin(shares):.1%} to {np.nanmax(shares):.1%}"


def _sums(tally: Tally) -> str:
    shares = tally.levels[:, :-1].mean(axis=0)
    return f"{shares.min():.1%} to {shares.max():.1%}"


def _style(place: int, tally: Tally) -> dict[str, Any]:
    """Return the looks of a method's line, the same in all panels."""
    whole = "posterior" in tally.method
    return {
        "color": f"C{place}",
        "marker": "osv^DP*X<>"[place],
        "linestyle": "-" if whole else "--",
        "linewidth": 1.8 if whole else 1.0,
        "markersize": 5.0,
        "label": tally.method,
    }


def _draw_bias(canvas: Canvas, found: dict[str, tuple[Tally, ...]]) -> None:
    """Draw the bias of every method by decile of the count, and of the estimate."""
    panels = canvas.subplots(2, len(found), squeeze=False)
    for column, (name, made) in enumerate(found.items()):
        for row, what in enumerate(("true count", "estimate")):
            axes = panels[row, column]
            for place, tally in enumerate(made):
                values = tally.bias if row == 0 else tally.surplus
                means = values.mean(axis=0)
                axes.plot(range(1, DECILES + 1), means, **_style(place, tally))
            if row == 1:
                # estimates that may be negative are far off at the lower end
                axes.set_ylim(-4.0, 4.0)
            axes.axhline(0.0, color="0.7", linewidth=0.8)
            axes.set_title(name if row == 0 else "")
            axes.set_xlabel(f"decile of the {what}")
            axes.set_ylabel("mean of estimate less count")
    panels[0, 0].legend(frameon=False, fontsize="small")


def _draw_coverage(canvas: Canvas, found: dict[str, tuple[Tally, ...]]) -> None:
    """Draw how often intervals hold, by class of the count."""
    panels = canvas.subplots(1, len(found), squeeze=False)[0]
    for axes, (name, made) in zip(panels, found.items(), strict=True):
        for place, tally in enumerate(made):
            means = tally.covered[:, :-1].mean(axis=0)
            axes.plot(range(len(CLASSES)), means, **_style(place, tally))
        axes.axhline(1.0 - ALPHA, color="0.7", linewidth=0.8)
        axes.set_xticks(range(len(CLASSES)), _names(), fontsize="small")
        axes.set_title(name)
        axes.set_xlabel("true count")
        axes.set_ylabel("share that holds")
    panels[0].legend(frameon=False, fontsize="small")
