"""What chains give and how they went, the same for every sampler that is a chain."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import NormalDist
from typing import TypedDict

import numpy as np

from congenial.errors import ArgumentError
from congenial.noise.additive import checked_size
from congenial.types import FloatArray, Values

CHAINS = 4


@dataclass(frozen=True, eq=False)
class Draw:
    """What chains gave.

    Attributes
    ----------
    values : ndarray, shape (chains, draws, n)
        int64 for integer noise, float64 otherwise.
    """

    values: Values


@dataclass(frozen=True, eq=False)
class Info:
    """How chains went.

    Attributes
    ----------
    warmup : int
        Steps of each chain that were left out.
    thin : int
        Steps for each draw kept.
    r_hat, bulk_ess, tail_ess : ndarray of float64, shape (n,)
        See `diagnostics`; NaN where an entry does not vary, or where too few were drawn.
    acceptance : ndarray of float64, shape (chains,), or None
        Share of the proposals after the warm-up that each chain accepted; None where blocks are
        drawn exactly, so that nothing is rejected.
    tv_bound : float or None
        Bound on the total variation between the last draw of a chain and the law, from any start;
        None where none is known.
    unbounded : str
        Why there is no such bound; empty where there is one.
    blocks : int or None
        Blocks of one sweep, where there are blocks.
    irreducible : bool or None
        True where the moves are proved to lead from every solution to every other; None where
        that is not known.
    certified : bool
        Always False: a chain's run is for studies.
    """

    warmup: int
    thin: int
    r_hat: FloatArray
    bulk_ess: FloatArray
    tail_ess: FloatArray
    acceptance: FloatArray | None = None
    tv_bound: float | None = None
    unbounded: str = ""
    blocks: int | None = None
    irreducible: bool | None = None
    certified: bool = False

    @property
    def worst(self) -> tuple[float, float]:
        """Largest R-hat and smallest bulk effective sample size; NaN where none is known.

        Where a chain accepted nothing they are infinity and 0: it says nothing of the law.
        """
        if self.acceptance is not None and (self.acceptance == 0.0).any():
            return float("inf"), 0.0
        known = np.flatnonzero(np.isfinite(self.r_hat))
        if not known.size:
            return float("nan"), float("nan")
        return float(self.r_hat[known].max()), float(self.bulk_ess[known].min())


class Measured(TypedDict):
    """The diagnostics of `Info`, by its names."""

    r_hat: FloatArray
    bulk_ess: FloatArray
    tail_ess: FloatArray


def measured(values: Values) -> Measured:
    """Diagnose chains, shape (chains, draws, n); NaN where too few were drawn."""
    unknown = np.full(values.shape[2], np.nan)
    if values.shape[1] < LEAST_DRAWS:
        return Measured(r_hat=unknown, bulk_ess=unknown, tail_ess=unknown)
    real = values.astype(np.float64)
    return Measured(r_hat=split_rhat(real), bulk_ess=bulk_ess(real), tail_ess=tail_ess(real))


def check_lengths(lengths: Mapping[str, int], least: int = 1) -> None:
    """Check that numbers of draws, chains or steps are integers, and not too small.

    Raises
    ------
    ArgumentError
        If one is not.
    """
    for value in lengths.values():
        if value is None or checked_size(value) < least:
            told = ", ".join(f"{name} is {value}" for name, value in lengths.items())
            raise ArgumentError(f"{told}; give at least {least} each.")


def in_turn(values: Values, rows: int) -> Values:
    """Return draws from all chains in turn, shape (rows, n)."""
    return values.transpose(1, 0, 2).reshape(-1, values.shape[2])[:rows]


# Fewer draws a chain say nothing.
LEAST_DRAWS = 8


def split_rhat(chains: FloatArray) -> FloatArray:
    """Rank-normalised split R-hat of each entry, the larger of bulk and tails.

    Returns
    -------
    ndarray of float64, shape (n,)
        Near 1 where chains and their halves agree; NaN where an entry does not vary, or there are
        fewer than `LEAST_DRAWS` draws a chain.
    """
    halves = _halves(chains)
    if halves is None:
        return np.full(chains.shape[2], np.nan)
    bulk = _plain_r_hat(_normal_scores(halves))
    middle = np.median(halves, axis=(0, 1))
    return np.fmax(bulk, _plain_r_hat(_normal_scores(np.abs(halves - middle))))


def bulk_ess(chains: FloatArray) -> FloatArray:
    """Bulk effective sample size of each entry, all chains together.

    Returns
    -------
    ndarray of float64, shape (n,)
        NaN where an entry does not vary, or there are fewer than `LEAST_DRAWS` draws a chain.
    """
    halves = _halves(chains)
    if halves is None:
        return np.full(chains.shape[2], np.nan)
    return _ess(_normal_scores(halves))


def tail_ess(chains: FloatArray) -> FloatArray:
    """Tail effective sample size of each entry: the lesser of those of its 5% and 95% quantiles.

    Returns
    -------
    ndarray of float64, shape (n,)
        NaN where an entry does not vary, or there are fewer than `LEAST_DRAWS` draws a chain.
    """
    halves = _halves(chains)
    if halves is None:
        return np.full(chains.shape[2], np.nan)
    low, high = np.quantile(chains, [0.05, 0.95], axis=(0, 1))
    sizes = [_ess((halves <= quantile).astype(np.float64)) for quantile in (low, high)]
    return np.asarray(np.fmin(*sizes))


def _ess(scores: FloatArray) -> FloatArray:
    """Effective sample size of each entry's mean, from split chains; NaN where it is constant."""
    count, draws, _ = scores.shape
    within = _autocovariance(scores)
    own = within[0] * draws / (draws - 1.0)
    spread = within[0] + scores.mean(axis=1).var(axis=0, ddof=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        rho = 1.0 - (own - within) / spread
    rho[0] = 1.0
    # sums of neighbouring pairs are positive and decreasing for a reversible chain (Geyer 1992)
    pairs = rho[: draws // 2 * 2].reshape(-1, 2, rho.shape[1])
    sums = pairs.sum(axis=1)[: (draws - 3) // 2]  # the last are mere noise
    counted = np.logical_and.accumulate(sums > 0.0, axis=0)
    kept = np.where(counted, np.minimum.accumulate(sums, axis=0), 0.0).sum(axis=0)
    after = np.minimum(counted.sum(axis=0), pairs.shape[0] - 1)
    single = np.take_along_axis(pairs[:, 0], after[None], axis=0)[0]
    total = float(count * draws)
    time = np.maximum(2.0 * kept - 1.0 + np.maximum(single, 0.0), 1.0 / np.log10(total))
    return np.where(spread > 0.0, total / time, np.nan)


def _halves(chains: FloatArray) -> FloatArray | None:
    """Return each chain as two of half its length, an odd middle draw left out."""
    if chains.shape[1] < LEAST_DRAWS:
        return None
    half = chains.shape[1] // 2
    return np.concatenate((chains[:, :half], chains[:, -half:]))


def _normal_scores(values: FloatArray) -> FloatArray:
    """Replace values by the normal quantiles of their ranks, ties by their mean rank."""
    flat = values.reshape(-1, values.shape[2])
    count = flat.shape[0]
    order = np.argsort(flat, axis=0, kind="stable")
    ordered = np.take_along_axis(flat, order, axis=0)
    new = np.ones(flat.shape, dtype=np.bool_)
    new[1:] = ordered[1:] != ordered[:-1]
    position = np.arange(count)[:, None]
    first = np.maximum.accumulate(np.where(new, position, 0), axis=0)
    ends = np.ones(flat.shape, dtype=np.bool_)
    ends[:-1] = new[1:]
    last = np.minimum.accumulate(np.where(ends, position, count)[::-1], axis=0)[::-1]
    doubled = np.empty(flat.shape, dtype=np.int64)
    np.put_along_axis(doubled, order, first + last + 2, axis=0)  # twice the mean rank
    normal = NormalDist()
    used, at = np.unique(doubled, return_inverse=True)
    quantile = [normal.inv_cdf((0.5 * r - 0.375) / (count + 0.25)) for r in used.tolist()]
    return np.array(quantile)[at].reshape(values.shape)


def _plain_r_hat(scores: FloatArray) -> FloatArray:
    draws = scores.shape[1]
    within = scores.var(axis=1, ddof=1).mean(axis=0)
    between = scores.mean(axis=1).var(axis=0, ddof=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.sqrt((draws - 1.0) / draws + between / within))


def _autocovariance(scores: FloatArray) -> FloatArray:
    """Return the mean over chains of the biased autocovariance, shape (draws, n)."""
    draws = scores.shape[1]
    centred = scores - scores.mean(axis=1, keepdims=True)
    size = 1 << int(2 * draws - 1).bit_length()
    spectrum = np.fft.rfft(centred, size, axis=1)
    power = np.fft.irfft(spectrum * spectrum.conj(), size, axis=1)[:, :draws]
    return np.asarray(power.mean(axis=0) / draws)
