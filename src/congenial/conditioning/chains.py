"""Draws and diagnostics of chains, with one interface for all samplers that are chains."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, ClassVar, NoReturn

import numpy as np
import numpy.typing as npt

from congenial.accounting.guarantee import Neighbours
from congenial.conditioning.laws.conditional import AnswersByLaw
from congenial.errors import ArgumentError, PrivacyError, UnsupportedError
from congenial.noise.additive import checked_size
from congenial.randomness import Randomness, resolve
from congenial.types import FloatArray, Values

CHAINS = 4
# Fewest draws of a chain for which diagnostics are computed.
LEAST_DRAWS = 8
_NOT_CERTIFIED = "not certified, as no bound on its error is known"


@dataclass(frozen=True, eq=False)
class Draw:
    """Draws of chains and their diagnostics."""

    values: Values  # ndarray, shape (chains, draws, n): int64 for integer noise, float64 otherwise.


@dataclass(frozen=True, eq=False)
class Info:
    """Facts about a run of chains; ArviZ computes `r_hat`, `bulk_ess`, `tail_ess` and `worst`."""

    warmup: int  # Steps of each chain that were left out.
    thin: int  # Steps for each draw kept.
    noise: Values = field(repr=False)  # shape (chains, draws, n): Noise of the draws.
    # shape (chains,): Part of the proposals that each chain accepted after the warm-up; None if
    # blocks are drawn exactly, so that nothing is rejected.
    acceptance: FloatArray | None = None
    # Bound on the total variation between a chain's last draw and the law, from any start, or None.
    tv_bound: float | None = None
    unbounded: str = ""  # Why there is no such bound; empty if there is one.
    blocks: int | None = None  # Number of blocks in one sweep; None without blocks.
    # True if the moves are proved to connect all solutions; None if that is not known.
    irreducible: bool | None = None
    certified: bool = False  # Always False: a chain's run is for studies.

    @cached_property
    def r_hat(self) -> FloatArray:
        """Rank-normalised split R-hat of each entry, shape (n,); near 1 if chains agree.

        R-hat and the sample sizes below are NaN for an entry that does not vary, and for chains
        with fewer than `LEAST_DRAWS` draws. All raise `UnsupportedError` without ArviZ.
        """
        return self._diagnosed("rhat", "rank")

    @cached_property
    def bulk_ess(self) -> FloatArray:
        """Bulk effective sample size of each entry, all chains together, shape (n,)."""
        return self._diagnosed("ess", "bulk")

    @cached_property
    def tail_ess(self) -> FloatArray:
        """Tail effective sample size of each entry, all chains together, shape (n,)."""
        return self._diagnosed("ess", "tail")

    @property
    def worst(self) -> tuple[float, float]:
        """Largest R-hat and smallest bulk effective sample size; NaN if none is known.

        If a chain accepted no proposal, they are infinity and 0.
        """
        if self.acceptance is not None and (self.acceptance == 0.0).any():
            return float("inf"), 0.0
        known = np.flatnonzero(np.isfinite(self.r_hat))
        if not known.size:
            return float("nan"), float("nan")
        return float(self.r_hat[known].max()), float(self.bulk_ess[known].min())

    def _diagnosed(self, measure: str, method: str) -> FloatArray:
        arviz, xarray = arviz_for(measure)
        out = np.full(self.noise.shape[2], np.nan)
        varies = np.flatnonzero(np.ptp(self.noise, axis=(0, 1)) > 0)
        if self.noise.shape[1] >= LEAST_DRAWS and varies.size:
            real = self.noise[:, :, varies].astype(np.float64)
            data = xarray.Dataset({"noise": (("chain", "draw", "entry"), real)})
            with np.errstate(divide="ignore", invalid="ignore"):
                out[varies] = getattr(arviz, measure)(data, method=method)["noise"].to_numpy()
        return out


def arviz_for(what: str) -> tuple[Any, Any]:
    """Import ArviZ and xarray, which have no type hints here."""
    try:
        try:
            import arviz
        except FileNotFoundError:
            # ArviZ writes the day of its notice, and two processes may do so in the same moment
            import arviz
        import xarray
    except ImportError as cause:
        raise UnsupportedError(
            f"{what} needs ArviZ, which is not installed; run pip install arviz."
        ) from cause
    except OSError as cause:
        raise UnsupportedError(
            f"{what} needs ArviZ, which cannot write {cause.filename}. Set the environment "
            "variable XDG_CACHE_HOME to a folder that can be written."
        ) from cause
    return arviz, xarray


class Chain:
    """A mechanism sampled by chains with no bound on their error: for studies, never certified."""

    # such as "blocked Gibbs sampler"; and the sampler to use for a release
    called: ClassVar[str]
    remedy: ClassVar[str]

    @property
    def apart(self) -> int | None:
        """Steps for each draw of `sample`; None for the chain's own."""
        return None

    def run(
        self,
        x: npt.ArrayLike,
        draws: int = 1000,
        chains: int = CHAINS,
        rng: Randomness | None = None,
    ) -> tuple[Draw, Info]:
        """Run chains; return their draws and diagnostics. `rng` is `congenial.seeded(n)`."""
        source = self._source(rng)
        check_lengths({"draws": draws, "chains": chains})
        return self._run(x, int(draws), int(chains), source)

    def _run(
        self, x: npt.ArrayLike, draws: int, chains: int, source: Randomness
    ) -> tuple[Draw, Info]:
        raise NotImplementedError

    def sample(
        self, x: npt.ArrayLike, size: int | None = None, rng: Randomness | None = None
    ) -> Any:
        """Draw from the chains in turn: dependent draws, for studies; see `run`.

        Arguments and result are those of `Additive.sample`; `rng` is `congenial.seeded(n)`.
        """
        steps = {} if self.apart is None else {"thin": self.apart}
        return sample_in_turn(partial(self.run, rng=rng, **steps), x, size)

    def guarantee(self, neighbours: Neighbours) -> NoReturn:
        """Refuse with PrivacyError: no bound on the chain's error is known."""
        raise PrivacyError(
            f"the {self.called} is {_NOT_CERTIFIED}, so no guarantee ({neighbours!r} or other) can "
            f"be given; {self.remedy}."
        )

    @property
    def error_bound(self) -> float:
        """1, the largest total variation possible, because nothing is proved."""
        return 1.0

    def _source(self, rng: Randomness | None) -> Randomness:
        return study_source(rng, f"the {self.called} is {_NOT_CERTIFIED}", self.remedy)

    @property
    def _limits_text(self) -> str:
        return (
            "Not certified: convergence is diagnosed (R-hat and effective sample size, see run()), "
            f"not proved, so no release can be made and no guarantee given; {self.remedy}."
        )


class ChainAlone(Chain, AnswersByLaw):
    """Chains for a law whose probabilities are not known otherwise: every question is refused."""

    # the reason, which follows the question's name in a message
    unknown: ClassVar[str]

    def _law(self, question: str) -> NoReturn:
        raise UnsupportedError(
            f"{question}() {self.unknown}; estimate it from run(), or {self.remedy}."
        )


def study_source(rng: Randomness | None, why: str, remedy: str) -> Randomness:
    """Return a seeded source for a chain's run; refuse others, because a run is no release."""
    source = resolve(rng)
    if source.private:
        raise PrivacyError(
            f"a chain's run is not a release, because {why}: give rng=congenial.seeded(n) for a "
            f"study, or {remedy}."
        )
    return source


def check_lengths(lengths: Mapping[str, int], least: int = 1) -> None:
    """Check that numbers of draws, chains or steps are integers, and not too small."""
    if any(value is None or checked_size(value) < least for value in lengths.values()):
        text = ", ".join(f"{name} is {value}" for name, value in lengths.items())
        raise ArgumentError(f"{text}; give at least {least} each.")


def sample_in_turn(
    run: Callable[[npt.ArrayLike, int, int], tuple[Draw, Info]],
    x: npt.ArrayLike,
    size: int | None,
) -> Values:
    """Return `size` draws of a run, taken from all its chains in turn."""
    rows = checked_size(size)
    draw, _ = run(x, max(-(-rows // CHAINS), 1), CHAINS)
    out = in_turn(draw.values, rows)
    return out[0] if size is None else out


def in_turn(values: Values, rows: int) -> Values:
    """Return draws from all chains in turn, shape (rows, n)."""
    return values.transpose(1, 0, 2).reshape(-1, values.shape[2])[:rows]


def check_steps(draws: int, chains: int, warmup: int, thin: int) -> None:
    """Check the lengths of a run whose steps are chosen."""
    check_lengths({"draws": draws, "chains": chains, "thin": thin})
    check_lengths({"warmup": warmup}, least=0)
