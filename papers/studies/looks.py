"""Lines of the studies' figures: their colours, marks and dashes differ in grey, too."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

BLUE, ORANGE, INK, SKY = "#0b5d8a", "#dc7f2f", "#22262b", "#86b6d6"
# The lines of one panel, first to last.
_LINES = (
    (BLUE, "o", "-"),
    (ORANGE, "s", "--"),
    (INK, "^", ":"),
    (SKY, "D", "-."),
    ("#8a5a2b", "v", (0, (5, 1, 1, 1))),
    ("#9aa0a8", "X", (0, (1, 1))),
)
# Shades of an ordered class, light to dark.
_LIGHT, _DARK = 0.25, 1.0
# An error bar is this many standard errors to either side.
ERRORS = 2.0


def line(place: int) -> dict[str, Any]:
    """Return the looks of a panel's line, as keywords of `plot` and `errorbar`."""
    colour, marker, dashes = _LINES[place]
    return {
        "color": colour,
        "marker": marker,
        "linestyle": dashes,
        "linewidth": 1.4,
        "markersize": 4.5,
    }


def shades(count: int) -> list[tuple[float, float, float, float]]:
    """Return colours of ordered classes, from light to dark."""
    import matplotlib as mpl

    colours = mpl.colormaps["Blues"]
    steps = [_LIGHT + (_DARK - _LIGHT) * k / max(count - 1, 1) for k in range(count)]
    return [colours(step) for step in steps]


def frame(axes: Axes, *, grid: Literal["x", "y"] = "y") -> None:
    """Leave out the frame on the right and on top, and draw faint lines across."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(visible=True, axis=grid, color="0.9", linewidth=0.7)
    axes.set_axisbelow(True)


def level_line(axes: Axes, value: float) -> None:
    """Draw the value that others are compared with."""
    axes.axhline(value, color="0.45", linewidth=0.9)


def epsilon_axis(axes: Axes, epsilons: Sequence[float], name: str = "ε") -> None:
    """Let the axis have epsilons on a logarithmic scale, each with its number."""
    axes.set_xscale("log")
    axes.set_xticks(epsilons, [f"{epsilon:g}" for epsilon in epsilons])
    axes.minorticks_off()
    axes.set_xlabel(name)


def legend_below(canvas: Canvas, axes: Axes, columns: int) -> None:
    """Put one legend for all panels below them, where it covers nothing."""
    handles = axes.get_legend_handles_labels()
    canvas.legend(*handles, loc="outside lower center", ncols=columns, frameon=False)
