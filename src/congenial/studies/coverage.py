"""How often intervals hold the count, and how far estimates are off, by size of the count."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from congenial.randomness import seeded
from congenial.studies.coverage_methods import (
    ALPHA,
    CLASSES,
    DECILES,
    FloatArray,
    Tally,
    tallies,
)
from congenial.studies.record import Cell, Figure, Study, Table, replicates
from congenial.studies.sources import blocks, taxi

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

# Scale of the noise on every node, and replicates: of trips by zone, of people by block.
SCALE = 4.0
ZONES, BLOCKS = 1_000, 40


def run(seed: int, effort: float) -> Study:
    """Run every method on taxi trips by zone and on people by census block.

    Parameters
    ----------
    seed : int
    effort : float
        Share of the full study's replicates.
    """
    source = seeded(seed)
    worlds = {
        "zones": (*taxi(), replicates(ZONES, effort, least=4)),
        "blocks": (*blocks(), replicates(BLOCKS, effort, least=2)),
    }
    found = {
        name: tallies(tree, x, SCALE, count, source) for name, (tree, x, count) in worlds.items()
    }
    titles = {
        "zones": f"trips by taxi zone, {worlds['zones'][2]} replicates",
        "blocks": f"people by census block, {worlds['blocks'][2]} replicates",
    }
    tables = []
    for name, made in found.items():
        tables += [_coverage(name, titles[name], made), _bias(name, titles[name], made)]
    figure = Figure(
        "bias", "Bias by decile of the true count", lambda c: _draw(c, found), size=(10.0, 4.2)
    )
    title = "Coverage of intervals and bias of estimates, by size of the count"
    return Study("coverage", title, _findings(found), tuple(tables), (figure,))


def _names() -> tuple[str, ...]:
    ends = [*(c - 1 for c in CLASSES[1:]), None]
    return tuple(
        f"{low:,} and more" if high is None else str(low) if low == high else f"{low:,} to {high:,}"
        for low, high in zip(CLASSES, ends, strict=True)
    )


def _mean(values: FloatArray) -> float | None:
    """Mean over replicates, None where a class has no leaf."""
    return None if np.isnan(values).any() else float(values.mean())


def _coverage(name: str, title: str, made: tuple[Tally, ...]) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for tally in made:
        shares = (_mean(column) for column in tally.covered.T)
        rows.append((tally.method, "coverage", *shares))
        rows.append((tally.method, "mean width", *(_mean(column) for column in tally.width.T)))
    return Table(
        f"{name}-coverage",
        f"Intervals of {1 - ALPHA:.0%}: {title}",
        ("method", "what", *_names()),
        tuple(rows),
        ("Columns are classes of the true count of a leaf.",),
    )


def _bias(name: str, title: str, made: tuple[Tally, ...]) -> Table:
    rows: list[tuple[Cell, ...]] = [
        (
            tally.method,
            float(tally.error.mean()),
            *(float(b) for b in tally.bias.mean(axis=0)),
            float(tally.bias[:, -1].std(ddof=1) / np.sqrt(tally.bias.shape[0])),
        )
        for tally in made
    ]
    deciles = tuple(str(k) for k in range(1, DECILES + 1))
    return Table(
        f"{name}-bias",
        f"Mean absolute error of a leaf, and bias by decile of the true count: {title}",
        ("method", "error", *deciles, "standard error of 10"),
        tuple(rows),
        ("Estimates of posteriors are their means.",),
    )


def _findings(found: dict[str, tuple[Tally, ...]]) -> tuple[str, ...]:
    told = [
        f"Discrete Laplace noise of scale {SCALE:g} on every node; each interval is meant to hold "
        f"the count with probability {1 - ALPHA:.0%}. The same measurements are given to all "
        "methods but conditioning, which draws its own. The margins of conditioning that adds up "
        "are exact; for conditioning on bounds they are those without the bounds, which nothing "
        "proves. TopDown has the margin of one measurement, as a user might take it."
    ]
    for name, made in found.items():
        by = {tally.method: tally for tally in made}
        free, flat, fitted = (
            by[method]
            for method in ("conditioning, adds up", "posterior, flat", "posterior, fitted")
        )
        worst = {t.method: float(np.nanmin(t.covered.mean(axis=0))) for t in made}
        least = min(worst, key=lambda method: worst[method])
        told.append(
            f"On {name}, the exact margins hold in {_range(free)} of the cases, whatever the "
            f"class; those of the fitted posterior in {_range(fitted)}, of the flat one in "
            f"{_range(flat)}. The least is {worst[least]:.1%}, of {least}. In the top decile the "
            f"mean of the flat posterior is off by {flat.bias[:, -1].mean():+.2f}, that of the "
            f"fitted one by {fitted.bias[:, -1].mean():+.2f}; in the lowest by "
            f"{flat.bias[:, 0].mean():+.2f} and {fitted.bias[:, 0].mean():+.2f}. The mean absolute "
            f"error of a leaf is {flat.error.mean():.2f} and {fitted.error.mean():.2f}, against "
            f"{by['L2, normal'].error.mean():.2f} of L2, "
            f"{by['L2 ≥ 0, normal'].error.mean():.2f} of L2 with no count below 0, "
            f"{free.error.mean():.2f} of conditioning and "
            f"{by['conditioning, ≥ 0 too'].error.mean():.2f} of conditioning with no count below 0."
        )
    told.append(
        "A conditioned release can be nearer to the counts than the best estimate from noise that "
        "was not conditioned: its noise is drawn from the law at perfect agreement of all nodes."
    )
    told.append(
        "Coverage of a posterior holds on average over counts like those of its prior, not in "
        "every class: estimates are drawn towards their family, the more the smaller the count."
    )
    return tuple(told)


def _range(tally: Tally) -> str:
    shares = tally.covered.mean(axis=0)
    return f"{np.nanmin(shares):.1%} to {np.nanmax(shares):.1%}"


def _draw(canvas: Canvas, found: dict[str, tuple[Tally, ...]]) -> None:
    """Draw the bias of every method by decile."""
    panels = canvas.subplots(1, len(found))
    for axes, (name, made) in zip(panels, found.items(), strict=True):
        for tally in made:
            axes.plot(
                range(1, DECILES + 1), tally.bias.mean(axis=0), marker="o", label=tally.method
            )
        axes.axhline(0.0, color="0.7", linewidth=0.8)
        axes.set_title(name)
        axes.set_xlabel("decile of the true count")
        axes.set_ylabel("mean of estimate less count")
    panels[0].legend(frameon=False, fontsize="small")
