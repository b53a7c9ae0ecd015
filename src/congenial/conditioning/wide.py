"""Convolution of wide messages by fast Fourier transforms, with a bound on relative error.

A transform's error is absolute. Each of several exponential tilts brings one stretch of the result
near its largest entry, where an absolute error is a small relative one; the stretches together
cover the window.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from congenial.errors import NumericalError

FloatArray = npt.NDArray[np.float64]

# Multiplications above which the transforms are the faster way.
DIRECT_LIMIT = 1 << 25
# Relative error accepted for every entry.
TOLERANCE = 2e-12


def convolve_wide(
    a: FloatArray, b: FloatArray, first: int, width: int
) -> tuple[FloatArray, float]:
    """Return ``(a * b)[first:first + width]`` for log-concave nonnegative `a`, `b`.

    Parameters
    ----------
    a, b : ndarray of float64
        Largest entry 1.
    first, width : int
        The stretch wanted; 0 is the sum of the two first indices.

    Returns
    -------
    table : ndarray of float64, shape (width,)
        Divided by `top`, so that the largest entry is 1; every entry within a relative
        `TOLERANCE`.
    top : float
        The largest entry of the convolution.

    Raises
    ------
    NumericalError
        If the tilts do not cover the window.

    Notes
    -----
    The error of one transformed product is below ``12 * log2(size) * 2^-53 * norm(a) * norm(b)``
    in every entry (Higham 2002, theorem 24.2, with three transforms).
    """
    size = 1 << int(np.ceil(np.log2(a.size + b.size)))
    unit = 12.0 * np.log2(size) * 2.0**-53
    s = np.arange(first, first + width, dtype=np.float64)
    log_out = np.full(width, -np.inf)
    done = np.zeros(width, dtype=np.bool_)
    with np.errstate(divide="ignore"):
        log_a, log_b = np.log(a), np.log(b)
    pending: list[float] = [0.0]
    tried: set[float] = set()
    while pending and not done.all():
        tilt = pending.pop()
        if tilt in tried or len(tried) > 400:
            continue
        tried.add(tilt)
        ta = log_a + tilt * np.arange(a.size)
        tb = log_b + tilt * np.arange(b.size)
        top_a, top_b = ta.max(), tb.max()
        wa, wb = np.exp(ta - top_a), np.exp(tb - top_b)
        product = np.fft.irfft(np.fft.rfft(wa, size) * np.fft.rfft(wb, size), size)
        error = unit * float(np.linalg.norm(wa) * np.linalg.norm(wb))
        got = product[first : first + width]
        good = (got * TOLERANCE > error) & ~done
        with np.errstate(divide="ignore", invalid="ignore"):
            log_got = np.log(got) - tilt * s + top_a + top_b
        log_out[good] = log_got[good]
        done |= good
        if not good.any():
            continue
        for edge, inner in ((np.flatnonzero(good)[0], 1), (np.flatnonzero(good)[-1], -1)):
            if 0 <= edge - inner < width and not done[edge - inner] and good[edge + inner]:
                reach = min(16, int(good.sum()) - 1)
                slope = inner * (log_out[edge + inner * reach] - log_out[edge]) / reach
                pending.append(-float(slope))
    support = (s >= 0) & (s <= a.size + b.size - 2)
    if not done[support].all():
        raise NumericalError(
            "a convolution of wide messages does not reach its error bound; "
            "use smaller noise scales or narrower bounds."
        )
    top = log_out.max()
    return np.exp(log_out - top), float(np.exp(top))
