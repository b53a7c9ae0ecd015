"""Two Views, Section 4: one mandated sum, and whether conditioning always varies less."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from congenial.conditioning.choice import condition
from congenial.exhibits.exhibit import Cell, Exhibit, Figure
from congenial.imaging.update import image
from congenial.invariants.written import linear, nonnegative
from congenial.noise.additive import Additive
from congenial.noise.discrete_laplace import DiscreteLaplace
from congenial.randomness import seeded
from congenial.types import FloatArray
from papers.studies import simplex_laws as laws
from papers.studies.looks import frame, legend_below, level_line, line
from papers.studies.simplex_laws import Errors
from papers.studies.study import Study, replicates

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

Pair = Callable[[int], tuple[Errors, Errors]]

SIZES = (2, 3, 4, 5, 6, 8, 10, 20, 50, 100, 200, 500, 1000)
# Numbers of cells that the figure's axis has.
_MARKED = (2, 10, 100, 1000)
SCALES = (0.5, 1.0, 2.0, 8.0)
OTHER_SIZES = (2, 3, 4, 6, 10)
DRAWS = 20_000
BOUNDED = ((0, 10), (2, 8), (5, 5), (0, 0, 12), (0, 6, 6), (4, 4, 4))
BOUNDED_SCALE = 1.0


def run(seed: int, effort: float) -> Study:
    """Compute every table; only the column of simulated variances is random.

    Parameters
    ----------
    seed : int
    effort : float
        Share of the full study's draws.
    """
    exact = _exact_table()
    checks = _check_table(seed, replicates(DRAWS, effort, least=200))
    other = _other_table()
    bounded = _bounded_table()
    return Study(
        "simplex",
        "One mandated sum: the variance of conditioning and of imaging",
        (*_on_conjecture(exact), _on_checks(checks), _on_others(other), _on_bounds(bounded)),
        (exact, checks, other, bounded),
        (
            Figure(
                "ratio",
                "Errors of conditioning over those of imaging",
                _curves(exact),
                size=(8.0, 4.2),
                note="The lines of Laplace noise and of integer noise of scale 8 nearly coincide.",
            ),
        ),
    )


def _laplace(n: int) -> tuple[Errors, Errors]:
    return laws.laplace_conditioned(n), laws.laplace_imaged(n)


def _geometric(scale: float) -> Pair:
    return lambda n: (laws.geometric_conditioned(n, scale), laws.geometric_imaged(n, scale))


def _exact_table() -> Exhibit:
    noises: list[tuple[str, Pair]] = [("Laplace, scale 1", _laplace)]
    noises += [(f"double geometric, scale {s:g}", _geometric(s)) for s in SCALES]
    rows = []
    for name, pair in noises:
        for n in SIZES:
            given, moved = pair(n)
            rows.append(
                (
                    name,
                    n,
                    given.variance,
                    moved.variance,
                    given.variance / moved.variance,
                    given.absolute,
                    moved.absolute,
                    given.absolute / moved.absolute,
                )
            )
    return Exhibit(
        "exact",
        "One cell of n under one mandated sum",
        (
            "noise",
            "n",
            "variance, conditioning",
            "variance, imaging",
            "ratio of variances",
            "mean absolute error, conditioning",
            "mean absolute error, imaging",
            "ratio of errors",
        ),
        tuple(rows),
        (
            "Imaging takes the closest table in L2, without rounding to integers: it subtracts the "
            "average noise of the cells from each cell. With Gaussian noise of one variance, "
            "conditioning and imaging have the same law, so the ratio is 1 for every n.",
        ),
    )


def _check_table(seed: int, draws: int) -> Exhibit:
    """The formulas beside the library's own exact marginals, and draws."""
    source = seeded(seed)
    rows = []
    for scale in (0.5, 2.0):
        for n in (2, 10, 1000):
            mechanism = Additive(DiscreteLaplace(scale), n)
            zero = np.zeros(n, dtype=np.int64)
            given = condition(mechanism, linear(np.ones((1, n)), [0]))
            values, probabilities = given.marginal(0, zero)
            formula = laws.geometric_conditioned(n, scale).variance
            rows.append(
                (
                    scale,
                    n,
                    formula,
                    float(probabilities @ np.square(values)),
                    _drawn(given.sample(zero, max(2, draws // n), source)),
                )
            )
    return Exhibit(
        "checks",
        "Double geometric noise: the variance of a cell by conditioning, from the formula, from "
        "the exact marginal of `condition`, and from its draws",
        ("scale", "n", "formula", "exact marginal", "draws"),
        tuple(rows),
        (f"The draws of a row have about {draws} values, all cells together.",),
    )


def _drawn(draws: npt.ArrayLike) -> float:
    return float((np.asarray(draws, dtype=np.float64) ** 2).mean())


def _other_table() -> Exhibit:
    rows: list[tuple[Cell, ...]] = []
    for name, pmf in other_noise():
        for n in OTHER_SIZES:
            if name.startswith("signs") and n % 2:
                continue  # an odd number of signs never adds up to 0
            given, moved = laws.finite_errors(pmf, n)
            rows.append((name, n, given.variance, moved.variance, given.variance / moved.variance))
    return Exhibit(
        "others",
        "Other noise on the integers",
        ("noise", "n", "variance, conditioning", "variance, imaging", "ratio"),
        tuple(rows),
    )


def other_noise() -> tuple[tuple[str, FloatArray], ...]:
    """Symmetric laws on -m..m, by name."""
    wide = np.arange(-40, 41)
    normal = [np.exp(-0.5 * (wide / sigma) ** 2) for sigma in (0.5, 1.0, 3.0)]
    return (
        ("signs, +1 or -1", np.array([0.5, 0.0, 0.5])),
        ("uniform on -10..10", np.full(21, 1 / 21)),
        ("discrete Gaussian, sigma 0.5", normal[0] / normal[0].sum()),
        ("discrete Gaussian, sigma 1", normal[1] / normal[1].sum()),
        ("discrete Gaussian, sigma 3", normal[2] / normal[2].sum()),
    )


def _bounded_table() -> Exhibit:
    rows: list[tuple[Cell, ...]] = []
    for counts in BOUNDED:
        x = np.array(counts, dtype=np.int64)
        mechanism = Additive(DiscreteLaplace(BOUNDED_SCALE), x.size)
        invariant = linear(np.ones((1, x.size)), [int(x.sum())]) & nonnegative()
        given = condition(mechanism, invariant)
        square = 0.0
        for i in range(x.size):
            values, probabilities = given.marginal(i, x)
            square += float(probabilities @ np.square(values - x[i]))
        moved = image(mechanism, invariant)
        stated = given.guarantee("substitute").epsilon
        plain = moved.guarantee("substitute").epsilon
        rows.append(
            (
                " + ".join(map(str, counts)),
                square / x.size,
                imaged_square(x, BOUNDED_SCALE),
                stated,
                plain,
                imaged_square(x, BOUNDED_SCALE * plain / stated),
            )
        )
    return Exhibit(
        "bounded",
        f"Cells not below 0: double geometric noise of scale {BOUNDED_SCALE:g}",
        (
            "counts",
            "mean squared error, conditioning",
            "mean squared error, imaging",
            "epsilon stated, conditioning",
            "epsilon stated, imaging",
            "mean squared error, imaging at the epsilon of conditioning",
        ),
        tuple(rows),
        (
            "Errors are exact means over the cells. Both methods have the same noise, except in "
            "the last column. Bounds add to the epsilon of conditioning (proofs/inequalities.md), "
            "but not to that of imaging. In the last column, imaging has less noise, so that both "
            "have the same epsilon. For two cells, the epsilon of conditioning is its exact loss; "
            "for three, it is a bound.",
        ),
    )


def imaged_square(x: npt.NDArray[np.int64], scale: float) -> float:
    """Mean squared error of the nonnegative L2 image, by enumeration of the noise."""
    reach = math.ceil((24.0 if x.size < 3 else 16.0) * scale)
    u = np.arange(-reach, reach + 1)
    grid = np.stack([g.ravel() for g in np.meshgrid(*[u] * x.size, indexing="ij")], axis=1)
    weight = np.exp(-np.abs(grid).sum(axis=1) / scale)
    z = laws.simplex_points((x + grid).astype(np.float64), float(x.sum()))
    return float(weight @ ((z - x) ** 2).mean(axis=1) / weight.sum())


def _picked(table: Exhibit, noise: str) -> dict[int, tuple[float, ...]]:
    return {
        int(str(r[1])): tuple(float(str(c)) for c in r[2:]) for r in table.rows if r[0] == noise
    }


def _on_conjecture(exact: Exhibit) -> tuple[str, ...]:
    laplace = _picked(exact, "Laplace, scale 1")
    ratios = [float(str(r)) for r in exact.column("ratio of variances")]
    errors = [float(str(r)) for r in exact.column("ratio of errors")]
    fine = _picked(exact, f"double geometric, scale {SCALES[0]:g}")
    last = SIZES[-1]
    return (
        "Section 4 of Two Views has n counts (cells) with Laplace noise of scale λ and one exact "
        f"sum. With λ = 1, the variance of a cell is {laplace[2][0]:.4g} by conditioning and "
        f"{laplace[2][1]:.4g} by imaging for n = 2, and {laplace[3][0]:.4g} and "
        f"{laplace[3][1]:.4g} for n = 3. The paper conjectures that conditioning has the smaller "
        "variance for every n. **For Laplace noise, the conjecture is true.** The variance by "
        "imaging is 2λ²(1 − 1/n), and by conditioning λ²(2n − 1)(n − 1)/(n(n + 1)), which is (2n − "
        "1)/(2n + 2) times that of imaging. The mean absolute error by conditioning is λ(1 − 1/n), "
        "which is also proved to be smaller than that by imaging. proofs/simplex-variance.md "
        "proves more: under any linear equalities, conditioning has at most the variance of every "
        "weighted L2 image. The noise must be independent, and a Gaussian of random variance, such "
        "as Laplace, logistic or Student's noise.",
        "The gain is large for few cells and small for many: the ratio of variances is "
        f"{laplace[2][2]:.3f} for n = 2, {laplace[10][2]:.3f} for n = 10 and "
        f"{laplace[last][2]:.4f} for n = {last}. Releases use double geometric noise, whose ratio "
        f"is smaller still: {fine[2][2]:.3f}, {fine[10][2]:.3f} and {fine[last][2]:.4f} at scale "
        f"{SCALES[0]:g}. The formula for its variance by conditioning has Legendre polynomials. In "
        f"all {len(ratios)} rows of the first table, the ratio of variances is between "
        f"{min(ratios):.4f} and {max(ratios):.4f}. The ratio of mean absolute errors is between "
        f"{min(errors):.4f} and {max(errors):.4f}.",
    )


def _on_checks(checks: Exhibit) -> str:
    gaps = [abs(float(str(r[3])) / float(str(r[2])) - 1) for r in checks.rows]
    return (
        "`congenial.condition` computes exact variances without this formula. These variances "
        f"agree with the formula, to a relative error of {max(gaps):.1e} for n up to "
        f"{max(int(str(n)) for n in checks.column('n'))}."
    )


def _on_others(other: Exhibit) -> str:
    at = {(str(r[0]), int(str(r[1]))): (float(str(r[2])), float(str(r[3]))) for r in other.rows}
    signs, flat = at["signs, +1 or -1", 2], at["uniform on -10..10", 2]
    normal = [float(str(r[4])) for r in other.rows if str(r[0]).startswith("discrete Gaussian")]
    return (
        "The conjecture is not true for all noise. If the noise of two cells is +1 or −1 and must "
        f"add up to 0, a cell has the variance {signs[0]:.4g} by conditioning and {signs[1]:.4g} "
        "by imaging. If the noise of two cells is uniform on -10..10, the variances are "
        f"{flat[0]:.4g} and {flat[1]:.4g}. Uniform noise is symmetric and log-concave, so a proof "
        "needs more than these two properties. For discrete Gaussian noise the ratios in the table "
        f"are between {min(normal):.4f} and {max(normal):.4f}; for this noise nothing is proved "
        "here."
    )


def _on_bounds(bounded: Exhibit) -> str:
    rows = [tuple(float(str(c)) for c in r[1:]) for r in bounded.rows]
    better = sum(r[0] < r[1] for r in rows)
    still = sum(r[0] < r[4] for r in rows)
    name, first = bounded.rows[0][0], rows[0]
    return (
        "If no cell may be negative, no proof says which error is smaller. With the same noise, "
        f"conditioning has the smaller mean squared error in {better} of {len(rows)} cases. But "
        "the bounds add to its ε. At the same final ε, conditioning has the smaller error in "
        f"{still} of {len(rows)}. An example is a table with the cells "
        f"{str(name).replace(' + ', ' and ')}. With the same noise, the error "
        f"is {first[0]:.4g} by conditioning, at ε = {first[2]:.4g}, and {first[1]:.4g} by imaging, "
        f"at ε = {first[3]:.4g}. With less noise, imaging has ε = {first[2]:.4g} and the error "
        f"{first[4]:.4g}. [p12](p12.md) compares tables of more cells."
    )


def _curves(exact: Exhibit) -> Callable[[Canvas], None]:
    def draw(canvas: Canvas) -> None:
        left, right = canvas.subplots(1, 2, sharex=True, sharey=True)
        names = dict.fromkeys(str(r[0]) for r in exact.rows)
        for axes, title, at in ((left, "variance", 2), (right, "mean absolute error", 5)):
            for place, name in enumerate(names):
                found = _picked(exact, name)
                axes.plot(list(found), [v[at] for v in found.values()], label=name, **line(place))
            level_line(axes, 1.0)
            frame(axes)
            axes.set_xscale("log")
            axes.set_xticks(_MARKED, [f"{n:,}" for n in _MARKED])
            axes.minorticks_off()
            axes.set_ylim(bottom=0)
            axes.set_xlabel("cells with one exact total")
            axes.set_title(title, fontsize="medium")
        left.set_ylabel("conditioning over imaging\n(below 1, conditioning is better)")
        legend_below(canvas, left, 3)

    return draw
