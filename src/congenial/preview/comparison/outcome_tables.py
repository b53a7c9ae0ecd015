"""A comparison: its results, and these as tables, as text and as a figure."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table as Grid

from congenial.errors import ArgumentError
from congenial.exhibits.exhibit import Cell, Exhibit, Figure
from congenial.exhibits.plots import axes_or_new, legend_below
from congenial.plan.sections import LAPLACE
from congenial.preview.comparison.methods import WAYS
from congenial.preview.comparison.outcome import QUANTILES, Contender, Refused, Result, SizeError
from congenial.preview.comparison.tally import size_label
from congenial.wording import many, rounded_up

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas


_DISTANCES = (
    "Imaging moves to the closest counts. L1 is the sum of absolute differences, and L2 of squared "
    "differences."
)
# Width of a terminal, in characters, if it is not known.
WIDTH = 132


@dataclass(frozen=True)
class Comparison:
    """All contenders on the same counts.

    Attributes
    ----------
    plan : dict
        The plan as plain data.
    basis : str
        Which counts the releases were made of.
    options : str
        Options of the command that gives the same.
    stamp : str or None
        Warning on every table and figure; None unless the counts are confidential.
    """

    plan: dict[str, Any]
    basis: str
    options: str
    stamp: str | None
    replicates: int
    seed: int
    results: tuple[Result, ...]
    refused: tuple[Refused, ...]

    def __str__(self) -> str:
        """Lay the comparison out as text, for a terminal."""
        return as_text(self)

    def plot(self, what: Literal["errors", "bias"] = "errors", *, ax: Axes | None = None) -> Axes:
        """Plot the errors of all methods.

        Parameters
        ----------
        what : {"errors", "bias"}
            "errors" has the mean absolute error of a count by level; "bias" the bias by the size of
            the true count, at the deepest level. Lines are two standard errors long each way.
        ax : matplotlib.axes.Axes, optional
            A new figure's by default.

        Returns
        -------
        matplotlib.axes.Axes

        Raises
        ------
        ArgumentError
            If `what` is neither of the two.
        UnsupportedError
            If Matplotlib is not installed.
        """
        if what not in ("errors", "bias"):
            raise ArgumentError(f"what is {what!r}; give 'errors' or 'bias'.")
        ax = axes_or_new(ax)
        (_draw_errors if what == "errors" else _draw_bias)(ax, self)
        legend_below(ax, 4.0 if what == "errors" else 6.5)
        title = "Error by level" if what == "errors" else "Bias by size of the true count"
        ax.set_title(title if self.stamp is None else f"{self.stamp}: {title}", loc="left")
        return ax


def label(contender: Contender, found: Comparison) -> str:
    """Name a contender, with its noise where several compete."""
    noises = {r.contender.noise for r in found.results} | {r.contender.noise for r in found.refused}
    short = contender.noise.removeprefix("discrete-").capitalize()
    return f"{contender.name}, {short}" if len(noises) > 1 else contender.name


def short_size_label(bias: SizeError) -> str:
    """Name a range of true counts by where it begins."""
    return "0" if bias.high == 0 else f"≥ {bias.low:,}"


def methods_table(found: Comparison) -> Exhibit:
    """Return the guarantee of each method."""
    rows: list[tuple[Cell, ...]] = [
        (r.contender.name, r.contender.noise, r.epsilon, r.delta, _satisfied(r), "")
        for r in found.results
    ]
    rows += [
        (r.contender.name, r.contender.noise, None, None, "not drawn", r.reason)
        for r in found.refused
    ]
    return Exhibit(
        "methods",
        "Methods",
        ("method", "noise", "epsilon", "delta", "satisfies invariants", "why it does not fit"),
        tuple(rows),
        (
            "Every method has the same epsilon in its guarantee. The cost of bounds is included, "
            "so methods for which bounds cost privacy have more noise. In the names of methods, "
            "L1 and L2 are the distances by which imaging moves to the closest counts.",
        ),
    )


def errors_table(found: Comparison) -> Exhibit:
    """Return the errors of each method at each level."""
    rows: list[tuple[Cell, ...]] = [
        (
            level.level,
            level.nodes,
            r.contender.name,
            r.contender.noise,
            level.scale,
            level.l1,
            level.l1_error,
            level.l2,
            *level.quantiles,
        )
        for at in range(len(found.results[0].levels))
        for r in found.results
        for level in (r.levels[at],)
    ]
    return Exhibit(
        "errors",
        "Error by level",
        (
            *("level", "counts", "method", "noise", "noise scale", "L1", "standard error", "L2"),
            *(f"{100 * q:g}%" for q in QUANTILES),
        ),
        tuple(rows),
        (
            "Errors are in counts, over all counts of the level and all releases. The column `L1` "
            "is the mean absolute error, with its standard error over releases. The column `L2` is "
            "the root of the mean squared error. The last columns are quantiles of the absolute "
            "error.",
        ),
    )


def bias_table(found: Comparison) -> Exhibit:
    """Return the error and bias of each method by level and size of the true count."""
    rows: list[tuple[Cell, ...]] = [
        (
            size.level,
            size_label(size.low, size.high),
            size.nodes,
            r.contender.name,
            r.contender.noise,
            size.l1,
            size.bias,
            size.standard_error,
        )
        for at in range(len(found.results[0].sizes))
        for r in found.results
        for size in (r.sizes[at],)
    ]
    return Exhibit(
        "bias",
        "Error and bias by size of the true count",
        ("level", "true count", "counts", "method", "noise", "L1", "bias", "standard error"),
        tuple(rows),
        (
            "Counts that are published exactly are left out. `L1` is the mean absolute error. "
            "`bias` is the mean of released minus true count, with its standard error over "
            "releases.",
        ),
    )


def times_table(found: Comparison) -> Exhibit:
    """Return the times of releases, the only numbers that differ between runs."""
    rows = tuple(
        (r.contender.name, r.contender.noise, r.seconds.first, r.seconds.further)
        for r in found.results
    )
    return Exhibit(
        "times",
        "Time per release",
        ("method", "noise", "first release, s", "each further one, s"),
        rows,
        (
            "Time elapsed on the machine that ran the comparison, without counting rows and "
            "writing files. The first release includes the preparation of the sampler. The times "
            "change from run to run.",
        ),
    )


def as_text(found: Comparison, *, width: int = WIDTH, colour: bool = False) -> str:
    """Lay a comparison out for a terminal."""
    file = io.StringIO()
    out = Console(file=file, width=width, force_terminal=colour, highlight=False, markup=False)
    if found.stamp is not None:
        out.print(found.stamp, style="bold red")
    for line in head(found):
        out.print(line)
    for grid in (_methods(found), _errors(found), _bias(found)):
        out.print()
        out.print(grid)
    if any(r.contender.name.startswith("imaging") for r in found.results):
        out.print(_DISTANCES)
    for refused in found.refused:
        out.print(f"Left out: {label(refused.contender, found)}. {refused.reason}")
    out.print("Nothing was spent. These are simulations; do not publish them as releases.")
    return "\n".join(line.rstrip() for line in file.getvalue().splitlines())


def head(found: Comparison) -> Iterator[str]:
    """Yield the sentences that come before the tables."""
    privacy = found.plan["privacy"]
    yield (
        f"Each method made {found.replicates:,} releases at epsilon {privacy['epsilon']:g} "
        f"(neighbours: {privacy['neighbours']}; seed: {found.seed})."
    )
    yield f"The methods were compared on {found.basis}."


def _grid(title: str, text: Sequence[str], numbers: Sequence[str]) -> Grid:
    """Return an empty table; columns of numbers are aligned on the right."""
    grid = Grid(*text, title=title, title_justify="left", box=SIMPLE_HEAD)
    for name in numbers:
        grid.add_column(name, justify="right")
    return grid


def _satisfied(result: Result) -> str:
    return "always" if result.satisfied else "no"


def _methods(found: Comparison) -> Grid:
    times = "time, first release", "time, each later one"
    grid = _grid("Methods", ("method", "(epsilon, delta)", "obeys invariants"), times)
    for r in found.results:
        grid.add_row(
            label(r.contender, found),
            f"({rounded_up(r.epsilon, 6)}, {rounded_up(r.delta, 2)})",
            _satisfied(r),
            f"{r.seconds.first:.3g} s",
            f"{r.seconds.further:.3g} s",
        )
    return grid


def _errors(found: Comparison) -> Grid:
    quantiles = [f"{100 * q:g}%" for q in QUANTILES]
    title = (
        "Error by level, in counts (50%, 90%, 99%: quantiles of the absolute error; ±: standard "
        "error)"
    )
    errors = "noise scale", "L1 (mean)", "L2 (root mean square)", *quantiles
    grid = _grid(title, ("level", "method"), errors)
    for at, level in enumerate(found.results[0].levels):
        if all(r.levels[at].l1 == 0.0 for r in found.results):
            grid.add_row(level.level, "all", "-", "0", "0", "0", "0", "0", end_section=True)
            continue
        for r in found.results:
            e = r.levels[at]
            grid.add_row(
                f"{level.level} ({level.nodes:,})" if r is found.results[0] else "",
                label(r.contender, found),
                "-" if e.scale is None else f"{e.scale:.4g}",
                f"{e.l1:.4g} ± {e.l1_error:.1g}",
                f"{e.l2:.4g}",
                *(f"{q:g}" for q in e.quantiles),
                end_section=r is found.results[-1],
            )
    return grid


def _bias(found: Comparison) -> Grid:
    level = found.results[0].levels[-1].level
    title = f"Bias by size of the true count, level {level}"
    sizes = [s for s in found.results[0].sizes if s.level == level]
    grid = _grid(
        title,
        ("method",),
        [f"{size_label(s.low, s.high)}\n({many(s.nodes, 'count')})" for s in sizes],
    )
    for r in found.results:
        own = [s for s in r.sizes if s.level == level]
        cells = (f"{s.bias:+.2f}±{s.standard_error:.1g}" for s in own)
        grid.add_row(label(r.contender, found), *cells)
    return grid


def figure(found: Comparison) -> Figure:
    """Return the figure; Laplace noise is drawn filled, Gaussian noise open and dotted."""
    title = "Error by level, and bias by size at the deepest level"
    return Figure("methods", title, lambda canvas: _draw(canvas, found), size=(11.0, 5.0))


def _draw(canvas: Canvas, found: Comparison) -> None:
    axes = canvas.subplots(1, 2)
    _draw_errors(axes[0], found)
    _draw_bias(axes[1], found)
    handles, labels = axes[1].get_legend_handles_labels()
    canvas.legend(handles, labels, loc="outside lower center", ncols=5, fontsize="x-small")
    if found.stamp is not None:
        canvas.suptitle(found.stamp)


def _look(contender: Contender) -> tuple[str, bool]:
    """Return the colour of a method, and whether its marks are filled."""
    names = [name for name, _, _ in WAYS]
    return f"C{names.index(contender.name)}", contender.noise == LAPLACE


def _draw_errors(axes: Axes, found: Comparison) -> None:
    first = found.results[0].levels
    shown = [i for i in range(len(first)) if any(r.levels[i].l1 > 0 for r in found.results)]
    width = 0.8 / len(found.results)
    for at, r in enumerate(found.results):
        places = [i + (at - 0.5 * (len(found.results) - 1)) * width for i in range(len(shown))]
        errors = [r.levels[i] for i in shown]
        colour, full = _look(r.contender)
        axes.bar(
            places,
            [e.l1 for e in errors],
            0.9 * width,
            yerr=[2.0 * e.l1_error for e in errors],
            color=colour if full else "white",
            edgecolor=colour,
            error_kw={"linewidth": 1},
            label=label(r.contender, found),
        )
    axes.set_xticks(range(len(shown)), [first[i].level for i in shown])
    axes.set_ylabel("mean absolute error of a count")


def _draw_bias(axes: Axes, found: Comparison) -> None:
    deepest = found.results[0].levels[-1].level
    for at, r in enumerate(found.results):
        sizes = [s for s in r.sizes if s.level == deepest]
        colour, full = _look(r.contender)
        apart = 0.04 * (at - 0.5 * (len(found.results) - 1))
        axes.errorbar(
            [i + apart for i in range(len(sizes))],
            [s.bias for s in sizes],
            yerr=[2.0 * s.standard_error for s in sizes],
            color=colour,
            marker="o",
            markersize=4,
            markerfacecolor=colour if full else "white",
            linestyle="-" if full else ":",
            linewidth=1,
            label=label(r.contender, found),
        )
    sizes = [s for s in found.results[0].sizes if s.level == deepest]
    axes.axhline(0.0, color="black", linewidth=0.6)
    axes.set_xticks(range(len(sizes)), [short_size_label(s) for s in sizes], rotation=30)
    axes.set_xlabel("true count")
    axes.set_ylabel("bias, with two standard errors")
