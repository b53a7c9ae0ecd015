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
            "Imaging is the closest real point in L2: each cell less the mean of the noise. "
            "Gaussian noise of one variance has ratio 1 for every n: there the two are one law.",
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
        "Double geometric noise: the formula, the exact marginal of `condition`, and its draws",
        ("scale", "n", "formula", "exact marginal", "draws"),
        tuple(rows),
        (f"About {draws} values a row are drawn, all cells together.",),
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
            "Mean over the cells, exact. Both have the same noise. The inequalities cost "
            "conditioning in epsilon (proofs/inequalities.md), and imaging nothing. In the last "
            "column, imaging has less noise, so that its epsilon is that of conditioning.",
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
        "Two Views, Section 4, has n cells with Laplace noise of scale λ and one mandated sum. "
        "Conditioning leaves a cell the variance λ²/2 for n = 2 "
        f"({laplace[2][0]:.4g} at λ = 1) and 5λ²/6 for n = 3 ({laplace[3][0]:.4g}). This is less "
        f"than imaging's 2λ²(1 − 1/n) ({laplace[2][1]:.4g} and {laplace[3][1]:.4g}). The paper "
        "conjectures the same for every n. **The conjecture is true.** The variance of "
        "conditioning is λ²(2n − 1)(n − 1)/(n(n + 1)), which is (2n − 1)/(2n + 2) times imaging's. "
        "Its mean absolute error is λ(1 − 1/n), which is less than imaging's, too. "
        "proofs/simplex-variance.md proves more: let independent noise be a scale mixture of "
        "Gaussians (Laplace, logistic, Student's). Then, under any linear equalities, conditioning "
        "has at most the variance of every weighted L2 image.",
        "The gain is large for few cells and fades: the ratio of variances is "
        f"{laplace[2][2]:.3f} for n = 2, {laplace[10][2]:.3f} for n = 10 and "
        f"{laplace[last][2]:.4f} for n = {last}. For "
        "double geometric noise, which a release uses, the formula is in Legendre polynomials; the "
        f"ratio is smaller still, {fine[2][2]:.3f}, {fine[10][2]:.3f} and {fine[last][2]:.4f} at "
        f"scale {SCALES[0]:g}. Over all {len(ratios)} rows the ratio of variances is between "
        f"{min(ratios):.4f} and {max(ratios):.4f}, that of mean absolute errors between "
        f"{min(errors):.4f} and {max(errors):.4f}.",
    )


def _on_checks(checks: Exhibit) -> str:
    gaps = [abs(float(str(r[3])) / float(str(r[2])) - 1) for r in checks.rows]
    return (
        "The exact marginals of `congenial.condition`, computed with no use of the formula, agree "
        f"with it to {max(gaps):.1e} at n up to {max(int(str(n)) for n in checks.column('n'))}."
    )


def _on_others(other: Exhibit) -> str:
    at = {(str(r[0]), int(str(r[1]))): (float(str(r[2])), float(str(r[3]))) for r in other.rows}
    signs, flat = at["signs, +1 or -1", 2], at["uniform on -10..10", 2]
    normal = [float(str(r[4])) for r in other.rows if str(r[0]).startswith("discrete Gaussian")]
    return (
        "The conjecture is not true for all noise. Two signs that must cancel have the variance "
        f"{signs[0]:.4g}, and {signs[1]:.4g} by imaging; two cells with noise uniform on -10..10 "
        f"have {flat[0]:.4g} and {flat[1]:.4g}. Uniform noise is symmetric and log-concave, so "
        "these properties do not suffice. For discrete Gaussian noise the ratio lies between "
        f"{min(normal):.4f} and {max(normal):.4f} in the table; that is no proof."
    )


def _on_bounds(bounded: Exhibit) -> str:
    rows = [tuple(float(str(c)) for c in r[1:]) for r in bounded.rows]
    better = sum(r[0] < r[1] for r in rows)
    still = sum(r[0] < r[4] for r in rows)
    name, first = bounded.rows[0][0], rows[0]
    return (
        "If no cell may be negative, nothing about errors is proved. With the same noise, "
        f"conditioning has the smaller mean squared error in {better} of {len(rows)} cases "
        f"({name}: {first[0]:.4g} against {first[1]:.4g}). But it then states ε = {first[2]:.4g}, "
        f"and imaging ε = {first[3]:.4g}. At the same stated ε it has the smaller error in {still} "
        f"of {len(rows)} ({name}: {first[0]:.4g} against {first[4]:.4g})."
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
