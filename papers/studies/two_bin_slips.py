"""What Example 4.1 and Appendices A and B print, beside what it should be, as numbers."""

from __future__ import annotations

import math

import numpy as np

from congenial.accounting.sensitivities import sensitivity
from congenial.conditioning.choice import condition
from congenial.exhibits.exhibit import Cell, Exhibit
from congenial.invariants.written import linear
from congenial.noise.additive import Additive
from congenial.noise.discrete_laplace import DiscreteLaplace
from papers.studies import two_bin_laws as laws

EPSILON, BETA = 2.0, 0.75


def slip_table() -> Exhibit:
    """Return every slip with the value of the printed expression and the right one."""
    rows: list[tuple[Cell, ...]] = [
        (
            "Example 4.1: the L2 image is x̄ + ũ, read as the average of both counts plus noise",
            "first bin without noise, counts 3 and 9",
            6.0,
            3.0,
        ),
        (
            "below (4.7): a signed Gamma of shape 2 is a sum of two Laplace variables",
            "variance of that sum; of the signed Gamma; scale 1",
            4.0,
            6.0,
        ),
        ("Appendix A: derivative of g, c' = 2(1 − β)", *_derivative()),
        ("Appendix A: τ = (2β − 1)/(2β(1 − β))", *_tau()),
        ("Section 5.1: γ of Example 4.1 is −1/2, for substituted records", *_gamma()),
        ("Appendix B: quantile above the middle", *_quantile()),
    ]
    return Exhibit(
        "slips",
        "Slips of the text. Where a value depends on epsilon or beta, these are "
        f"{EPSILON:g} and {BETA:g}",
        ("where, and what is printed", "what is computed", "as printed", "right"),
        tuple(rows),
        (
            "The derivative of g is at c = 1 and u = 1. Both c' and the sign of the second "
            "exponent are wrong; c' = 2(1 − c) and −(w + c') are right. τ lacks the factor ε.",
            "The text defines neither x̄ nor s̄. By the text, both entries of the image have the "
            "same mean. The right means are the two counts.",
        ),
    )


def _derivative() -> tuple[str, float, float]:
    """Derivative of ``exp(c epsilon u) p(u)`` at u = 1 with c = 1, printed and by differences."""
    c, u = 1.0, 1.0
    w, prime = 2 * c * BETA - 1, 2 * (1 - BETA)
    outer = EPSILON**2 / (8 * (2 * BETA - 1))
    printed = outer * (
        w * math.exp(w / (2 * BETA) * EPSILON * u)
        + (w + prime) * math.exp((w + prime) / (2 * (1 - BETA)) * EPSILON * u)
    )
    step = 1e-5
    at = np.array([u - step, u + step])
    g = np.exp(c * EPSILON * at + laws.log_imaged_density(at, EPSILON, BETA))
    return "derivative at 1", printed, float((g[1] - g[0]) / (2 * step))


def _tau() -> tuple[str, float, float]:
    """The rate of the term that vanishes, read off the density at two points."""
    printed = (2 * BETA - 1) / (2 * BETA * (1 - BETA))
    u = np.array([1.0, 2.0])
    flat = EPSILON * u / (2 * BETA) + laws.log_imaged_density(u, EPSILON, BETA)
    # beta - (1 - beta) exp(-tau u), up to the factor of A.1
    bracket = np.exp(flat) * 4 * (2 * BETA - 1) / EPSILON
    left = (BETA - bracket) / (1 - BETA)
    return "rate", printed, float(np.log(left[0] / left[1]))


def _gamma() -> tuple[str, float, float]:
    """Loss of conditioning over that of the noise, for neighbours that keep the total, less 1."""
    scale = 2.0 / EPSILON
    total = linear([[1, 1]], [12])
    noise = float(sensitivity(2, neighbours="substitute")) / scale
    given = condition(Additive(DiscreteLaplace(scale), 2), total)
    values, probabilities = given.marginal(0, np.array([3, 9]))
    near = np.abs(values - 3) < 12
    loss = float(np.abs(np.diff(np.log(np.asarray(probabilities)[near]))).max())
    gamma = loss / noise - 1.0
    # rounding aside
    return "γ of one changed record", -0.5, round(gamma, 12) + 0.0


def _quantile() -> tuple[str, float, float]:
    """Quantile of 0.8 of the law of scale 1."""
    a, v = math.exp(-1.0), 0.8
    printed = math.ceil((math.log(1 - v) + math.log(1 + a)) / math.log(a))
    return "quantile 0.8, scale 1", float(printed), float(DiscreteLaplace(1.0).quantile(v))
