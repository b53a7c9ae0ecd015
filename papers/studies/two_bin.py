"""Gong and Meng, Example 4.1 whole: two bins, one total, and the privacy of three releases."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from congenial.conditioning.choice import condition
from congenial.exhibits.exhibit import Cell, Exhibit, Figure
from congenial.imaging.closest import project
from congenial.imaging.update import image
from congenial.invariants.written import linear
from congenial.noise.additive import Additive
from congenial.noise.discrete_laplace import DiscreteLaplace
from congenial.noise.laplace import Laplace
from congenial.randomness import Randomness, seeded
from congenial.types import FloatArray
from papers.studies import two_bin_laws as laws
from papers.studies.looks import BLUE, frame, legend_below, line
from papers.studies.study import Study, replicates
from papers.studies.two_bin_calibration import calibration_finding, calibration_table
from papers.studies.two_bin_slips import slip_table

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas


COUNTS = (3, 9)
BETAS = (0.5, 0.625, 0.75, 0.875, 1.0)
EPSILONS = (0.5, 1.0, 2.0)
FUNCTIONS = 400


def run(seed: int, effort: float) -> Study:
    """Compute every table; only the trials of Theorem A.1 are random.

    Parameters
    ----------
    seed : int
    effort : float
        Share of the full study's trials.
    """
    table_two = _table_two()
    losses = _loss_table()
    theorem = _theorem_table(seeded(seed), replicates(FUNCTIONS, effort, least=20))
    slips = slip_table()
    calibration = calibration_table()
    return Study(
        "two-bin",
        "Two bins with one total: conditioning, L2 and L1 images",
        (
            *_on_table_two(table_two),
            *_on_losses(losses),
            _on_theorem(theorem),
            _on_slips(slips),
            calibration_finding(calibration),
        ),
        (table_two, losses, _density_table(), theorem, slips, calibration),
        (
            Figure("loss", "Privacy loss of the L1 images", lambda c: _losses(c, losses)),
            Figure("densities", "Noise left in the first bin, epsilon 1", _densities),
        ),
    )


def _mandated() -> tuple[npt.NDArray[np.int64], list[list[int]], list[int]]:
    return np.array(COUNTS, dtype=np.int64), [[1, 1]], [sum(COUNTS)]


def _table_two() -> Exhibit:
    """Table 2 of the paper at epsilon 1, printed and computed."""
    x, rows, total = _mandated()
    scale = 2.0
    invariant = linear(rows, total)
    given = condition(Additive(DiscreteLaplace(scale), 2), invariant)
    values, probabilities = given.marginal(0, x)
    conditioned = float(probabilities @ np.square(values - x[0]))
    middle, rounded = laws.rounded_moments(1.0)
    exact = _second_moment(lambda u: laws.conditioned_density(u, 1.0))
    mean = float(sum(COUNTS)) / 2.0
    lines: list[tuple[Cell, ...]] = [
        (
            "conditioning",
            float(x[0]),
            float(probabilities @ np.asarray(values)),
            "2",
            exact,
            conditioned,
        ),
        ("L2", mean, _imaged_mean("l2", None), "4", _imaged_moment(0.5), _whole(0.5)),
    ]
    lines += [
        (
            f"L1, beta {beta:g}",
            float(x[0]),
            _imaged_mean("l1", beta),
            "4 to 8",
            _imaged_moment(beta),
            _whole(beta),
        )
        for beta in BETAS
    ]
    lines.append(("L2, rounded to integers", None, float(x[0]) + middle, None, None, rounded))
    return Exhibit(
        "table-2",
        f"Table 2 for the counts {COUNTS[0]} and {COUNTS[1]} and epsilon 1: the first bin",
        (
            "release",
            "mean, printed",
            "mean, exact",
            "variance, printed",
            "variance, Laplace noise",
            "variance, integer noise",
        ),
        tuple(lines),
        (
            "The noise has scale 2 in each bin. Variances with Laplace noise are integrals of the "
            "densities below. Variances with integer (double geometric) noise are sums over its "
            "law. Means are sums over integer noise from -4 to 4 in each bin; noise is symmetric, "
            "so a wider range gives the same means. The printed mean for L2 is s̄, read as the "
            "average of both counts.",
        ),
    )


def _imaged_mean(norm: str, beta: float | None) -> float:
    """Mean of the first bin of an image, over all noise of at most 4 in size."""
    x, rows, total = _mandated()
    invariant = linear(rows, total)
    u = range(-4, 5)
    top = weights = 0.0
    for first in u:
        for second in u:
            y = x + np.array([first, second])
            if norm == "l2":
                z = project(y, invariant)
            else:
                z = project(y, invariant, norm="l1", beta=beta)
            weight = math.exp(-0.5 * (abs(first) + abs(second)))
            top += weight * float(z[0])
            weights += weight
    return top / weights


def _second_moment(density: Callable[[FloatArray], FloatArray]) -> float:
    nodes, weights = np.polynomial.legendre.leggauss(64)
    panels = np.linspace(0.0, 160.0, 65)
    half = 0.5 * (panels[1] - panels[0])
    u = (panels[:-1, None] + half * (nodes + 1.0)).ravel()
    return float(2.0 * half * (np.tile(weights, 64) @ (u**2 * density(u))))


def _imaged_moment(beta: float) -> float:
    return _second_moment(lambda u: np.exp(laws.log_imaged_density(u, 1.0, beta)))


def _whole(beta: float) -> float:
    return laws.integer_variance(1.0, round(8 * beta))


def _density_table() -> Exhibit:
    """The figure's curves at a few points."""
    u = np.array([0.0, 0.5, 1.0, 2.0, 3.0, 4.0, 6.0, 8.0])
    columns = [laws.conditioned_density(u, 1.0), laws.mixture_density(u, 1.0)]
    columns += [np.exp(laws.log_imaged_density(u, 1.0, beta)) for beta in (0.5, 0.75, 1.0)]
    return Exhibit(
        "densities",
        "Densities of the noise left in the first bin, epsilon 1",
        ("u", "conditioning (4.6)", "mixture (4.7)", *(f"image, beta {b}" for b in (0.5, 0.75, 1))),
        tuple((float(v), *(float(c[i]) for c in columns)) for i, v in enumerate(u)),
        (
            "Numbers in brackets are equations of Gong and Meng (2020). The mixture (4.7) is the "
            "image of beta 0.5 by equation (A.2); the other images are by (A.1).",
        ),
    )


def _loss_table() -> Exhibit:
    rows: list[tuple[Cell, ...]] = []
    x, matrix, total = _mandated()
    invariant = linear(matrix, total)
    for epsilon in EPSILONS:
        scale = 2.0 / epsilon
        given = condition(Additive(DiscreteLaplace(scale), 2), invariant)
        values, probabilities = given.marginal(0, x)
        near = np.abs(values - x[0]) <= 24 / epsilon
        seen = np.log(np.asarray(probabilities)[near])
        rows.append(
            (
                "conditioning",
                epsilon,
                epsilon,
                _conditioned_loss(epsilon),
                None,
                float(np.abs(np.diff(seen)).max()),
                given.guarantee("substitute").epsilon,
            )
        )
        for beta in BETAS:
            real = image(Additive(Laplace(scale), 2), invariant, norm="l1", beta=beta)
            whole = image(Additive(DiscreteLaplace(scale), 2), invariant, norm="l1", beta=beta)
            rows.append(
                (
                    f"L1, beta {beta:g}",
                    epsilon,
                    laws.promised_loss(epsilon, beta),
                    laws.attained_loss(epsilon, beta),
                    real.guarantee("substitute").epsilon,
                    laws.integer_loss(epsilon, round(8 * beta)),
                    whole.guarantee("substitute").epsilon,
                )
            )
        whole = image(Additive(DiscreteLaplace(scale), 2), invariant, integer=True)
        stated = whole.guarantee("substitute").epsilon
        rounded = laws.rounded_loss(epsilon)
        rows.append(("L2, rounded to integers", epsilon, None, None, None, rounded, stated))
    return Exhibit(
        "loss",
        "Privacy loss of moving one record between the bins",
        (
            "release",
            "epsilon",
            "loss, printed",
            "loss, Laplace noise",
            "loss stated for Laplace noise",
            "loss, integer noise",
            "loss stated for integer noise",
        ),
        tuple(rows),
        (
            "A loss is the largest log ratio of probabilities found. With integer noise, only "
            "values within 24 / epsilon of the middle were compared. For beta 0.5 and for the "
            "rounded image, values farther out have larger ratios, which rise towards epsilon.",
        ),
    )


def _conditioned_loss(epsilon: float) -> float:
    """Largest log ratio of the density (4.6) at points one apart."""
    u = np.linspace(-20.0, 20.0, 401)
    log = np.log(laws.conditioned_density(u, epsilon))
    return float(np.abs(np.log(laws.conditioned_density(u + 1.0, epsilon)) - log).max())


def _theorem_table(source: Randomness, functions: int) -> Exhibit:
    """Theorem A.1 on functions that meet its conditions, and on two kinds that do not."""
    rows: list[tuple[Cell, ...]] = []
    kinds = (
        ("falls, at most alpha a unit", 0.0, 1.0),
        ("falls faster than alpha in places", 0.0, 2.0),
        ("rises in places", -1.5, 1.0),
    )
    for name, least, most in kinds:
        excess = []
        for _ in range(functions):
            slopes = least + (most - least) * _uniform(source, 6)
            points = 12.0 * _uniform(source, 3 * 2 * 500).reshape(500, 3, 2) - 6.0
            excess.append(laws.theorem_excess(slopes, 1.0, points))
        rows.append((name, functions, sum(e > 1e-9 for e in excess), max(excess)))
    return Exhibit(
        "theorem",
        "Theorem A.1 on random functions of the norm in the plane, alpha 1",
        ("function of the norm", "functions", "that exceed the bound", "largest excess of the log"),
        tuple(rows),
        (
            "Each function was tried on 500 random triples x, a, b. The norm is the sum of "
            "absolute values. An excess is a log ratio minus its bound.",
        ),
    )


def _uniform(source: Randomness, count: int) -> FloatArray:
    return np.asarray((source.bits(count) >> np.uint64(11)).astype(np.float64) * 2.0**-53)


def _number(cell: Cell) -> float:
    return float(str(cell))


def _on_table_two(table: Exhibit) -> tuple[str, ...]:
    at = {str(r[0]): r for r in table.rows}
    given, l2 = at["conditioning"], at["L2"]
    ends = [at[f"L1, beta {b:g}"] for b in (BETAS[0], BETAS[-1])]
    return (
        "Example 4.1 of Gong and Meng (2020) releases two counts whose total is public, with "
        "Laplace noise of scale 2/ε in each. The three variances of its Table 2 are right: "
        f"{_number(given[4]):.4g}/ε² for conditioning, {_number(l2[4]):.4g}/ε² for the L2 image, "
        f"and from {_number(ends[0][4]):.4g}/ε² to {_number(ends[1][4]):.4g}/ε² for L1 images. "
        f"With integer noise at ε = 1 the variances are {_number(given[5]):.4g}, "
        f"{_number(l2[5]):.4g}, and from {_number(ends[0][5]):.4g} to {_number(ends[1][5]):.4g}. "
        "If the L2 image is rounded to integers, its variance is "
        f"{_number(table.rows[-1][5]):.4g}.",
        "The printed mean of the L2 image is not right. The right mean of each bin is its own "
        "count, but Table 2 prints one value, s̄, for both bins. The text does not define s̄. If "
        f"s̄ means the average of the counts {COUNTS[0]} and {COUNTS[1]}, it is "
        f"{_number(l2[1]):.4g}, but the first bin's mean is {_number(l2[2]):.4g}. In truth, none "
        "of the releases in Table 2 is biased.",
    )


def _on_losses(losses: Exhibit) -> tuple[str, ...]:
    laplace = [r for r in losses.rows if str(r[0]).startswith("L1")]
    off = max(abs(_number(r[3]) / _number(r[2]) - 1.0) for r in laplace)
    over = [(_number(r[5]) / _number(r[2]), r) for r in laplace if r[0] not in _EDGES]
    worst, row = max(over, key=lambda found: found[0])
    past = sum(ratio > 1.0 + 1e-9 for ratio, _ in over)
    return (
        "More than one table is closest in L1. The weight β chooses one: it is the share of its "
        "own noise that the first bin keeps. With Laplace noise, the loss of this image is ε/(2 "
        "max(β, 1 − β)). The largest log ratio of densities that was found agrees with this "
        f"loss, to a relative error of {off:.1e}. proofs/l1-two-bins.md has a proof in two lines. "
        "For Laplace noise, `congenial.image(..., beta=...)` states this loss.",
        "**For integer noise this loss is too small.** For β between 1/2 and 1 the loss is larger "
        f"in {past} of {len(over)} rows, by up to {100 * (worst - 1):.0f}% ({row[0]}, ε = "
        f"{_number(row[1]):g}: {_number(row[5]):.4g} instead of {_number(row[2]):.4g}). For "
        "integer noise congenial therefore states ε, the loss of the noise itself, except for β = "
        "0 and β = 1, where the printed loss is right.",
    )


_EDGES = (f"L1, beta {BETAS[0]:g}", f"L1, beta {BETAS[-1]:g}")


def _on_theorem(theorem: Exhibit) -> str:
    good, steep, rising = theorem.rows
    return (
        "Theorem A.1 bounds the log ratio of two densities on two conditions: the log density is a "
        "function of the norm that never rises, and it does not fall faster than a given rate. The "
        f"bound held for all {good[1]} random functions that meet both. Of {steep[1]} functions "
        f"that fall too fast, {steep[2]} exceed its bound. Of {rising[1]} functions that rise in "
        f"places, {rising[2]} exceed it. So both conditions are needed."
    )


def _on_slips(slips: Exhibit) -> str:
    (gamma,) = (_number(r[3]) for r in slips.rows if str(r[0]).startswith("Section 5.1"))
    return (
        f"A close reading of the example found {len(slips.rows)} slips. A table below has the "
        "value of each printed expression and the right value. No slip changes the paper's "
        "conclusions on ε, but one changes its γ. The paper's own neighbours differ in one "
        "substituted record, which keeps the total of the two bins. So the nearest datasets of "
        f"equal total differ in k = 1 record, and γ is {gamma:.3g}, not −1/2. If a record moves by "
        "being removed and then added, k is 2. Then equation (2.4) does hold with γ = −1/2 and the "
        "same ε."
    )


def _densities(canvas: Canvas) -> None:
    axes = canvas.subplots()
    u = np.linspace(-8.0, 8.0, 801)
    looks = {**line(0), "marker": ""}
    axes.plot(u, laws.conditioned_density(u, 1.0), label="conditioning", **looks)
    for place, beta in enumerate((0.5, 0.75, 1.0), start=1):
        name = "L2, and L1 with β = 0.5" if beta == 0.5 else f"L1, β = {beta:g}"
        looks = {**line(place), "marker": ""}
        axes.plot(u, np.exp(laws.log_imaged_density(u, 1.0, beta)), label=name, **looks)
    axes.set_xlabel("noise left in the first bin, in counts")
    axes.set_ylabel("density")
    axes.set_ylim(bottom=0)
    frame(axes)
    axes.legend(frameon=False)


def _losses(canvas: Canvas, table: Exhibit) -> None:
    axes = canvas.subplots()
    beta = np.linspace(0.0, 1.0, 201)
    promised = [laws.promised_loss(1.0, float(b)) for b in beta]
    axes.plot(beta, promised, color=BLUE, label="Laplace noise")
    for place, epsilon in enumerate(EPSILONS, start=1):
        rows = [r for r in table.rows if str(r[0]).startswith("L1") and r[1] == epsilon]
        at = [float(str(r[0]).split()[-1]) for r in rows]
        share = [_number(r[5]) / epsilon for r in rows]
        axes.plot(
            [*(1 - b for b in reversed(at)), *at],
            [*reversed(share), *share],
            label=f"integer noise, ε = {epsilon:g}",
            **{**line(place), "linestyle": "none"},
        )
    axes.set_xlabel("β, the weight of its own noise that the first bin keeps")
    axes.set_ylabel("loss over ε")
    frame(axes)
    legend_below(canvas, axes, 2)
