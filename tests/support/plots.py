"""Axes for tests of plots: no window, and nothing to close."""

from __future__ import annotations

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure


def new_axes():
    """Return the axes of a figure that no window shows."""
    figure = Figure(layout="constrained")
    FigureCanvasAgg(figure)
    return figure.add_subplot()


def drawn(ax):
    """Draw the figure of some axes; return them."""
    ax.figure.canvas.draw()
    return ax


def widths(ax):
    """Return the length of every horizontal bar, in the order drawn."""
    return [bar.get_width() for bar in ax.patches]


def heights(ax):
    """Return the height of every upright bar by its middle."""
    middle = ((bar.get_x() + 0.5 * bar.get_width(), bar.get_height()) for bar in ax.patches)
    return {round(place, 6): height for place, height in middle}


def lines(ax):
    """Return the ends of every horizontal line of the intervals."""
    return [
        tuple(segment[:, 0].tolist())
        for collection in ax.collections
        for segment in collection.get_segments()
    ]


def legend(ax):
    """Return the texts of the legend."""
    return [text.get_text() for text in ax.get_legend().get_texts()]
