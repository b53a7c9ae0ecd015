"""Draw the pictures of the pages: `make figures`. Laws are enumerated, and releases have a seed."""

from __future__ import annotations

import contextlib
import io
import re
import runpy
import shutil
import sys
from itertools import permutations
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import numpy as np
import numpy.typing as npt
import polars as pl
from matplotlib import pyplot as plt
from matplotlib.patches import Circle, FancyArrowPatch, FancyBboxPatch

import congenial as cg

# The counts are read by a part of the project that is not installed with the package.
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from papers.studies import sources

if TYPE_CHECKING:
    from collections.abc import Callable

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
FloatArray = npt.NDArray[np.float64]

BEFORE, KEPT, MOVED, FAINT, INK = "#8a8f98", "#0b5d8a", "#b5541c", "#d5d9de", "#22262b"
# Beside KEPT in one panel; lighter, so that they differ in grey.
PALE = "#eba66b"
STYLE = {
    "svg.hashsalt": "congenial",
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": INK,
    "text.color": INK,
}
# Rows of the table of layers.
LAYERS = (
    "base", "kernels", "what", "privacy", "methods", "readers", "releases", "faces"
)  # fmt: skip
# The counts of the pictures of two bins and of three cells, and the scale of their noise.
TWO, THREE, SCALE = (4, 5), (1, 3, 8), 2.0


CITY = {  # of the first page: where its nodes are drawn
    "City": (1.5, 2),
    "North": (0.5, 1),
    "South": (2.5, 1),
    "Abbey": (0, 0),
    "Brook": (1, 0),
    "Clay": (2, 0),
    "Dale": (3, 0),
}


def city_release() -> tuple[cg.Tree, list[npt.NDArray[np.int64]]]:
    """Return the city of the first page: its counts, these with noise, and as released."""
    city = cg.Tree.from_paths(
        ["City/North/Abbey", "City/North/Brook", "City/South/Clay", "City/South/Dale"]
    )
    counts = city.roll_up([412, 3, 0, 268])
    rules = cg.consistent(city) & cg.exactly("City") & cg.nonnegative()
    noise = cg.calibrate(city, rules, epsilon=1.0, neighbours="substitute", method="imaging")
    mechanism = cg.best_table(cg.Additive(noise, city), rules)
    noisy = mechanism.measure(counts, rng=cg.seeded(1))
    return city, [counts, noisy, mechanism.sample(counts, rng=cg.seeded(1))]


def city_true() -> Figure:
    """The counts of the city of the first page."""
    city, (counts, _, _) = city_release()
    return _city(city, counts, BEFORE, "The true counts", "confidential\n")


def city_noisy() -> Figure:
    """The same with noise: what is wrong with it is read off the numbers."""
    city, (_, noisy, _) = city_release()
    value = dict(zip(city.names, noisy.tolist(), strict=True))
    wrong = f"{value['North']} is not {value['Abbey']} + {value['Brook']},"
    less = f"and no place has −{-min(value.values())} people"
    return _city(city, noisy, MOVED, "With noise", f"{wrong}\n{less}")


def city_released() -> Figure:
    """The release, which satisfies the invariants."""
    city, (_, _, released) = city_release()
    note = "adds up, with the exact total,\nand no count is below zero"
    return _city(city, released, KEPT, "Released", note)


def _city(
    city: cg.Tree, values: npt.NDArray[np.int64], colour: str, title: str, note: str
) -> Figure:
    figure, axis = plt.subplots(figsize=(3.2, 3.2), layout="constrained")
    axis.set(xlim=(-0.6, 3.6), ylim=(-1.15, 2.5))
    axis.axis("off")
    axis.set_title(title, fontweight="bold", color=colour)
    for node, name in enumerate(city.names):
        x, y = CITY[name]
        for below in np.flatnonzero(city.parents == node):
            end = CITY[city.names[below]]
            axis.plot([x, end[0]], [y, end[1]], color=FAINT, lw=1.4, zorder=0)
        text = f"{name}\n{values[node]}".replace("-", "−")
        axis.text(
            x, y, text, ha="center", va="center", color="white", linespacing=1.4,
            bbox={"boxstyle": "round,pad=0.35", "color": colour, "lw": 0},
        )  # fmt: skip
    axis.text(1.5, -0.62, note, ha="center", va="top", fontsize=9, linespacing=1.4)
    return figure


def zones() -> Figure:
    """One borough of the demo's release with seed 1: released counts, intervals, true counts."""
    counts = sources.taxi()
    release = _taxi_release()
    table = release.to_pandas()
    names = pl.read_csv(EXAMPLES / "taxi" / "taxi_zone_lookup.csv", infer_schema=False)
    called = dict(zip(names["LocationID"], names["Zone"], strict=True))
    rows = table[(table.Borough == "Staten Island") & (table.level == 2)]
    truth = dict(zip(counts[0].names, counts[1].tolist(), strict=True))
    figure, axis = plt.subplots(figsize=(8.0, 5.2), layout="constrained")
    _intervals(
        axis,
        [called[name] for name in rows.PULocationID],
        rows.value.tolist(),
        rows.lower.tolist(),
        rows.upper.tolist(),
        [truth[name] for name in rows.PULocationID],
    )
    axis.set(title="Trips from the zones of Staten Island", xlabel="trips in February 2022")
    return figure


def errors() -> Figure:
    """All counts of the demo's release with seed 1: how far off each may be, by level."""
    figure, axis = plt.subplots(figsize=(9.2, 4.4), layout="constrained")
    _taxi_release().plot_errors(ax=axis)
    axis.set_title("The 90% intervals of the trips of New York, by level", loc="left")
    return figure


def _taxi_release() -> cg.Release:
    """Return the demo's release with seed 1, which is a simulation of the public counts."""
    with TemporaryDirectory() as place:
        taxi = Path(place, "taxi")
        shutil.copytree(
            EXAMPLES / "taxi", taxi, ignore=shutil.ignore_patterns("release*", "*.parquet")
        )
        _quietly(taxi / "build_trips.py")
        plan = cg.read_plan(taxi / "plan.toml")
        cg.release(plan, Path(place, "release"), base=taxi, simulate=1)
        return cg.read_release(Path(place, "release"))


def clinics() -> Figure:
    """The release of the example with a dataframe, with the intervals of its posterior."""
    with TemporaryDirectory() as place:
        found = _quietly(
            EXAMPLES / "dataframe" / "clinic_visits.py", "--simulate", "1", "--out", place
        )
    release, leaves = found["found"], found["found"].tree.leaves
    kept = found["visits"].filter((pl.col("age") >= 18) & pl.col("booked"))["clinic"].to_list()
    figure, axis = plt.subplots(figsize=(8.0, 3.6), layout="constrained")
    _intervals(
        axis,
        [release.names[v] for v in leaves],
        release.values[leaves].tolist(),
        found["low"][leaves].tolist(),
        found["high"][leaves].tolist(),
        [kept.count(release.names[v]) for v in leaves],
    )
    axis.set(title="Booked visits of adults, by clinic", xlabel="visits")
    return figure


def _intervals(
    axis: Axes,
    names: list[str],
    released: list[int],
    low: list[int],
    high: list[int],
    truth: list[int],
) -> None:
    """Draw a row for each count: its interval, the released and the true count."""
    rows = np.arange(len(names))
    axis.hlines(rows, low, high, color=FAINT, lw=6, label="90% interval")
    axis.plot(released, rows, "o", color=KEPT, ms=5, label="released")
    axis.plot(truth, rows, "|", color=MOVED, ms=11, mew=2, label="true count")
    axis.set_yticks(rows, names)
    axis.invert_yaxis()
    axis.spines["left"].set_visible(False)
    axis.tick_params(axis="y", length=0)
    axis.legend(frameon=False, loc="lower right")


def _quietly(script: Path, *options: str) -> dict[str, Any]:
    """Run a script without its output, and return its names."""
    kept, sys.argv = sys.argv, [str(script), *options]
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            return runpy.run_path(str(script), run_name="__main__")
    finally:
        sys.argv = kept


def box() -> Figure:
    """Example 2.3 of Two Views: an apple or a banana in a box, and then no apple."""
    worlds = ("apple and\nbanana", "apple\nalone", "banana\nalone", "nothing")
    before = np.array([0.0, 0.7, 0.3, 0.0])
    revised, updated = np.array([0, 0, 1.0, 0]), np.array([0, 0, 0.3, 0.7])
    figure, axes = plt.subplots(1, 3, figsize=(9.6, 3.1), sharey=True, layout="constrained")
    _bars(axes[0], before, BEFORE, worlds, "Before")
    for axis, title, law, colour, note in (
        (axes[1], "Revision: there is no apple", revised, KEPT, "ruled out"),
        (axes[2], "Update: the apple is taken out", updated, MOVED, "no longer possible"),
    ):
        axis.axvspan(-0.5, 1.5, color=FAINT, alpha=0.35, lw=0, zorder=0)
        axis.text(0.5, 1.05, note, ha="center", va="bottom", fontsize=8.5)
        axis.bar(1, before[1], width=0.62, fill=False, edgecolor=BEFORE, ls="--", lw=1.1)
        _bars(axis, law, colour, worlds, title)
    axes[2].add_patch(
        FancyArrowPatch(
            (1.36, 0.64), (2.64, 0.64), mutation_scale=13, arrowstyle="-|>", color=INK, lw=1.3
        )
    )
    axes[0].set_ylabel("probability")
    return figure


def _bars(axis: Axes, law: FloatArray, colour: str, names: tuple[str, ...], title: str) -> None:
    axis.bar(range(law.size), law, color=colour, width=0.62)
    for place, value in enumerate(law):
        axis.text(place, value + 0.015, f"{value:g}", ha="center", va="bottom", fontsize=9)
    axis.set(title=title, ylim=(0, 1.16), xlim=(-0.5, law.size - 0.5))
    axis.set_xticks(range(law.size), names, fontsize=8)
    axis.set_yticks([0, 0.5, 1])
    axis.tick_params(bottom=False)


def two_bins() -> Figure:
    """Example 4.1 of Gong and Meng on integers: two counts whose total is published exactly."""
    figure, axes = plt.subplots(
        2, 2, figsize=(8.6, 6.9), height_ratios=(2.5, 1), layout="constrained"
    )
    total = sum(TWO)
    pairs = np.array(np.meshgrid(range(-3, 12), range(-2, 13))).reshape(2, -1)
    noisy = np.exp(-np.abs(pairs - np.array(TWO)[:, None]).sum(0) / SCALE)
    laws = two_bin_laws()
    for axis, colour, (values, law) in zip(axes[0], (KEPT, MOVED), laws.values(), strict=True):
        axis.plot([-3, 11], [total + 3, total - 11], color=INK, lw=0.8, zorder=0)
        axis.scatter(*pairs[:, noisy > 0.01], s=170 * noisy[noisy > 0.01], color=BEFORE, lw=0)
        near = np.abs(values - TWO[0]) <= 6
        sizes = 170 * law[near] / law.max()
        axis.scatter(values[near], total - values[near], s=sizes, color=colour, lw=0, zorder=3)
        axis.plot(*TWO, marker="x", color="white", ms=7, mew=2, zorder=5)
        axis.set(xlim=(-2.6, 10.6), ylim=(-1.6, 11.6), aspect="equal")
        axis.set(xlabel="first count", ylabel="second count")
    kept, moved = axes[0]
    kept.set_title("Conditioning: keep what is on the line")
    moved.set_title("Imaging: move everything to the line")
    for a, b in ((2, 3), (6, 7), (4, 9), (4, 1), (8, 5), (0, 5), (1, 2), (7, 8)):
        step = (total - a - b) / 2
        arrow = {"arrowstyle": "-|>", "color": MOVED, "lw": 1.1, "shrinkA": 2, "shrinkB": 2}
        moved.annotate("", (a + step, b + step), (a, b), arrowprops=arrow, zorder=4)
    for axis, colour, (values, law) in zip(axes[1], (KEPT, MOVED), laws.values(), strict=True):
        near = np.abs(values - TWO[0]) <= 7
        axis.bar(values[near], law[near], width=0.42, color=colour)
        spread = float(((values - TWO[0]) ** 2 * law).sum())
        axis.set(xlim=(-2.6, 10.6), ylim=(0, 0.5), xlabel="first count, released")
        axis.text(0.98, 0.92, f"variance {spread:.2f}", ha="right", va="top",
                  transform=axis.transAxes)  # fmt: skip
    axes[1][0].set_ylabel("probability")
    return figure


def two_bin_laws() -> dict[str, tuple[FloatArray, FloatArray]]:
    """Return values and probabilities of the first bin, conditioned and moved in L2.

    Returns
    -------
    dict
        Of pairs of arrays of one length; the image's values are halves of integers.
    """
    tree = cg.Tree.from_paths([("all", "first"), ("all", "second")])
    noise = cg.DiscreteLaplace([np.inf, SCALE, SCALE])  # the total itself is not measured
    conditioned = cg.condition(cg.Additive(noise, tree), cg.consistent(tree) & cg.exactly(0))
    values, law = conditioned.marginal(1, [sum(TWO), *TWO])
    span = np.arange(-60, 61)
    single = np.tanh(0.5 / SCALE) * np.exp(-np.abs(span) / SCALE)
    difference = np.convolve(single, single)  # of two noises, and so of their halves
    halves = TWO[0] + np.arange(-120, 121) / 2
    return {"conditioning": (np.asarray(values, float), law), "imaging": (halves, difference)}


def three_cells() -> Figure:
    """Three counts, not below 0, with one total: the triangle on which releases lie."""
    figure, axes = plt.subplots(1, 2, figsize=(9.2, 4.3), layout="constrained")
    laws = three_cell_laws()
    most = max(law.max() for law in laws.values())
    titles = {"conditioning": "Conditioning", "imaging": "Imaging, rounded to integers"}
    for axis, (name, law), colour in zip(axes, laws.items(), (KEPT, MOVED), strict=True):
        total = sum(THREE)
        inside = np.array([(a, b) for a, b in np.ndindex(law.shape) if a + b <= total]).T
        x, y = inside[0] + inside[1] / 2, inside[1] * 3**0.5 / 2
        axis.scatter(x, y, s=4, color=FAINT, lw=0)
        axis.scatter(x, y, s=330 * law[*inside] / most, color=colour, lw=0)
        axis.plot(*_corner(*THREE[:2]), marker="x", color="white", ms=7, mew=2)
        edge = law[0].sum() + law[:, 0].sum() - law[0, 0]
        edge += sum(law[a, total - a] for a in range(1, total))
        axis.set(title=f"{titles[name]}: some count is 0 in {edge:.0%}", aspect="equal")
        axis.set(xlim=(-2.4, total + 2.4), ylim=(-1.5, total * 0.9 + 1.3))
        for (a, b), label in (((total, 0), "first = 12"), ((0, total), "second = 12"),
                              ((0, 0), "third = 12")):  # fmt: skip
            left, up = _corner(a, b)
            axis.text(left, up + (0.7 if b else -0.7), label, ha="center",
                      va="bottom" if b else "top", fontsize=8)  # fmt: skip
        axis.axis("off")
    return figure


def _corner(a: float, b: float) -> tuple[float, float]:
    """Return where a pair of counts lies in the triangle."""
    return a + b / 2, b * 3**0.5 / 2


def three_cell_laws() -> dict[str, FloatArray]:
    """Return the laws of the first two of three counts with one total, none below 0.

    Returns
    -------
    dict
        Of arrays of shape (13, 13), the probability of each pair; zero where it exceeds the total.
        The image is that of noise up to 22 on each count, which leaves out less than 1e-4; ties in
        rounding are broken in every order.
    """
    total = sum(THREE)
    span = np.arange(-22, 23)
    u = np.array(np.meshgrid(span, span, span, indexing="ij")).reshape(3, -1)
    weight = np.exp(-np.abs(u).sum(0) / SCALE)
    y = u + np.array(THREE)[:, None]
    held = (y.sum(0) == total) & (y >= 0).all(0)
    laws = {"conditioning": _table(y[:, held], weight[held], total)}
    moved = _onto_simplex(y.astype(float), total)
    orders = [list(order) for order in permutations(range(3))]
    rounded = [_rounded(moved[order], total)[np.argsort(order)] for order in orders]
    laws["imaging"] = sum(_table(z, weight, total) for z in rounded) / len(rounded)
    return laws


def _table(z: npt.NDArray[Any], weight: FloatArray, total: int) -> FloatArray:
    table = np.zeros((total + 1, total + 1))
    np.add.at(table, (z[0], z[1]), weight)
    return np.asarray(table / table.sum())


def _onto_simplex(y: FloatArray, total: float) -> FloatArray:
    """Return the closest columns that are not negative and add up (Michelot 1986)."""
    ordered = -np.sort(-y, axis=0)
    shift = (np.cumsum(ordered, axis=0) - total) / np.arange(1, len(y) + 1)[:, None]
    last = (ordered > shift).sum(0) - 1
    return np.asarray(np.maximum(y - shift[last, np.arange(y.shape[1])], 0.0))


def _rounded(z: FloatArray, total: int) -> npt.NDArray[np.int64]:
    """Return columns rounded by largest remainder; ties go to the first."""
    whole = np.floor(z + 1e-9).astype(np.int64)
    left = total - whole.sum(0)
    rank = np.argsort(np.argsort(-(z - whole), axis=0, kind="stable"), axis=0, kind="stable")
    return np.asarray(whole + (rank < left))


def regions() -> Figure:
    """Figure 2 of Two Views: where the exponent of three noises that cancel is linear."""
    figure, axis = plt.subplots(figsize=(4.9, 4.5), layout="constrained")
    side = np.linspace(-3, 3, 241)
    a, b = np.meshgrid(side, side)
    density = np.exp(-(np.abs(a) + np.abs(b) + np.abs(a + b))) / 1.5
    axis.contourf(a, b, density, levels=12, cmap="Blues")
    for x, y in (((-3, 3), (0, 0)), ((0, 0), (-3, 3)), ((-3, 3), (3, -3))):
        axis.plot(x, y, color=INK, lw=0.9)
    labels = (
        (1.7, 1.7, "$-2(u_1+u_2)$"), (-1.7, -1.7, "$2(u_1+u_2)$"), (-0.95, 2.3, "$-2u_2$"),
        (-2.3, 0.95, "$2u_1$"), (0.95, -2.3, "$2u_2$"), (2.3, -0.95, "$-2u_1$"),
    )  # fmt: skip
    for x, y, label in labels:
        axis.text(x, y, label, ha="center", va="center",
                  bbox={"color": "white", "alpha": 0.85, "pad": 1.5})  # fmt: skip
    axis.set(xlabel="$u_1$", ylabel="$u_2$", aspect="equal", xticks=(-2, 0, 2), yticks=(-2, 0, 2))
    axis.set_title("log density of $(u_1, u_2)$ given $u_1+u_2+u_3=0$")
    return figure


def hierarchy() -> Figure:
    """Figure 3 of Two Views: city, boroughs and zones."""
    boroughs = {
        "Bronx": 43, "Brooklyn": 61, "EWR": 1, "Manhattan": 69, "Queens": 69, "Staten Island": 20,
    }  # fmt: skip
    figure, axis = plt.subplots(figsize=(8.8, 3.1), layout="constrained")
    axis.set(xlim=(-0.7, 5.7), ylim=(-0.45, 2.35))
    axis.axis("off")
    _label(axis, 2.5, 2.0, "New York City", KEPT)
    for place, (name, zones) in enumerate(boroughs.items()):
        axis.plot([2.5, place], [1.82, 1.18], color=BEFORE, lw=0.9)
        _label(axis, place, 1.0, name, MOVED)
        shown = np.linspace(-0.32, 0.32, min(zones, 9)) if zones > 1 else [0.0]
        for offset in shown:
            axis.plot([place, place + offset], [0.82, 0.18], color=FAINT, lw=0.8, zorder=0)
            axis.add_patch(Circle((place + offset, 0.16), 0.028, color=BEFORE, lw=0))
        axis.text(place, -0.02, f"{zones} zone{'s' if zones > 1 else ''}", ha="center", va="top")
    for height, text in ((2.0, "level 1"), (1.0, "level 2"), (0.16, "level 3")):
        axis.text(-0.68, height + 0.24, text, fontsize=8, color="#5b616a")
    return figure


def _label(axis: Axes, x: float, y: float, text: str, colour: str) -> None:
    axis.text(x, y, text, ha="center", va="center", color="white", fontsize=9,
              bbox={"boxstyle": "round,pad=0.35", "color": colour})  # fmt: skip


def compositions() -> Figure:
    """What each rule distributes over: disjoint alternatives, and mixtures of mechanisms."""
    figure, axes = plt.subplots(1, 2, figsize=(9.2, 3.6), sharey=True, layout="constrained")
    values = np.arange(0, 13)

    def law(centre: float, scale: float) -> FloatArray:
        weight = np.exp(-np.abs(values - centre) / scale)
        return np.asarray(weight / weight.sum())

    outline = {"fill": False, "edgecolor": INK, "lw": 0.9, "width": 0.86, "zorder": 3}
    noisy = law(5, 2.5)
    first, second = values <= 2, values >= 9
    axes[0].bar(values, noisy, label="before", **outline)
    for part, colour, hatch, name in (
        (first, KEPT, "", "at most 2"), (second, PALE, "//", "at least 9"),
    ):  # fmt: skip
        kept = np.where(part, noisy, 0.0) / noisy[first | second].sum()
        axes[0].bar(values, kept, color=colour, hatch=hatch, width=0.6, label=f"after: {name}")
        text = f"{kept.sum():.0%} of releases"
        axes[0].text(values[part].mean(), kept.max() + 0.02, text, ha="center")
    axes[0].set_title("Conditioned on “at most 2, or at least 9”")
    near, far = law(4, 1.2), law(8, 1.2)
    bottom = np.zeros(values.size)
    low, high = 5, 9
    for part, colour, hatch, name in (
        (0.5 * near, KEPT, "", "first"), (0.5 * far, PALE, "//", "second"),
    ):  # fmt: skip
        image = np.zeros(values.size)
        np.add.at(image, np.clip(values, low, high), part)
        label = f"after: from the {name} mechanism"
        axes[1].bar(values, image, bottom=bottom, color=colour, hatch=hatch, width=0.6, label=label)
        bottom += image
    axes[1].bar(values, 0.5 * (near + far), label="before: both, half each", **outline)
    axes[1].set_title("Image on “5 to 9” of a mixture of two mechanisms")
    for axis in axes:
        axis.set(xlabel="released count", xticks=values[::2], ylim=(0, 0.62))
        axis.legend(frameon=False, fontsize=8.5, loc="upper right")
    axes[0].set_ylabel("probability")
    return figure


def guide() -> Figure:
    """Figure 1 of Two Views, as a map of the two ways and of what the library calls them."""
    figure, axis = plt.subplots(figsize=(9.2, 4.0), layout="constrained")
    axis.set(xlim=(0, 10), ylim=(0, 4.4))
    axis.axis("off")
    boxes = (
        (5.0, 3.8, "noisy counts M\nAdditive(noise, tree)", BEFORE, 2.6),
        (2.2, 2.3, "belief revision: conditioning\nK = condition(M, C)", KEPT, 3.6),
        (7.8, 2.3, "belief update: imaging\nP = image(M, C)", MOVED, 3.6),
    )
    for x, y, text, colour, width in boxes:
        axis.add_patch(
            FancyBboxPatch((x - width / 2, y - 0.38), width, 0.76, color=colour,
                           boxstyle="round,pad=0.04")
        )  # fmt: skip
        axis.text(x, y, text, ha="center", va="center", color="white", fontsize=9)
    arrow = {"arrowstyle": "-|>", "color": INK, "lw": 1.2}
    for x, label, side in (
        (2.2, "given that C holds", "right"),
        (7.8, "moved until C holds", "left"),
    ):
        axis.annotate("", (x, 2.76), (5.0 + (x - 5) * 0.25, 3.34), arrowprops=arrow)
        axis.text((x + 5) / 2 - (0.9 if x < 5 else -0.9), 3.25, label, ha=side, fontsize=9)
    told = {
        2.2: "law known: the noise's own, given C\nfree under equalities, bounds cost up to 1 + γ\n"
        "splits over disjoint alternatives\nleast divergence from M",
        7.8: "law: that of M, moved\nfree, where C does not depend on the data\n"
        "splits over mixtures of mechanisms\nleast distance of each release",
    }
    for x, text in told.items():
        axis.text(x, 1.62, text, ha="center", va="top", fontsize=9, linespacing=1.6)
    return figure


def sum_network() -> Figure:
    """A node and its two parts as tables: weights, their sum, its product, and a draw."""
    u = np.arange(-8, 9)

    def weight(scale: float, center: int) -> FloatArray:
        found = np.exp(-np.abs(u - center) / scale)
        return np.asarray(found / found.sum())

    first, second, own = weight(1.5, -3), weight(2.5, 2), weight(2.0, 3)
    merged = np.convolve(first, second, "same")
    product = merged * own / (merged * own).sum()
    total = 2
    split = first * np.array([second[8 + total - v] if abs(total - v) <= 8 else 0.0 for v in u])
    panels = (
        ((0, 0), first, BEFORE, "weight of the first part"),
        ((1, 0), second, BEFORE, "weight of the second part"),
        ((0, 1), merged, BEFORE, "MERGE: law of the parts' sum"),
        ((1, 1), own, BEFORE, "weight of the node's own noise"),
        ((0, 2), product, KEPT, "PRODUCT: law of the node"),
        ((1, 2), split / split.sum(), MOVED, f"first part, once the node is {total}"),
    )
    figure, axes = plt.subplots(2, 3, figsize=(9.6, 4.2), sharex=True, layout="constrained")
    for place, law, colour, title in panels:
        axis = axes[place]
        axis.bar(u, law, color=colour, width=0.9)
        axis.set(title=title, yticks=[], ylim=(0.0, 0.42))
    axes[0, 2].axvline(total, color=INK, lw=1.0, ls=":")
    axes[0, 2].text(total + 0.3, 0.38, f"drawn: {total}", fontsize=8)
    figure.supxlabel("noise, in counts", fontsize=9)
    return figure


def layers() -> Figure:
    """The folders of the package by layer, as the table of docs/architecture.md has them."""
    text = (Path(__file__).parents[1] / "architecture.md").read_text(encoding="utf-8")
    rows = [
        (name, re.findall(r"`([^`]+)`", folders))
        for name, folders in re.findall(r"^\| (\w+) \| (`[^|]*) \|", text, re.MULTILINE)
        if name in LAYERS
    ]
    figure, axis = plt.subplots(figsize=(9.2, 5.6), layout="constrained")
    axis.set(xlim=(0, 10), ylim=(-0.1, len(rows) + 0.1))
    axis.axis("off")
    colours = plt.get_cmap("Blues")(np.linspace(0.75, 0.25, len(rows)))
    for height, (name, folders) in enumerate(rows):
        axis.text(0.0, height + 0.5, name, va="center", fontsize=10, fontweight="bold")
        width = 8.9 / len(folders)
        for place, folder in enumerate(folders):
            left = 1.1 + place * width
            axis.add_patch(
                FancyBboxPatch((left + 0.05, height + 0.14), width - 0.1, 0.72,
                               color=colours[height], boxstyle="round,pad=0.02")
            )  # fmt: skip
            shown = (
                "errors · namespaces · randomness · types · wording" if folder == "." else folder
            )
            axis.text(
                left + width / 2, height + 0.5, shown.replace("/", "/\n"), ha="center",
                va="center", fontsize=7.5, color="white" if height < len(rows) / 2 else INK,
            )  # fmt: skip
    axis.annotate(
        "", (0.93, len(rows) - 0.1), (0.93, 0.1), arrowprops={"arrowstyle": "<|-", "color": INK}
    )
    return figure


FIGURES: dict[str, Callable[[], Figure]] = {
    "box": box,
    "city-noisy": city_noisy,
    "city-released": city_released,
    "city-true": city_true,
    "clinics": clinics,
    "compositions": compositions,
    "errors": errors,
    "guide": guide,
    "hierarchy": hierarchy,
    "layers": layers,
    "sum-network": sum_network,
    "regions": regions,
    "three-cells": three_cells,
    "two-bins": two_bins,
    "zones": zones,
}


def draw(place: Path) -> list[Path]:
    """Write every picture as SVG.

    Parameters
    ----------
    place : Path
        An existing directory.

    Returns
    -------
    list of Path
        The files written.
    """
    written = []
    with mpl.rc_context(STYLE):
        mpl.use("Agg")
        for name, make in FIGURES.items():
            figure = make()
            written.append(place / f"{name}.svg")
            figure.savefig(written[-1], metadata={"Date": None, "Creator": None})
            plt.close(figure)
    return written


if __name__ == "__main__":
    for path in draw(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent):
        print(f"Wrote {path.name}.")
