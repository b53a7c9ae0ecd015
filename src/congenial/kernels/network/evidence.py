"""The likelihood of measurements of families of leaves under priors that siblings share."""

from __future__ import annotations

import numpy as np

from congenial.kernels.numerics import elementary
from congenial.kernels.numerics.compiling import njit

# Least likelihood, so that its logarithm is finite.
_LEAST = 1e-300
# For larger counts, the log of a ratio of Gamma functions is its first asymptotic term.
_LARGE = 1e7


@njit(inner=True, reordered=True)
def _dot(p, t):
    total = 0.0
    for i in range(p.size):
        total += p[i] * t[i]
    return total


@njit(inner=True)
def _noise(d, inverse, gaussian):
    """Return the noise law at distance `d`, 1 at its mode."""
    return elementary.exp(-inverse * (d * d if gaussian else d))


@njit(inner=True)
def _log_pmf(k, mean, r):
    # for large counts, the difference of two log-gamma values would lose its digits
    ahead = (r - 1.0) * elementary.log(k + 0.5 * r) if k > _LARGE else 0.0
    if k <= _LARGE:
        ahead = elementary.log_gamma(k + r) - elementary.log_gamma(k + 1.0)
    return (
        ahead
        - elementary.log_gamma(r)
        - k * elementary.log1p(r / mean)
        - r * elementary.log1p(mean / r)
    )


@njit(inner=True)
def _fill(p, first, mean, r):
    """Fill `p` with negative binomial probabilities at first, first + 1, ...

    Filled from the most likely value outwards, each from the last one and a ratio, so that only the
    smallest probabilities underflow.
    """
    b = mean / (mean + r)
    a = b * r
    top = int(max(0.0, (r - 1.0) * mean / r)) - first
    top = min(max(top, 0), p.size - 1)
    p[top] = elementary.exp(_log_pmf(float(first + top), mean, r))
    for i in range(top, p.size - 1):
        k = first + i
        p[i + 1] = p[i] * ((a + b * k) / (k + 1.0))
    for i in range(top, 0, -1):
        k = first + i
        p[i - 1] = p[i] * (k / (a + b * (k - 1.0)))


@njit()
def family_curves(
    start, y, inverse, gaussian, reach, mean, dispersions, zeros, begins, number, family, out
):
    """Add log likelihoods of leaves' measurements to those of their families, in `out`.

    Leaves whose counts have mean ``mean[g]`` are ``begins[g]`` to ``begins[g + 1]``: each has the
    measurement `number` and belongs to `family`. Measurements with this mean, each once, are
    ``start[g]`` to ``start[g + 1]``, with values `y` in order, int64. A share `zeros` of the counts
    is 0, the others are negative binomial. `out` has shape (families, zeros, dispersions). Sums run
    over counts within `reach` of a measurement; the noise law is 1 at its mode.
    """
    for g in range(start.size - 1):
        begin = start[g]
        log_own = np.empty((start[g + 1] - begin, zeros.size, dispersions.size))
        while begin < start[g + 1]:
            # measurements whose sums overlap share one table of probabilities
            first = max(0, y[begin] - reach[begin])
            last = max(0, y[begin]) + reach[begin]
            widest, end = reach[begin], begin + 1
            while end < start[g + 1] and y[end] - reach[end] <= last:
                first = min(first, max(0, y[end] - reach[end]))
                last = max(last, max(0, y[end]) + reach[end])
                widest = max(widest, reach[end])
                end += 1
            p = np.empty(last - first + 1)
            law = np.empty(2 * widest + 1)
            scale, wide = -1.0, 0
            for h in range(zeros.size):
                q = zeros[h]
                for j in range(dispersions.size):
                    _fill(p, first, mean[g] / (1.0 - q), dispersions[j])
                    for v in range(begin, end):
                        if inverse[v] != scale or reach[v] != wide:
                            scale, wide = inverse[v], reach[v]
                            for d in range(2 * wide + 1):
                                law[d] = _noise(float(abs(d - wide)), scale, gaussian)
                        low = max(first, y[v] - wide)
                        high = max(low, min(last, y[v] + wide))
                        empty = _noise(float(abs(y[v])), scale, gaussian)
                        if y[v] + wide < 0:
                            # no nonnegative count is within reach: use the nearest, 0
                            own = empty * p[0]
                        else:
                            one = p[low - first : high - first + 1]
                            own = _dot(one, law[low - y[v] + wide : high - y[v] + wide + 1])
                        whole = max((1.0 - q) * own + q * empty, _LEAST)
                        log_own[v - start[g], h, j] = elementary.log(whole)
            begin = end
        for v in range(begins[g], begins[g + 1]):
            one, at = out[family[v]], log_own[number[v] - start[g]]
            for h in range(zeros.size):
                for j in range(dispersions.size):
                    one[h, j] += at[h, j]
