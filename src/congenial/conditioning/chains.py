"""What chains give and how they went, the same for every sampler that is a chain."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol, TypedDict, runtime_checkable

import numpy as np
import numpy.typing as npt

from congenial.conditioning.diagnostics import LEAST_DRAWS, bulk_ess, split_rhat, tail_ess
from congenial.errors import ArgumentError
from congenial.mechanisms.additive import checked_size
from congenial.randomness import Randomness

FloatArray = npt.NDArray[np.float64]
Values = npt.NDArray[np.int64 | np.float64]

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
        See `congenial.conditioning.diagnostics`; NaN where an entry does not vary, or where too
        few were drawn.
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


@runtime_checkable
class Chained(Protocol):
    """What draws by chains, and says how they went."""

    def run(
        self,
        x: npt.ArrayLike,
        draws: int = 1000,
        chains: int = CHAINS,
        rng: Randomness | None = None,
    ) -> tuple[Draw, Info]:
        """Run chains."""


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
