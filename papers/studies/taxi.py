"""Two Views, Tables 2 and 3: taxi trips by city, borough and zone, 270 queries.

The paper does not state its noise scale. Everything is run at 1/epsilon on each query; the study
says which other scales the printed values would need.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from congenial.exhibits.exhibit import Cell, Exhibit, Figure
from congenial.randomness import seeded
from papers.studies import taxi_methods as methods
from papers.studies.looks import ERRORS, INK, frame, legend_below, line
from papers.studies.sources import taxi
from papers.studies.study import Study, replicates
from papers.studies.taxi_methods import (
    CHAINS,
    EPSILONS,
    Cells,
    Chain,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

LEVELS = (1, 2, 3)
NAMES = ("the city", "boroughs", "zones")
# Two Views, Table 2 (Table 3 of its appendix is the same): L1 distance over 270, by level.
PRINTED_MH = {
    0.5: (0.013352, 0.028890, 1.680823),
    1.0: (0.018244, 0.057345, 1.534053),
    2.0: (0.003445, 0.015032, 1.052862),
}
PRINTED_TOPDOWN = {
    0.5: (0.036806, 0.162698, 2.345461),
    1.0: (0.023974, 0.091148, 1.526361),
    2.0: (0.005173, 0.027614, 1.260267),
}


def run(seed: int, effort: float) -> Study:
    """Run every method on the taxi trips.

    Parameters
    ----------
    seed : int
    effort : float
        Share of the full study's replicates.
    """
    tree, x = taxi()
    source = seeded(seed)
    count = replicates(methods.REPLICATES, effort, least=20)
    cells = [
        made
        for epsilon in EPSILONS
        for noise in ("continuous", "integer")
        for made in methods.errors(tree, x, epsilon, noise, count, source)
    ]
    chains = [
        methods.run_chain(tree, x, epsilon, replicates(steps, effort, least=200), source)
        for epsilon in EPSILONS
        for steps in methods.STEPS
    ]
    tables = (
        _summary(cells, "continuous", chains),
        _summary(cells, "integer", chains),
        _chain_table(chains),
        _implied(cells),
        _accuracy(cells),
    )
    figure = Figure(
        "accuracy",
        "Mean error by level",
        lambda c: _draw(c, cells),
        size=(10.0, 4.4),
        note="Noise is continuous. Bars are 2 standard errors; those of zones are within the dots.",
    )
    title = "Taxi trips by city, borough and zone: Tables 2 and 3 of Two Views"
    return Study("taxi", title, _findings(cells, chains), tables, (figure,))


def _summary(cells: list[Cells], noise: str, chains: list[Chain]) -> Exhibit:
    """Give the paper's two columns, the chain's and every method's, side by side."""
    here = [c for c in cells if c.noise == noise]
    names = list(dict.fromkeys(c.method for c in here))
    most = max(c.steps for c in chains)
    longest = {c.epsilon: c for c in chains if c.steps == most}
    rows: list[tuple[Cell, ...]] = []
    for epsilon in EPSILONS:
        found = {c.method: c for c in here if c.epsilon == epsilon}
        for i, level in enumerate(LEVELS):
            chain = longest[epsilon]
            rows.append(
                (
                    epsilon,
                    level,
                    PRINTED_MH[epsilon][i],
                    f"{chain.mean[i]:.3g}" + ("" if chain.settled else " (not converged)"),
                    PRINTED_TOPDOWN[epsilon][i],
                    *(f"{found[m].mean[i]:.3g} ± {found[m].standard_error[i]:.1g}" for m in names),
                )
            )
    rounded = f" Exact draws of this noise are rounded to 1/{1 / methods.FINE:.0f} trip."
    if noise != "continuous":
        rounded = ""
    columns = ("ε", "level", "printed M_MH", "M_MH here", "printed TopDown", *names)
    return Exhibit(
        f"summary-{noise}",
        f"Mean error, {noise} noise",
        columns,
        tuple(rows),
        (
            "An error is the L1 distance at a level divided by 270. The noise has scale 1/ε on "
            f"each of the 270 queries. `M_MH here` is the run of {most:,} steps a chain, with "
            f"continuous noise.{rounded}",
        ),
    )


def _accuracy(cells: list[Cells]) -> Exhibit:
    rows = tuple(
        (
            c.epsilon,
            level,
            c.noise,
            c.method,
            float(c.mean[i]),
            float(c.standard_error[i]),
            float(c.spread[i]),
            int(c.errors.shape[0]),
        )
        for c in cells
        for i, level in enumerate(LEVELS)
    )
    columns = ("ε", "level", "noise", "method", "mean", "standard error", "one release", "releases")
    return Exhibit(
        "accuracy",
        "Every method at every level",
        columns,
        rows,
        ("`one release` is the standard deviation of a single release's error.",),
    )


def _implied(cells: list[Cells]) -> Exhibit:
    """Give the noise scale at which a method would have the printed error at level 3."""
    rows: list[tuple[Cell, ...]] = []
    for printed, name, method in (
        (PRINTED_MH, "M_MH", "exact"),
        (PRINTED_TOPDOWN, "TopDown", "TopDown"),
    ):
        for epsilon in EPSILONS:
            (c,) = (
                c
                for c in cells
                if (c.epsilon, c.noise, c.method) == (epsilon, "continuous", method)
            )
            times = printed[epsilon][2] / float(c.mean[2])
            away = (printed[epsilon][2] - float(c.mean[2])) / float(c.spread[2])
            rows.append((name, epsilon, printed[epsilon][2], float(c.mean[2]), times, away))
    columns = (
        "column",
        "ε",
        "printed, level 3",
        "here, level 3",
        "printed / here",
        "standard deviations away",
    )
    return Exhibit(
        "implied",
        "Which noise scale would give the printed errors",
        columns,
        tuple(rows),
        (
            "Errors grow in proportion to the scale of continuous noise. `printed / here` is "
            "therefore the noise scale, in units of 1/ε, that would give the printed error. For "
            "TopDown, which rounds, it is an approximation. The last column has the distance of "
            "the two errors, in standard deviations of a single release at scale 1/ε.",
        ),
    )


def _chain_table(chains: list[Chain]) -> Exhibit:
    rows = tuple(
        (
            c.epsilon,
            c.steps,
            c.acceptance,
            c.r_hat,
            c.effective,
            "yes" if c.settled else "no",
            *(float(v) for v in c.mean),
        )
        for c in chains
    )
    columns = (
        "ε",
        "steps a chain",
        "accepted",
        "largest R-hat",
        "fewest effective draws",
        "converged",
        "level 1",
        "level 2",
        "level 3",
    )
    return Exhibit(
        "chains",
        "M_MH, from short runs to long ones",
        columns,
        rows,
        (
            f"Each run has {CHAINS} chains with continuous noise. A chain starts at noisy counts "
            "of zones and their sums. A tenth of its steps are a warm-up, in which its step size "
            f"is tuned. A run has converged if every query has an R-hat below {methods.R_HAT:g} "
            f"and more than {methods.EFFECTIVE:g} effective draws.",
        ),
    )


def _found(cells: list[Cells], epsilon: float, noise: str, method: str) -> Cells:
    (found,) = (c for c in cells if (c.epsilon, c.noise, c.method) == (epsilon, noise, method))
    return found


def _findings(cells: list[Cells], chains: list[Chain]) -> tuple[str, ...]:
    implied = _implied(cells)
    scales = [float(str(v)) for v in implied.column("printed / here")]
    away = [float(str(v)) for v in implied.column("standard deviations away")]
    exact = [_found(cells, e, "continuous", "exact") for e in EPSILONS]
    l2 = [_found(cells, e, "continuous", "L2") for e in EPSILONS]
    down = [_found(cells, e, "continuous", "TopDown") for e in EPSILONS]
    shares = [
        ", ".join(f"{100 * (1 - a.mean[i] / b.mean[i]):.0f}%" for i in range(3))
        for a, b in zip(exact, l2, strict=True)
    ]
    whole = [
        float(_found(cells, 2.0, "integer", method).mean[2])
        for method in ("exact", "exact, at least 0", "TopDown")
    ]
    odd = [_oddness(cells, e) for e in EPSILONS]
    short = min(c.steps for c in chains)
    start = [c for c in chains if c.steps == short]
    ratios = [PRINTED_MH[e][2] / c.mean[2] for e, c in zip(EPSILONS, exact, strict=True)]
    return (
        "**What is compared.** The counts are the taxi trips of February 2022, counted anew: 263 "
        "zones (level 3), six boroughs (level 2) and the city (level 1), 270 queries that must "
        "add up. The paper does not state its noise scale. The study assumes scale 1/ε on each "
        "query. A record is counted once on each of the three levels, so this noise costs ε on "
        "each level, 3ε in all. For ε in all, the noise needs scale 3/ε, or up to 6/ε if records "
        "are substituted. Errors grow in proportion to the scale of continuous noise. The scales "
        "c/ε that would give the printed errors of level 3, by the Markov chain and by TopDown, "
        f"have c from {min(scales):.2f} to {max(scales):.2f}, so no single c gives all of them. "
        f"With c = 1, {sum(abs(z) < 2.0 for z in away)} of the {len(away)} printed errors of "
        "level 3 is close to the mean error here: within two standard deviations of the error of "
        "a single release.",
        "**Exact conditioning against L2 imaging.** With the same continuous noise at ε = 0.5, "
        f"the mean error of exact conditioning is smaller by {shares[0]} at levels 1, 2 and 3. "
        "The invariant that counts add up costs no ε, so both methods have the same final ε. "
        "proofs/simplex-variance.md proves for this noise that conditioning never has the larger "
        "variance. If also no count may be negative, conditioning needs wider noise for the same "
        "final ε. The tables here do not have this wider noise. With the wider noise, imaging "
        "has the smaller error of a zone: see docs/choosing.md.",
        "**The printed errors of M_MH do not follow from conditioning at a scale proportional to "
        "1/ε.** M_MH is the paper's Markov chain, which is made to draw from the law of "
        "conditioning. If its noise scale is proportional to 1/ε, then so are its errors. At level "
        "3 the printed errors are "
        + ", ".join(f"{r:.2f}" for r in ratios)
        + " times those of exact draws at ε = 0.5, 1, 2, so no such scale gives all three. The "
        "printed errors at level 2 even grow from ε = 0.5 to ε = 1. Suppose that each ε has a "
        "scale of its own. A release's errors at levels 1 and 2, divided by its error at level 3, "
        "have a law that does not depend on that scale. Take the Mahalanobis distance of such a "
        "pair of ratios from the mean pair. For an exact release, this distance is at least that "
        "of the printed pair with probability "
        + ", ".join(f"{p:.2g}" for p in odd)
        + " at ε = 0.5, 1, 2.",
        "**The chain.** The paper states no step size for M_MH. Here it is tuned in a warm-up. "
        + _settling(chains)
        + f" At {short:,} steps the chain's mean errors at level 3 are "
        + ", ".join(f"{c.mean[2]:.3f}" for c in start)
        + f", with R-hat up to {max(c.r_hat for c in start):.1f}. The privacy guarantee is proved "
        "for the law of conditioning. It is not proved for a chain that has not converged. Exact "
        "draws have no such condition.",
        "**Against TopDown.** The errors of TopDown at level 3 are here "
        + ", ".join(f"{c.mean[2]:.3f}" for c in down)
        + " with continuous noise (printed: "
        + ", ".join(f"{PRINTED_TOPDOWN[e][2]:.3f}" for e in EPSILONS)
        + "). TopDown rounds to integers and allows no zone below 0. Exact conditioning on sums, "
        "with continuous noise, does neither; its error at ε = 2 is "
        f"{exact[2].mean[2]:.3f}. With integer noise, the errors at ε = 2 are "
        f"{whole[0]:.3f} by conditioning, {whole[1]:.3f} by conditioning with no zone below 0, and "
        f"{whole[2]:.3f} by TopDown.",
    )


def _settling(chains: list[Chain]) -> str:
    """State the longest runs that have not settled, and the shortest that have."""
    out = []
    settled = {c.steps for c in chains if c.settled}
    steps = sorted({c.steps for c in chains if not c.settled})
    if steps:
        longest = [c for c in chains if c.steps == steps[-1]]
        out.append(
            f"With {steps[-1]:,} steps a chain, the chains of a run have not converged: R-hat is "
            f"up to {max(c.r_hat for c in longest):.2f}, and one query has only "
            f"{min(c.effective for c in longest):.0f} effective draws."
        )
    if settled - set(steps):
        first = [c for c in chains if c.steps == min(settled - set(steps))]
        out.append(
            f"With {first[0].steps:,} steps they have converged: R-hat is up to "
            f"{max(c.r_hat for c in first):.3f}, and every query has at least "
            f"{min(c.effective for c in first):.0f} effective draws."
        )
    return " ".join(out)


def _oddness(cells: list[Cells], epsilon: float) -> float:
    """Share of exact releases whose errors, up to a common factor, are as unusual as the printed.

    Unusual is a large Mahalanobis distance of the errors at levels 1 and 2 over that at level 3.
    """
    errors = _found(cells, epsilon, "continuous", "exact").errors
    seen = errors[:, :2] / errors[:, 2:]
    printed = np.array(PRINTED_MH[epsilon])
    off = np.vstack((printed[:2] / printed[2], seen)) - seen.mean(axis=0)
    distance = (off @ np.linalg.inv(np.cov(seen.T)) * off).sum(axis=1)
    return float((distance[1:] >= distance[0]).mean())


def _draw(canvas: Canvas, cells: list[Cells]) -> None:
    """Draw mean errors with their uncertainty, and the printed errors, by epsilon and level."""
    names = list(dict.fromkeys(c.method for c in cells))
    panels = canvas.subplots(1, 3)
    apart = 0.75 / (len(names) - 1)
    for i, ax in enumerate(panels):
        for m, name in enumerate(names):
            found = [_found(cells, e, "continuous", name) for e in EPSILONS]
            ax.errorbar(
                [k + (m - (len(names) - 1) / 2) * apart for k in range(len(EPSILONS))],
                [c.mean[i] for c in found],
                yerr=[ERRORS * c.standard_error[i] for c in found],
                capsize=2,
                label=name,
                markeredgecolor=INK,
                markeredgewidth=0.5,
                **{**line(m), "linestyle": "none"},
            )
        for printed, mark, name in ((PRINTED_MH, "kx", "M_MH"), (PRINTED_TOPDOWN, "k+", "TopDown")):
            values = [printed[e][i] for e in EPSILONS]
            ax.plot(range(3), values, mark, markersize=8, label=f"printed {name}")
        ax.set_xticks(range(3), [f"{e:g}" for e in EPSILONS])
        ax.set_xlim(-0.6, 2.6)
        for between in (0.5, 1.5):
            ax.axvline(between, color="0.85", linewidth=0.7)
        ax.set_xlabel("ε")
        ax.set_title(f"level {LEVELS[i]}: {NAMES[i]}", fontsize="medium")
        ax.set_yscale("log")
        low, high = ax.get_ylim()
        marks = [d * 10.0**power for power in (-3, -2, -1, 0) for d in (1, 2, 5)]
        marks = [mark for mark in marks if low <= mark <= high]
        ax.set_yticks(marks, [f"{mark:g}" for mark in marks])
        ax.yaxis.minorticks_off()
        frame(ax)
    panels[0].set_ylabel("mean L1 distance / 270, in trips\n(logarithmic scale)")
    legend_below(canvas, panels[0], 4)
