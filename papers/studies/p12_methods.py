"""What the study of sex by age computes: releases, acceptance rates and traces.

Cells are numbered as in the paper: females from the youngest to the oldest, then males.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from congenial.conditioning.choice import condition
from congenial.conditioning.proposal import Proposal
from congenial.conditioning.samplers.independence import Independence
from congenial.imaging.update import image
from congenial.invariants.written import Invariant, linear, nonnegative
from congenial.noise.additive import Additive
from congenial.noise.discrete_laplace import DiscreteLaplace
from congenial.randomness import Randomness
from congenial.types import FloatArray, IntArray
from papers.studies.sources import AGES

CELLS = 2 * AGES
MINORS = 4
# The paper's proposal index set, {2, ..., 22, 24, ..., 45}, counted from 0.
INDEX = (*range(1, 22), *range(23, 45))
EPSILON, TILDE = 0.5, 0.6
TILDES = (0.3, 0.35, 0.4, 0.45, 0.5, 0.55, 0.6, 0.65, 0.7, 0.8, 0.9, 1.0)
PRINTED_ACCEPTANCE = 0.0168
TABLES, RELEASES, PAIRS, TRACE = 20, 100, 20_000, 10_000
# Steps between two releases taken from a chain that accepts about one proposal in a hundred.
THIN, WARMUP = 200, 1_000
# Of the trace, to see how much the rate of acceptance differs from chain to chain.
CHAINS = 20
BATCHES = 10

# Table 1 of the paper: the confidential table and the release.
PRINTED_TABLE = (
    *(8, 6, 3, 6, 4, 4, 4, 8, 5, 7, 7, 6, 1, 5, 4, 4, 9, 6, 2, 8, 8, 8, 7),
    *(3, 4, 5, 8, 6, 4, 5, 5, 5, 6, 10, 7, 3, 2, 5, 11, 6, 4, 7, 4, 5, 3, 8),
)
PRINTED_RELEASE = (
    *(6, 6, 4, 3, 2, 10, 2, 5, 6, 7, 5, 6, 0, 5, 4, 5, 10, 8, 3, 8, 8, 12, 5),
    *(9, 4, 5, 6, 3, 4, 5, 5, 3, 4, 7, 8, 5, 3, 2, 23, 8, 2, 6, 3, 0, 3, 8),
)


def totals_of(table: IntArray) -> Invariant:
    """Fix the total, the female total and the voting-age total of a table."""
    rows = np.zeros((3, CELLS), dtype=np.int64)
    rows[0] = 1
    rows[1, :AGES] = 1
    rows[2, MINORS:AGES] = rows[2, AGES + MINORS :] = 1
    return linear(rows, rows @ table)


def simulate(count: int, source: Randomness) -> IntArray:
    """Confidential tables as the paper simulates them, shape (count, 46).

    Notes
    -----
    Cells are negative binomial with size 100, and 0.05 the probability of what is counted: mean
    5.26 and variance 5.54, as the paper says.
    """
    k = np.arange(1, 200)
    log_ratio = np.log((100.0 + k - 1.0) / k * 0.05)
    log_mass = 100.0 * np.log(0.95) + np.concatenate(([0.0], np.cumsum(log_ratio)))
    words = source.bits(count * CELLS) >> np.uint64(11)
    uniform = words.astype(np.float64) * 2.0**-53
    return np.searchsorted(np.cumsum(np.exp(log_mass)), uniform).reshape(count, CELLS)


@dataclass(frozen=True, eq=False)
class Distances:
    """Mean distances of releases from their confidential tables (equation 3.1).

    Attributes
    ----------
    method : str
    l1, l2 : ndarray of float64, shape (tables,)
    """

    method: str
    l1: FloatArray
    l2: FloatArray


@dataclass(frozen=True)
class Reading:
    """A reading of the text.

    Attributes
    ----------
    sensitivity : float
        What one record changes; the noise has scale sensitivity / epsilon.
    bounded : bool
        Whether cells are kept from being negative, or the totals are all that is mandated.
    """

    sensitivity: float
    bounded: bool

    @property
    def name(self) -> str:
        """What the reading is."""
        cells = "cells at least 0" if self.bounded else "totals alone"
        return f"{cells}, noise of scale {self.sensitivity / EPSILON:g}"

    def invariant(self, table: IntArray) -> Invariant:
        """Return what is mandated."""
        return totals_of(table) & nonnegative() if self.bounded else totals_of(table)


READINGS = tuple(Reading(s, bounded=b) for s in (1.0, 2.0) for b in (True, False))


@dataclass(frozen=True, eq=False)
class Rates:
    """Acceptance of Algorithm 1 under one reading.

    Attributes
    ----------
    reading : Reading
    rates, errors : ndarray of float64, shape (len(TILDES),)
        Share of proposals accepted in equilibrium, and its standard error.
    """

    reading: Reading
    rates: FloatArray
    errors: FloatArray


@dataclass(frozen=True, eq=False)
class Trace:
    """Draws of two cells, by chains or independent.

    Attributes
    ----------
    name : str
    cells : ndarray of int64, shape (draws, 2)
        The paper's second and first cell, in one chain.
    rates : ndarray of float64, shape (chains,)
        Share of its proposals that each chain accepted.
    steps : int
        Of each chain.
    r_hat : float
        The worst cell's.
    effective : (float, float)
        Effective draws of the two cells, of all chains together.
    bound : float or None
        On the total variation after one chain's steps.
    """

    name: str
    cells: IntArray
    rates: FloatArray
    steps: int
    r_hat: float
    effective: tuple[float, float]
    bound: float | None


def mechanism(scale: float) -> Additive:
    """Double geometric noise of a scale on every cell."""
    return Additive(DiscreteLaplace(scale), CELLS)


def distances(simulated: IntArray, count: int, source: Randomness) -> list[Distances]:
    """Distances of `count` releases of each simulated table by each method."""
    fine, coarse = mechanism(1.0), mechanism(1.0 / EPSILON)

    def by_chain(table: IntArray) -> FloatArray:
        chain = algorithm_one(table, Reading(1.0, bounded=True), TILDE)
        draw, _ = chain.run(table, count, 1, source, warmup=WARMUP, thin=THIN)
        return np.asarray(draw.values[0], dtype=np.float64)

    methods: dict[str, Callable[[IntArray], npt.ArrayLike]] = {
        "noise, ε = 1": lambda t: fine.sample(t, count, source),
        "NNL2, ε = 1": lambda t: image(fine, totals_of(t) & nonnegative()).sample(t, count, source),
        "NNL2 and integers, ε = 1": lambda t: image(
            fine, totals_of(t) & nonnegative(), integer=True
        ).sample(t, count, source),
        "Algorithm 1, ε = 0.5": by_chain,
        "exact, ε = 0.5": lambda t: condition(coarse, totals_of(t) & nonnegative()).sample(
            t, count, source
        ),
        "noise, ε = 0.5": lambda t: coarse.sample(t, count, source),
    }
    out = []
    for method, draw in methods.items():
        change = [np.asarray(draw(table), dtype=np.float64) - table for table in simulated]
        l1 = np.array([np.abs(c).sum(axis=1).mean() for c in change])
        l2 = np.array([np.sqrt((c**2).sum(axis=1)).mean() for c in change])
        out.append(Distances(method, l1, l2))
    return out


def algorithm_one(table: IntArray, reading: Reading, tilde: float) -> Independence:
    """Return the paper's chain for a table, with proposals at epsilon `tilde`."""
    found = condition(
        mechanism(reading.sensitivity / EPSILON),
        reading.invariant(table),
        sampler="independence",
        proposal=Proposal(INDEX, reading.sensitivity / tilde),
    )
    if not isinstance(found, Independence):
        raise TypeError("the sampler asked for is the independence sampler")
    return found


def rates(table: IntArray, reading: Reading, pairs: int, source: Randomness) -> Rates:
    """Share of proposals that Algorithm 1 accepts in equilibrium, for each of `TILDES`.

    Parameters
    ----------
    table : ndarray of int64, shape (46,)
    reading : Reading
    pairs : int
        Exact draws, and as many proposals, for each rate; in batches that tell its error.
    source : Randomness
    """
    size = max(2, pairs // BATCHES)
    found = np.array(
        [
            [
                algorithm_one(table, reading, t).acceptance(table, size, source)
                for _ in range(BATCHES)
            ]
            for t in TILDES
        ]
    )
    errors = found.std(axis=1, ddof=1) / np.sqrt(BATCHES)
    return Rates(reading, found.mean(axis=1), errors)


def short_chains(table: IntArray, reading: Reading, steps: int, source: Randomness) -> FloatArray:
    """Share of its proposals, at `TILDE`, that each of `CHAINS` chains accepts, shape (chains,)."""
    chain = algorithm_one(table, reading, TILDE)
    _, info = chain.run(table, steps, CHAINS, source, warmup=0, thin=1)
    if info.acceptance is None:
        raise AssertionError("a chain that proposes has a rate of acceptance")
    return info.acceptance


def traces(table: IntArray, steps: int, source: Randomness) -> list[Trace]:
    """Traces of Algorithm 1 at two proposals, and of independent exact draws."""
    out = []
    for tilde in (TILDE, EPSILON):
        chain = algorithm_one(table, READINGS[0], tilde)
        draw, info = chain.run(table, steps, CHAINS, source, warmup=0)
        if info.acceptance is None:
            raise AssertionError("a chain that proposes has a rate of acceptance")
        out.append(
            Trace(
                f"Algorithm 1, proposal at ε = {tilde:g}",
                np.asarray(draw.values[0][:, [1, 0]], dtype=np.int64),
                info.acceptance,
                steps,
                info.worst[0],
                (float(info.bulk_ess[1]), float(info.bulk_ess[0])),
                info.tv_bound,
            )
        )
    exact = condition(mechanism(1.0 / EPSILON), READINGS[0].invariant(table))
    values = np.asarray(exact.sample(table, steps, source))
    cells = values[:, [1, 0]].astype(np.int64)
    worth = (float(steps), float(steps))
    out.append(Trace("exact", cells, np.ones(1), steps, 1.0, worth, exact.error_bound))
    return out
