"""Whether chains have converged: split R-hat and effective sample size.

Neither proves convergence; a guarantee never rests on them.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
# Fewer draws a chain say nothing.
SHORTEST = 8


def r_hat(chains: FloatArray) -> FloatArray:
    """Split R-hat of each entry: near 1 where chains and their halves agree.

    Parameters
    ----------
    chains : ndarray of float64, shape (chains, draws, n)

    Returns
    -------
    ndarray of float64, shape (n,)
        NaN where an entry does not vary, or there are fewer than `SHORTEST` draws a chain.

    References
    ----------
    Gelman et al., Bayesian Data Analysis (2013), Section 11.4.
    """
    halves = _halves(chains)
    if halves is None:
        return np.full(chains.shape[2], np.nan)
    length = halves.shape[1]
    within = halves.var(axis=1, ddof=1).mean(axis=0)
    between = halves.mean(axis=1).var(axis=0, ddof=1)
    varies = within > 0.0
    ratio = between / np.where(varies, within, 1.0)
    return np.where(varies, np.sqrt((length - 1.0) / length + ratio), np.nan)


def effective_size(chains: FloatArray) -> FloatArray:
    """Effective sample size of each entry, all chains together.

    Autocorrelations are summed in pairs up to the first that is not positive.

    Parameters
    ----------
    chains : ndarray of float64, shape (chains, draws, n)

    Returns
    -------
    ndarray of float64, shape (n,)
        NaN where `r_hat` is.

    References
    ----------
    Geyer (1992), Section 3.3; Gelman et al. (2013), Section 11.5.
    """
    halves = _halves(chains)
    count = chains.shape[2]
    out = np.full(count, np.nan)
    if halves is None:
        return out
    parts, length = halves.shape[:2]
    size = 1 << int(np.ceil(np.log2(2 * length)))
    for i in range(count):
        series = halves[:, :, i]
        within = float(series.var(axis=1, ddof=1).mean())
        if not within > 0.0:
            continue
        power = np.abs(np.fft.rfft(series - series.mean(axis=1, keepdims=True), size)) ** 2
        covariance = np.fft.irfft(power, size)[:, :length].mean(axis=0) / length
        total = within * (length - 1.0) / length + float(series.mean(axis=1).var(ddof=1))
        correlation = 1.0 - (within - covariance * length / (length - 1.0)) / total
        correlation[0] = 1.0
        pairs = correlation[: length - length % 2].reshape(-1, 2).sum(axis=1)
        stop = np.flatnonzero(pairs <= 0.0)
        kept = np.minimum.accumulate(pairs[: stop[0] if stop.size else pairs.size])
        time = max(-1.0 + 2.0 * float(kept.sum()), 1.0 / np.log10(parts * length))
        out[i] = parts * length / time
    return out


def _halves(chains: FloatArray) -> FloatArray | None:
    count, length, n = chains.shape
    if length < SHORTEST:
        return None
    half = length // 2
    return chains[:, : 2 * half].reshape(2 * count, half, n)
