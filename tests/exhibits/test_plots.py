"""Plots: every number drawn is one that was given, and Matplotlib is needed only to draw."""

from __future__ import annotations

import sys
from dataclasses import replace

import numpy as np
import pytest

from congenial.errors import UnsupportedError
from congenial.exhibits.plots import (
    MOST_BARS,
    Bars,
    IcicleRow,
    axes_or_new,
    draw_bars,
    draw_icicle,
    draw_law,
    draw_normal,
    legend_below,
)
from support.plots import drawn, heights, legend, lines, new_axes, widths

NONE = np.nan


def bars(values, lower, upper, series=("value",)):
    arrays = (np.array(one, dtype=float).reshape(len(values), -1) for one in (values, lower, upper))
    return Bars("A title", tuple("abcdef"[: len(values)]), series, *arrays, "90% interval")


def test_bars_and_intervals_have_the_given_lengths():
    # the interval of b does not contain its count, as may happen by inversion
    ax = drawn(draw_bars(new_axes(), bars([5, 2, 7], [1, 3, NONE], [9, 8, NONE])))
    assert widths(ax) == [5, 2, 7]
    assert lines(ax) == [(1, 9), (3, 8)]
    assert [text.get_text() for text in ax.get_yticklabels()] == ["a", "b", "c"]
    assert ax.yaxis_inverted()
    assert legend(ax) == ["90% interval"]
    assert ax.get_title(loc="left") == "A title"


def test_groups_have_a_colour_for_each_series():
    given = bars([[1, 2], [3, NONE]], [[NONE] * 2] * 2, [[NONE] * 2] * 2, ("F", "M"))
    ax = drawn(draw_bars(new_axes(), given))
    assert widths(ax) == [1, 3, 2, 0]
    assert set(legend(ax)) >= {"F", "M"}
    assert lines(ax) == []


def test_one_series_without_intervals_needs_no_legend():
    assert draw_bars(new_axes(), bars([1], [NONE], [NONE])).get_legend() is None


def test_a_law_has_its_probabilities_and_cuts_its_tails():
    values = np.arange(-50, 51)
    probabilities = 0.5 ** np.abs(values) / 3
    ax = drawn(draw_law(new_axes(), values, probabilities, "t", (-1, 1), "likely", "count"))
    found = heights(ax)
    assert set(found) == set(range(-13, 14))
    assert all(found[v] == pytest.approx(0.5 ** abs(v) / 3) for v in found)
    dark = {bar.get_height() for bar in ax.patches if bar.get_facecolor() == darkest(ax)}
    assert sorted(dark) == pytest.approx([1 / 6, 1 / 3])
    assert legend(ax) == ["likely"]


def darkest(ax):
    return min((bar.get_facecolor() for bar in ax.patches), key=lambda rgba: sum(rgba[:3]))


def test_a_certain_value_is_one_bar():
    ax = drawn(draw_law(new_axes(), np.array([4]), np.array([1.0]), "t", (4, 4), "all", "count"))
    assert heights(ax) == {4.0: 1.0}


def test_a_normal_law_has_its_density():
    ax = drawn(draw_normal(new_axes(), 2.0, 1.5, "t", 3.0, "likely"))
    x, y = ax.lines[0].get_data()
    assert x[np.argmax(y)] == pytest.approx(2.0)
    assert y.max() == pytest.approx(1 / (1.5 * np.sqrt(2 * np.pi)))
    drawn(draw_normal(new_axes(), 2.0, 0.0, "t", 0.0, "certain"))


def icicle(counts, half_width):
    """Return a root with two places, of which the first has three."""
    above = ([-1], [0, 0], [0, 0, 0])
    return [
        IcicleRow(
            f"level {depth}",
            tuple(f"{depth}{k}" for k in range(len(counts[depth]))),
            np.array(above[depth]),
            np.array(counts[depth]),
            ~np.isnan(half_width[depth]),
            np.nan_to_num(half_width[depth]),
        )
        for depth in range(3)
    ]


COUNTS = [[100], [75, 25], [50, -3, 25]]
WIDTHS = [np.zeros(1), np.array([5.0, 5.0]), np.array([5.0, 4.0, NONE])]


def test_an_icicle_divides_every_place_among_its_parts():
    ax = drawn(draw_icicle(new_axes(), "Errors", icicle(COUNTS, WIDTHS)))
    found = [
        [tuple(path.vertices[[0, 2], 0].tolist()) for path in row.get_paths()]
        for row in ax.collections
    ]
    # a count below 0 has no rectangle
    assert found == [
        [(0.0, 1.0)],
        [(0.0, 0.75), (0.75, 1.0)],
        [pytest.approx((0.0, 0.5)), pytest.approx((0.5, 0.75))],
    ]
    names = [label.get_text() for label in ax.get_yticklabels()]
    assert names == ["level 0\n± 0", "level 1\n± 5", "level 2\n± 4.5"]
    assert [text.get_text() for text in ax.texts] == ["00", "10", "11", "20", "22"]
    colours = [row.get_facecolor() for row in ax.collections]
    assert colours[0][0].tolist() == [1, 1, 1, 1]  # exact
    assert len(set(colours[2][1][:3])) == 1  # grey: no interval
    assert colours[1][0][:3].mean() > colours[1][1][:3].mean()  # 7% is lighter than 20%


@pytest.mark.parametrize("half_width", [0.0, 5.0, 1e9])
def test_an_icicle_of_one_error_has_a_scale(half_width):
    rows = [np.full(len(row), half_width) for row in COUNTS]
    drawn(draw_icicle(new_axes(), "Errors", icicle(COUNTS, rows)))


def test_an_icicle_of_no_counts_is_empty():
    empty = [[0], [0, 0], [0, 0, 0]]
    ax = drawn(draw_icicle(new_axes(), "Errors", icicle(empty, WIDTHS)))
    assert not any(row.get_paths() for row in ax.collections)


def test_a_new_figure_is_higher_for_many_bars():
    from matplotlib import pyplot as plt

    few, many = axes_or_new(None), axes_or_new(None, MOST_BARS)
    try:
        assert many.figure.get_figheight() > few.figure.get_figheight()
        assert axes_or_new(few) is few
        few.plot([0, 1], [0, 1], label="line")
        legend_below(few)
        assert legend(drawn(few)) == ["line"]
    finally:
        plt.close(few.figure)
        plt.close(many.figure)


def test_without_matplotlib_a_plot_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(UnsupportedError, match=r"pip install matplotlib"):
        axes_or_new(None)


def test_names_with_dollar_signs_are_no_mathematics():
    name = r"$5 to $\frac{"
    given = bars([[1, 2]], [[0, 1]], [[3, 4]], (name, "M"))
    ax = draw_bars(new_axes(), replace(given, title=name, groups=(name,)))
    assert legend(drawn(ax))[1:] == [name, "M"]
    rows = [
        replace(row, name=name, names=(name,) * len(row.names)) for row in icicle(COUNTS, WIDTHS)
    ]
    drawn(draw_icicle(new_axes(), name, rows))
    drawn(draw_law(new_axes(), np.array([4]), np.array([1.0]), name, (4, 4), "all", "count"))
