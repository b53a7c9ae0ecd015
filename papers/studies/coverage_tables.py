"""Tables and figures of the studies of coverage: by size of the count, by level, by decile."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import numpy as np

from congenial.exhibits.exhibit import Cell, Exhibit, Figure
from congenial.types import FloatArray
from papers.studies.coverage_methods import ALPHA
from papers.studies.coverage_tallies import CLASSES, DECILES, Tally
from papers.studies.looks import ERRORS, INK, frame, level_line, line, shades

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

# Columns of panels: methods whose estimates are alike. Inversion has the estimates of the release
# that was conditioned with no count below 0.
GROUPS = {
    "sums alone": ("conditioning, adds up", "measurements", "L2, normal"),
    "no count below 0": ("conditioning, ≥ 0 too", "L2 ≥ 0, normal", "TopDown, raw noise"),
    "means of posteriors": (
        "posterior, flat",
        "posterior, fitted",
        "conditioning, ≥ 0, posterior",
    ),
}


def tables(name: str, title: str, made: tuple[Tally, ...]) -> tuple[Exhibit, ...]:
    """Return the tables of one world: coverage, then bias."""
    return *_coverages(name, title, made), *_biases(name, title, made)


def figures(shown: dict[str, tuple[Exhibit, ...]]) -> tuple[Figure, Figure]:
    """Return the figures of worlds, from their tables: coverage, then bias."""
    count = len(shown)
    return (
        Figure(
            "coverage",
            f"How many intervals of {1 - ALPHA:.0%} contain the true count, by its size",
            lambda c: _draw_coverage(c, shown),
            size=(4.2 + 2.8 * count, 6.2),
            note="Bars are 2 standard errors. The line is at the stated probability.",
        ),
        Figure(
            "bias",
            "Bias: the mean of estimate less true count, by decile",
            lambda c: _draw_bias(c, shown),
            size=(9.0, 1.8 + 4.0 * count),
            note=(
                "Methods with similar estimates share a column of panels. All bars of a line have "
                "the same length, twice the largest standard error of that line. A value that does "
                "not fit a panel is written as a number."
            ),
        ),
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
                "Columns are classes of the rounded estimate of a leaf. Estimates below 0 are in "
                "the first class. A cell is empty if a replicate has no leaf in this class.",
            ),
        ),
        Exhibit(
            f"{name}-levels",
            f"{level} by level: {title}",
            ("method", "replicates", "what", *(str(k) for k in range(made[0].levels.shape[1]))),
            tuple(deep),
            ("Columns are levels. Level 0 is the total, and the last level has the leaves.",),
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
            ("The estimate of a posterior is its mean.",),
        ),
        Exhibit(
            f"{name}-estimate",
            f"Bias by decile of the estimate: {title}",
            ("method", "replicates", *deciles, end),
            tuple(given),
            ("Leaves with equal estimates stay in the order of the data.",),
        ),
    )


def _draw_bias(canvas: Canvas, shown: dict[str, tuple[Exhibit, ...]]) -> None:
    """Draw the bias by decile, a column of panels for each group of methods."""
    rows = [
        (table, what)
        for _, _, _, *found in shown.values()
        for what, table in zip(("true counts", "estimates"), found, strict=True)
    ]
    panels = canvas.subplots(len(rows), len(GROUPS), sharex=True, sharey="row", squeeze=False)
    tenths = np.arange(1, DECILES + 1)
    for across, (table, what) in zip(panels, rows, strict=True):
        lines = {str(row[0]): row for row in table.rows}
        low, high = _bias_range(table)
        for panel, names in zip(across, GROUPS.values(), strict=True):
            for place, name in enumerate(names):
                *means, error = (cast(float, cell) for cell in lines[name][-DECILES - 1 :])
                panel.errorbar(
                    tenths, means, yerr=ERRORS * error, label=name, capsize=2, **line(place)
                )
            level_line(panel, 0.0)
            frame(panel)
            panel.set_xticks(tenths)
            panel.set_ylim(low, high)
            below = [cast(float, lines[name][-DECILES - 1]) for name in names]
            if min(below) < low:  # estimates that may be negative are far too low in the least
                panel.text(
                    0.97,
                    0.03,
                    f"tenth 1: {min(below):.1f} to {max(below):.1f}".replace("-", "−"),
                    transform=panel.transAxes,
                    fontsize="small",
                    ha="right",
                )
        across[0].set_ylabel(f"bias by tenth of the\n{what} ({_unit(table)})")
    for panel, group in zip(panels[0], GROUPS, strict=True):
        panel.legend(
            title=group,
            loc="lower center",
            bbox_to_anchor=(0.5, 1.02),
            fontsize="small",
            frameon=False,
        )
    for panel in panels[-1]:
        panel.set_xlabel("tenth, from the least to the largest")


def _draw_coverage(canvas: Canvas, shown: dict[str, tuple[Exhibit, ...]]) -> None:
    """Draw how often intervals hold: a row for each method, a dot for each class of the count."""
    panels = canvas.subplots(1, len(shown), sharex=True, sharey=True, squeeze=False)[0]
    colours, marks = shades(len(CLASSES)), "osD^v"
    names = [str(row[0]) for row in _first(shown)[0].rows if row[2] == "coverage"]
    for axes, (table, *_) in zip(panels, shown.values(), strict=True):
        rows = {(str(row[0]), row[2]): row[3:-1] for row in table.rows}
        for at, name in enumerate(names):
            for k, colour in enumerate(colours):
                means, errors = rows.get((name, "coverage")), rows.get((name, "standard error"))
                if means is None or errors is None or means[k] is None:
                    continue
                axes.errorbar(
                    cast(float, means[k]),
                    at + 0.14 * (k - 0.5 * (len(CLASSES) - 1)),
                    xerr=ERRORS * cast(float, errors[k]),
                    fmt=marks[k],
                    markersize=4.5,
                    markeredgecolor=INK,
                    markeredgewidth=0.5,
                    capsize=2,
                    color=colour,
                    ecolor=INK,
                    elinewidth=0.8,
                    label=_names()[k] if at == 0 else "_",
                )
        axes.axvline(1.0 - ALPHA, color="0.45", linewidth=0.9)
        axes.set_yticks(range(len(names)), names)
        axes.set_ylim(len(names) - 0.5, -0.5)
        axes.xaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
        frame(axes, grid="x")
        axes.set_title(_world(table), fontsize="medium")
        axes.set_xlabel("intervals that contain the true count")
    handles, labels = panels[0].get_legend_handles_labels()
    canvas.legend(
        handles,
        labels,
        title="true count",
        loc="outside lower center",
        ncols=len(CLASSES),
        frameon=False,
    )


def _first(shown: dict[str, tuple[Exhibit, ...]]) -> tuple[Exhibit, ...]:
    """Return the tables of the world with the most methods."""
    return max(shown.values(), key=lambda found: len(found[0].rows))


def _bias_range(table: Exhibit) -> tuple[float, float]:
    """Return ends of the axis of bias: of all values but those of the least tenth of sums alone."""
    rows = [[cast(float, cell) for cell in row[-DECILES - 1 : -1]] for row in table.rows]
    first = GROUPS["sums alone"]
    kept = [v[1:] if row[0] in first else v for row, v in zip(table.rows, rows, strict=True)]
    low, high = min(map(min, kept)), max(map(max, kept))
    room = 0.06 * (high - low)
    return low - room, high + room


def _world(table: Exhibit) -> str:
    return table.title.rpartition(": ")[2]


def _unit(table: Exhibit) -> str:
    """Return what is counted: the first word of the world's title."""
    return _world(table).split()[0]
