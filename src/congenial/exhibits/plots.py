"""Plots on Matplotlib's axes; Matplotlib is imported when the first plot is drawn.

Names may have dollar signs, so that no text is parsed as mathematics.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from congenial.errors import UnsupportedError
from congenial.types import BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Most bars of one plot; more look alike.
MOST_BARS = 60
# Most rectangles in one row of an icicle; the screen has about as many points.
MOST_BOXES = 2_000
# Probability, relative to the largest, below which a law's tails are not drawn.
_TAIL = 1e-4
# Least share of an icicle's width at which a rectangle has its name in it, for each letter.
_LETTER = 0.014
# Width and height of a new figure, and the height of a bar and its gap, in inches.
_SIZE, _BAR = (7.0, 4.2), 0.15
# Marks of the scale of relative errors.
_POWERS = (1e-4, 1e-3, 1e-2, 0.1, 1.0)
_TICKS = [digit * power for power in _POWERS for digit in (1, 2, 3, 5, 7)]
_EXACT, _UNKNOWN = "#ffffff", "#c8c8c8"


@dataclass(frozen=True, eq=False)
class Bars:
    """Bars in groups, each with an interval that it may have."""

    title: str
    groups: tuple[str, ...]
    series: tuple[str, ...]  # Names of the bars in a group.
    values: FloatArray  # shape (groups, series): NaN where there is no bar.
    lower: FloatArray  # shape (groups, series): NaN where there is no interval.
    upper: FloatArray
    interval: str  # The kind of the intervals, for the legend.


@dataclass(frozen=True, eq=False)
class IcicleRow:
    """One level of an icicle."""

    name: str
    names: tuple[str, ...]
    above: IntArray  # shape (n,): Place in the row above; -1 in the first row.
    values: IntArray  # shape (n,)
    known: BoolArray  # shape (n,): Whether there is an interval.
    half_width: FloatArray  # shape (n,): Of the interval.


def axes_or_new(ax: Axes | None, bars: int = 0) -> Axes:
    """Return the given axes, or those of a new figure, higher for many bars.

    Raises UnsupportedError if Matplotlib is not installed.
    """
    if ax is not None:
        return ax
    try:
        from matplotlib import pyplot as plt
    except ImportError as error:
        raise UnsupportedError(
            "a plot needs Matplotlib, which is not installed; run pip install matplotlib."
        ) from error
    height = max(_SIZE[1], _BAR * bars)
    return plt.subplots(figsize=(_SIZE[0], height), layout="constrained")[1]


def legend_below(ax: Axes, lines: float = 4.5) -> None:
    """Put a legend some lines of text below the axes, where it covers nothing."""
    legend = ax.legend(
        loc="upper center",
        bbox_to_anchor=(0.5, 0.0),
        borderaxespad=lines,
        ncols=3,
        fontsize="small",
        frameon=False,
    )
    for text in legend.get_texts():
        text.set_parse_math(False)


def draw_bars(ax: Axes, bars: Bars) -> Axes:
    """Draw horizontal bars, the first on top, with their intervals as lines."""
    count = len(bars.series)
    height = 0.8 / count
    for k, name in enumerate(bars.series):
        place = np.arange(len(bars.groups)) + (k - 0.5 * (count - 1)) * height
        values = np.nan_to_num(bars.values[:, k])
        label = name if count > 1 else "_"  # one colour needs no legend
        ax.barh(place, values, 0.9 * height, color=f"C{k}", alpha=0.7, label=label)
        known = ~np.isnan(bars.lower[:, k])
        ax.hlines(
            place[known],
            bars.lower[known, k],
            bars.upper[known, k],
            color="black",
            linewidth=1.2 if bars.values.size < 0.5 * MOST_BARS else 0.7,
            label=bars.interval if k == count - 1 else "_",
        )
    ax.set_yticks(range(len(bars.groups)), bars.groups, parse_math=False)
    ax.set_ylim(len(bars.groups) - 0.4, -0.6)
    ax.axvline(0.0, color="black", linewidth=0.6)
    ax.set_xlabel("released count")
    _finish(ax, bars.title)
    if count > 1 or not np.isnan(bars.lower).all():
        legend_below(ax)
    return ax


def draw_law(
    ax: Axes,
    values: npt.NDArray[np.generic],
    probabilities: FloatArray,
    title: str,
    interval: tuple[float, float],
    text: str,
    what: str,
) -> Axes:
    """Draw the probability of each value, those in an interval darker; tails are cut."""
    at = np.flatnonzero(probabilities >= _TAIL * probabilities.max())
    shown = slice(at[0], at[-1] + 1)
    x, p = np.asarray(values[shown], dtype=np.float64), probabilities[shown]
    inside = (x >= interval[0]) & (x <= interval[1])
    step = float(np.diff(x).min()) if x.size > 1 else 1.0
    for part, colour, label in ((inside, "C0", text), (~inside, "#a8c8e4", None)):
        ax.bar(x[part], p[part], 0.9 * step, color=colour, label=label)
    ax.set_xlabel(what)
    ax.set_ylabel("probability")
    ax.set_ylim(bottom=0.0)
    _finish(ax, title)
    ax.legend(fontsize="small")
    return ax


def draw_normal(
    ax: Axes, mean: float, deviation: float, title: str, reach: float, text: str
) -> Axes:
    """Draw the density of a normal law, the part within `reach` of the mean darker."""
    ends = 4.0 * deviation or 1.0
    x = mean + np.linspace(-ends, ends, 801)
    law = NormalDist(mean, deviation) if deviation > 0.0 else None
    density = np.array([0.0 if law is None else law.pdf(v) for v in x.tolist()])
    ax.plot(x, density, color="C0")
    inside = np.abs(x - mean) <= reach
    ax.fill_between(x, density, where=inside.tolist(), alpha=0.4, label=text)
    ax.set_xlabel("released value")
    ax.set_ylabel("density")
    ax.set_ylim(bottom=0.0)
    _finish(ax, title)
    ax.legend(fontsize="small")
    return ax


def draw_icicle(ax: Axes, title: str, rows: Sequence[IcicleRow]) -> Axes:
    """Draw levels as rows of rectangles, as wide as their counts, coloured by relative error.

    A negative count is drawn as 0.
    """
    import matplotlib as mpl
    from matplotlib.cm import ScalarMappable
    from matplotlib.collections import PolyCollection
    from matplotlib.colors import LogNorm

    relative = [row.half_width / np.maximum(row.values, 1) for row in rows]
    known = np.concatenate([row.known for row in rows])
    found = np.concatenate(relative)[known & (np.concatenate(relative) > 0.0)]
    low, high = _ends(found)
    norm = LogNorm(low, high)
    colours = mpl.colormaps["viridis_r"]
    for depth, (row, (left, width), error) in enumerate(
        zip(rows, _spans(rows), relative, strict=True)
    ):
        wide = np.flatnonzero(width > 0.0)
        fill = colours(norm(np.clip(error, low, high)))
        fill[row.known & (error == 0.0)] = mpl.colors.to_rgba(_EXACT)
        fill[~row.known] = mpl.colors.to_rgba(_UNKNOWN)
        right = left + width
        corners = [
            [(left[v], depth), (left[v], depth + 1), (right[v], depth + 1), (right[v], depth)]
            for v in wide.tolist()
        ]
        edge = 0.5 if wide.size < MOST_BARS else 0.1
        ax.add_collection(
            PolyCollection(corners, facecolor=fill[wide], edgecolor="#808080", linewidth=edge)
        )
        for v in wide.tolist():
            if width[v] > _LETTER * len(row.names[v]):
                dark = fill[v, :3].mean() < 0.5
                ax.text(
                    left[v] + 0.5 * width[v],
                    depth + 0.5,
                    row.names[v],
                    ha="center",
                    va="center",
                    fontsize="small",
                    color="white" if dark else "black",
                    parse_math=False,
                )
    ax.set_xlim(0.0, 1.0)
    ax.set_ylim(len(rows), 0.0)
    ax.set_xticks([])
    ax.set_yticks(np.arange(len(rows)) + 0.5, [_row_label(row) for row in rows], parse_math=False)
    ax.set_xlabel("width: released count; ±: median half-width; white: exact; grey: no interval")
    _finish(ax, title)
    if found.size:
        bar = ax.figure.colorbar(ScalarMappable(norm, colours), ax=ax)
        bar.set_label("half-width of the interval, in % of the count")
        ticks = [v for v in _TICKS if low <= v <= high] or [low, high]
        ticks = ticks if len(ticks) < 8 else [v for v in ticks if v in _POWERS]
        bar.set_ticks(ticks, labels=[f"{float(f'{100 * v:.2g}'):g}" for v in ticks])
        bar.ax.minorticks_off()
    return ax


def _ends(found: FloatArray) -> tuple[float, float]:
    """Return the ends of the colours' scale: the range of the relative errors, at most 1."""
    if not found.size:
        return 0.01, 1.0
    high = min(float(found.max()), 1.0)
    return min(max(float(found.min()), 1e-4), 0.5 * high), high


def _spans(rows: Sequence[IcicleRow]) -> list[tuple[FloatArray, FloatArray]]:
    """Return the left end and the width of each rectangle; each row divides that above it."""
    out: list[tuple[FloatArray, FloatArray]] = []
    for row in rows:
        size = np.maximum(row.values, 0).astype(np.float64)
        above = row.above if out else np.zeros(size.size, dtype=np.int64)
        starts, widths = out[-1] if out else (np.zeros(1), np.ones(1))
        whole = np.bincount(above, size, starts.size)
        width = size / np.where(whole > 0.0, whole, 1.0)[above] * widths[above]
        order = np.argsort(above, kind="stable")
        ends = np.cumsum(width[order])
        before = ends - width[order]
        group = above[order]
        first = np.flatnonzero(np.diff(group, prepend=-1))
        before -= np.repeat(before[first], np.diff(first, append=group.size))
        left = np.empty_like(width)
        left[order] = starts[group] + before
        out.append((left, width))
    return out


def _row_label(row: IcicleRow) -> str:
    """Name a level, with the median half-width of its intervals."""
    if not row.known.any():
        return row.name
    return f"{row.name}\n± {np.median(row.half_width[row.known]):.3g}"


def _finish(ax: Axes, title: str) -> None:
    """Set the title, and leave out the frame on the right and on top."""
    text = "\n".join(textwrap.wrap(title, 70))
    ax.set_title(text, fontsize="medium", loc="left", parse_math=False)
    ax.spines[["top", "right"]].set_visible(False)
