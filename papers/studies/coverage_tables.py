"""Tables and figures of the studies of coverage: by size of the count, by level, by decile."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np

from congenial.exhibits.exhibit import Cell, Exhibit, Figure
from congenial.types import FloatArray
from papers.studies.coverage_methods import ALPHA
from papers.studies.coverage_tallies import CLASSES, DECILES, Tally

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas


def tables(name: str, title: str, made: tuple[Tally, ...]) -> tuple[Exhibit, ...]:
    """Return the tables of one world: coverage, then bias."""
    return *_coverages(name, title, made), *_biases(name, title, made)


def figures(shown: dict[str, tuple[Exhibit, ...]], scale: float) -> tuple[Figure, Figure]:
    """Return the figures of worlds of one noise, from their tables: coverage, then bias."""
    wide = 5.0 * max(len(shown), 1.4)
    return (
        Figure(
            "coverage",
            f"Share of intervals of {1 - ALPHA:.0%} that contain the count, by its size",
            lambda c: _draw_coverage(c, shown),
            size=(wide, 4.8),
        ),
        Figure("bias", "Bias by decile", lambda c: _draw_bias(c, shown, scale), size=(wide, 8.0)),
    )


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


def _coverages(name: str, title: str, made: tuple[Tally, ...]) -> tuple[Exhibit, Exhibit, Exhibit]:
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
        Exhibit(
            f"{name}-coverage",
            f"{level} by the true count: {title}",
            columns,
            tuple(rows),
            ("Columns are classes of the true count of a leaf.",),
        ),
        Exhibit(
            f"{name}-held",
            f"{level} by the estimate: {title}",
            columns,
            tuple(given),
            (
                "Columns are classes of the rounded estimate of a leaf; those below 0 are in the "
                "first. A cell is empty if a replicate has no such leaf.",
            ),
        ),
        Exhibit(
            f"{name}-levels",
            f"{level} by level: {title}",
            ("method", "replicates", "what", *(str(k) for k in range(made[0].levels.shape[1]))),
            tuple(deep),
            ("Columns are levels of the tree, 0 the total and the last the leaves.",),
        ),
    )


def _biases(name: str, title: str, made: tuple[Tally, ...]) -> tuple[Exhibit, Exhibit]:
    """Tables of the bias by decile of the truth and of the estimate."""
    deciles = tuple(str(k) for k in range(1, DECILES + 1))
    end = "largest standard error"

    def row(values: FloatArray) -> tuple[Cell, ...]:
        return *(float(b) for b in values.mean(axis=0)), float(_standard_error(values).max())

    true = [(t.method, len(t.bias), float(t.error.mean()), *row(t.bias)) for t in made]
    given = [(t.method, len(t.bias), *row(t.surplus)) for t in made]
    return (
        Exhibit(
            f"{name}-bias",
            f"Mean absolute error of a leaf, and bias by decile of the true count: {title}",
            ("method", "replicates", "error", *deciles, end),
            tuple(true),
            ("Estimates of posteriors are their means.",),
        ),
        Exhibit(
            f"{name}-estimate",
            f"Bias by decile of the estimate: {title}",
            ("method", "replicates", *deciles, end),
            tuple(given),
            ("Equal estimates are ordered as in the tree.",),
        ),
    )


def _style(place: int, method: str) -> dict[str, Any]:
    """Return the looks of a method's line, the same in all panels."""
    whole = "posterior" in method
    return {
        "color": f"C{place}",
        "marker": "osv^DP*X<>"[place],
        "linestyle": "-" if whole else "--",
        "linewidth": 1.8 if whole else 1.0,
        "markersize": 5.0,
        "label": method,
    }


def _draw_bias(canvas: Canvas, shown: dict[str, tuple[Exhibit, ...]], scale: float) -> None:
    """Draw the bias of every method by decile of the count, and of the estimate."""
    panels = canvas.subplots(2, len(shown), squeeze=False)
    for column, found in enumerate(shown.values()):
        for row, (what, table) in enumerate(
            zip(("true count", "estimate"), found[3:], strict=True)
        ):
            axes = panels[row, column]
            for place, line in enumerate(table.rows):
                means = [cast(float, cell) for cell in line[-DECILES - 1 : -1]]
                axes.plot(range(1, DECILES + 1), means, **_style(place, str(line[0])))
            if row == 1:
                # estimates that may be negative are far off at the lower end
                axes.set_ylim(-scale, scale)
            axes.axhline(0.0, color="0.7", linewidth=0.8)
            axes.set_title(_world(table) if row == 0 else "", fontsize="medium")
            axes.set_xlabel(f"tenth of the {what}s")
            axes.set_ylabel("mean of estimate less count")
    _legend(canvas, panels[0, 0])


def _draw_coverage(canvas: Canvas, shown: dict[str, tuple[Exhibit, ...]]) -> None:
    """Draw how often intervals hold, by class of the count."""
    panels = canvas.subplots(1, len(shown), squeeze=False)[0]
    for axes, (table, *_) in zip(panels, shown.values(), strict=True):
        lines = [row for row in table.rows if row[2] == "coverage"]
        for place, line in enumerate(lines):
            means = [np.nan if cell is None else cast(float, cell) for cell in line[3:-1]]
            axes.plot(range(len(CLASSES)), means, **_style(place, str(line[0])))
        axes.axhline(1.0 - ALPHA, color="0.7", linewidth=0.8)
        axes.set_xticks(range(len(CLASSES)), _names(), fontsize="small")
        axes.set_title(_world(table), fontsize="medium")
        axes.set_xlabel("true count")
        axes.set_ylabel("share of intervals that contain it")
    _legend(canvas, panels[0])


def _world(table: Exhibit) -> str:
    return table.title.rpartition(": ")[2]


def _legend(canvas: Canvas, axes: Axes) -> None:
    """Put the legend below the panels, where no line is."""
    handles = axes.get_legend_handles_labels()
    canvas.legend(*handles, loc="outside lower center", ncols=3, frameon=False, fontsize="small")
