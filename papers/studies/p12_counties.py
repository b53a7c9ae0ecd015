"""Real tables of sex by age: every county of the United States, and California's by TopDown."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from congenial.conditioning.choice import condition
from congenial.exhibits.exhibit import Exhibit
from congenial.imaging.update import image
from congenial.invariants.written import nonnegative
from congenial.randomness import Randomness
from congenial.types import IntArray
from papers.studies.looks import ERRORS, frame, legend_below, line
from papers.studies.p12_equal import scale_of
from papers.studies.p12_methods import CELLS, mechanism, totals_of
from papers.studies.sources import california_topdown, counties
from papers.studies.study import replicates

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

Method = Callable[[IntArray], npt.NDArray[np.int64 | np.float64]]

CLASSES = 5
# The final epsilon of noise of scale 1 on every cell, as two cells change, and the name of the
# method that has it with wider noise.
FINAL = 2.0
AT_FINAL = f"exact, final ε = {FINAL:g}"
# Epsilons at which California's counties are conditioned, beside the Bureau's own release.
EPSILONS = (0.04, 0.06, 0.09, 0.15, 0.3, 0.5, 1.0)


def by_population(source: Randomness, effort: float, apart: Randomness) -> Exhibit:
    """Mean error of a county's table by size of the county; one release of each county.

    Parameters
    ----------
    source : Randomness
    effort : float
        Share of the counties to take, spread over all sizes.
    apart : Randomness
        Of conditioning at the final epsilon of the others, so that these draw as without it.
    """
    every = counties().cells
    order = np.argsort(every.sum(axis=1), kind="stable")
    taken = order[
        np.linspace(0, order.size - 1, replicates(order.size, effort, least=50)).astype(int)
    ]
    fine, coarse = mechanism(1.0), mechanism(2.0)
    equal = mechanism(scale_of(FINAL, bounded=True))
    methods: dict[str, Method] = {
        "noise, ε = 1": lambda t: fine.sample(t, rng=source),
        "NNL2, ε = 1": lambda t: image(fine, totals_of(t) & nonnegative()).sample(t, rng=source),
        "exact, ε = 1": lambda t: np.asarray(
            condition(fine, totals_of(t) & nonnegative()).sample(t, rng=source)
        ),
        "exact, ε = 0.5": lambda t: np.asarray(
            condition(coarse, totals_of(t) & nonnegative()).sample(t, rng=source)
        ),
        AT_FINAL: lambda t: np.asarray(
            condition(equal, totals_of(t) & nonnegative()).sample(t, rng=apart)
        ),
    }
    rows = []
    for k, members in enumerate(np.array_split(taken, CLASSES), start=1):
        tables = every[members]
        people = tables.sum(axis=1)
        shown = f"{k}: {people.min():,} to {people.max():,}"
        for method, draw in methods.items():
            errors = np.array([np.abs(draw(t) - t).sum() for t in tables])
            small = np.array([(t <= 5).mean() for t in tables]).mean()
            rows.append(
                (
                    shown,
                    int(members.size),
                    float(small),
                    method,
                    float(errors.mean()),
                    float(errors.std(ddof=1) / np.sqrt(errors.size)),
                )
            )
    return Exhibit(
        "counties",
        "Real counties: error of one release of each",
        (
            "population",
            "counties",
            "share of cells with 5 people or fewer",
            "method",
            "mean L1",
            "standard error",
        ),
        tuple(rows),
        ("Table P12 of the 2010 Census. Each class has a fifth of the counties.",),
    )


def california(source: Randomness, effort: float) -> Exhibit:
    """Error of California's county tables as the Census Bureau released them, and conditioned.

    Parameters
    ----------
    source : Randomness
    effort : float
        Share of the counties to take.
    """
    theirs, every = california_topdown(), counties()
    place = {code: i for i, code in enumerate(every.codes)}
    count = min(len(theirs.codes), replicates(len(theirs.codes), effort, least=6))
    taken = np.linspace(0, len(theirs.codes) - 1, count).astype(int)
    truth = every.cells[[place[theirs.codes[i]] for i in taken]]
    rows = [_row("TopDown, March 2022", None, theirs.cells[taken], truth)]
    for epsilon in EPSILONS:
        noise = mechanism(1.0 / epsilon)
        drawn = np.array(
            [condition(noise, totals_of(t) & nonnegative()).sample(t, rng=source) for t in truth]
        )
        rows.append(_row("exact conditioning", epsilon, drawn, truth))
    return Exhibit(
        "california",
        "California: the Census Bureau's TopDown release and exact conditioning",
        (
            "release",
            "ε per cell",
            "counties",
            "mean L1 of a county",
            "median",
            "largest",
            "with the total as counted",
        ),
        tuple(rows),
        (
            "Errors are distances from the 2010 Census as published. TopDown spends its ε on many "
            "tables and levels, and keeps the totals of states, not of counties. Conditioning "
            "spends ε on this one table only, and keeps three totals of every county. So the rows "
            "are not at equal privacy.",
        ),
    )


def _row(
    name: str, epsilon: float | None, drawn: IntArray, truth: IntArray
) -> tuple[str | int | float | None, ...]:
    errors = np.abs(drawn - truth).sum(axis=1)
    kept = int((drawn.sum(axis=1) == truth.sum(axis=1)).sum())
    return (
        name,
        epsilon,
        int(errors.size),
        float(errors.mean()),
        float(np.median(errors)),
        int(errors.max()),
        kept,
    )


def equal_error(table: Exhibit) -> float:
    """Return the epsilon at which conditioning has TopDown's mean error, between those tried."""
    target = np.log(float(str(table.rows[0][3])))
    epsilons = np.log([float(str(row[1])) for row in table.rows[1:]])
    errors = np.log([float(str(row[3])) for row in table.rows[1:]])
    order = np.argsort(errors)
    return float(np.exp(np.interp(target, errors[order], epsilons[order])))


def population_figure(canvas: Canvas, table: Exhibit) -> None:
    """Draw the mean error of each method at one final epsilon, by the size of the county."""
    axes = canvas.subplots()
    shown = {
        "noise, ε = 1": "noise alone (scale 1)",
        "NNL2, ε = 1": "NNL2 (scale 1)",
        AT_FINAL: f"exact conditioning (scale {scale_of(FINAL, bounded=True):.3g})",
    }
    classes = list(dict.fromkeys(table.column("population")))
    for place, (method, label) in enumerate(shown.items()):
        rows = [row for row in table.rows if row[3] == method]
        means, errors = ([float(str(row[k])) for row in rows] for k in (4, 5))
        axes.errorbar(
            range(len(rows)),
            means,
            yerr=[ERRORS * error for error in errors],
            capsize=3,
            label=label,
            **line(place),
        )
    names = [str(c).split(": ")[1].replace(" to ", "\nto ") for c in classes]
    axes.set_xticks(range(len(classes)), names)
    axes.set_xlabel("people in the county, a fifth of all counties each")
    axes.set_ylabel(f"mean L1 distance\nover {CELLS} cells, in people")
    axes.set_ylim(bottom=0)
    frame(axes)
    legend_below(canvas, axes, len(shown))
