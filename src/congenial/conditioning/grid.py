"""Conditioning noise on a dyadic grid: integer samplers in units of the grid's spacing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from inspect import signature
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from congenial.accounting.guarantee import Guarantee, Neighbours
from congenial.conditioning.chains import CHAINS, Draw, Info
from congenial.conditioning.laws.conditional import ConditionalMechanism, PlotsMarginals
from congenial.conditioning.laws.questions import checked_rows
from congenial.conditioning.mixtures import Mixture
from congenial.errors import ArgumentError, InfeasibleError, UnsupportedError
from congenial.invariants.margins import MarginBounds
from congenial.invariants.written import (
    AtLeast,
    Bounds,
    Invariant,
    Linear,
    Part,
    Union,
    resolve_invariant,
)
from congenial.noise.additive import Additive
from congenial.randomness import Randomness
from congenial.types import FloatArray, IntArray, Values


@dataclass(frozen=True, eq=False)
class OnGrid(PlotsMarginals):
    """A mechanism with noise on a grid, conditioned on an invariant; made by `condition`.

    Attributes
    ----------
    granularity : float
        Spacing of the grid.
    inner : ConditionalMechanism
        The conditional mechanism in units of the granularity.
    """

    mechanism: Additive | Mixture
    granularity: float
    inner: ConditionalMechanism

    def sample(
        self, x: npt.ArrayLike, size: int | None = None, rng: Randomness | None = None
    ) -> FloatArray:
        """Draw releases, exact multiples of the granularity."""
        return self._placed(self.inner.sample(self._units(x), size, rng))

    def log_normalizer(self, x: npt.ArrayLike) -> float:
        """Log probability that the unconditioned mechanism satisfies the invariant at `x`."""
        return self.inner.log_normalizer(self._units(x))

    def log_prob(self, z: npt.ArrayLike, x: npt.ArrayLike) -> float | FloatArray:
        """Log probability of releases, normalised; -inf off the grid and outside the invariant."""
        values = checked_rows(self._first, z).astype(np.float64) / self.granularity
        return self.inner.log_prob(values, self._units(x))

    def marginal(self, node: int | str, x: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
        """Law of one released value, as (values, probabilities) on consecutive grid points."""
        values, probabilities = self.inner.marginal(node, self._units(x))
        return self._placed(values), probabilities

    def joint(
        self, nodes: Sequence[int | str], x: npt.ArrayLike
    ) -> tuple[tuple[FloatArray, ...], FloatArray]:
        """Joint law of one to three released values, on consecutive grid points of each."""
        values, probabilities = self.inner.joint(nodes, self._units(x))
        return tuple(self._placed(each) for each in values), probabilities

    def interval(self, node: int | str, alpha: float = 0.1) -> tuple[float, float]:
        """Interval of released minus true at a node, with probability at least 1 - alpha."""
        lo, hi = self.inner.interval(node, alpha)
        return lo * self.granularity, hi * self.granularity

    def guarantee(self, neighbours: Neighbours) -> Guarantee:
        """Privacy guarantee of one draw; a record adds 1 to each query that counts it."""
        return self.inner.guarantee(neighbours)

    @property
    def error_bound(self) -> float:
        """Bound on the total variation between a draw and its law, for every dataset."""
        return self.inner.error_bound

    def explain(self) -> str:
        """Say which sampler draws, and why."""
        return f"{self.inner.explain()} Values are multiples of {self.granularity:g}."

    def run(
        self,
        x: npt.ArrayLike,
        draws: int = 1000,
        chains: int = CHAINS,
        rng: Randomness | None = None,
        *,
        start: npt.ArrayLike | None = None,
        warmup: int | None = None,
        thin: int | None = None,
    ) -> tuple[Draw, Info]:
        """Run chains, if the sampler has them; see its own `run`, such as `Independence.run`.

        `start` is in the units of `x`. Raises ArgumentError if the chain does not take an option
        that is given, UnsupportedError if draws are exact, because then there is no chain.
        """
        run = getattr(self.inner, "run", None)
        if run is None:
            raise UnsupportedError(
                "run() is for chains, and this sampler's draws are exact and independent; use "
                "sample(size=...)."
            )
        options: dict[str, Any] = {"start": start, "warmup": warmup, "thin": thin}
        given = {name: value for name, value in options.items() if value is not None}
        if not given.keys() <= signature(run).parameters.keys():
            raise ArgumentError(
                f"{' and '.join(given)} given to a chain whose start and steps are fixed; leave "
                "out start, warmup and thin."
            )
        if start is not None:
            try:
                given["start"] = np.asarray(start, dtype=np.float64) / self.granularity
            except (TypeError, ValueError) as cause:
                raise ArgumentError(
                    f"start is {start!r}; give {self._first.n} numbers that satisfy the invariant."
                ) from cause
        drawn, info = run(self._units(x), draws, chains, rng, **given)
        return Draw(self._placed(drawn.values.astype(np.int64))), info

    @property
    def _first(self) -> Additive:
        whole = self.mechanism
        return cast(Additive, whole.parts[0] if isinstance(whole, Mixture) else whole)

    def _units(self, x: npt.ArrayLike) -> IntArray:
        return (self._first.counts(x) / self.granularity).astype(np.int64)

    def _placed(self, steps: Values) -> FloatArray:
        return steps.astype(np.float64) * self.granularity


def spacing(mechanism: object) -> float:
    """Spacing of the grid of a mechanism's noise; 1 for integers, 0 for continuous noise."""
    if isinstance(mechanism, Additive):
        return mechanism.granularity
    if not isinstance(mechanism, Mixture):
        return 1.0
    found = {part.granularity for part in mechanism.parts if isinstance(part, Additive)}
    if len(found) > 1:
        raise ArgumentError(
            f"the mixed mechanisms have noise of granularity {sorted(found)}; give all of them "
            "the same granularity."
        )
    return found.pop() if found else 1.0


def in_units(
    mechanism: Additive | Mixture, invariant: Invariant | Union
) -> tuple[Additive | Mixture, Invariant | Union]:
    """Restate a mechanism and an invariant in units of the grid's spacing."""
    step = spacing(mechanism)
    parts = mechanism.parts if isinstance(mechanism, Mixture) else (mechanism,)
    members = tuple(part for part in parts if isinstance(part, Additive))
    if len(members) != len(parts):
        raise ArgumentError(
            "the mixed mechanisms are not all additive; give congenial.Additive(noise, tree)."
        )
    if not isinstance(invariant, Invariant | Union):
        raise ArgumentError(
            f"the invariant is a {type(invariant).__name__}; build it with congenial.consistent() "
            "and its like, joined by &."
        )
    units: Additive | Mixture = members[0].in_units()
    if isinstance(mechanism, Mixture):
        units = Mixture(tuple(part.in_units() for part in members), mechanism.weights)
    if isinstance(invariant, Union):
        return units, Union(tuple(_restated(c, step, members[0]) for c in invariant.alternatives))
    return units, _restated(invariant, step, members[0])


def _restated(invariant: Invariant, step: float, mechanism: Additive) -> Invariant:
    out = Invariant(tuple(_part(part, step) for part in invariant.parts))
    try:
        resolve_invariant(out, mechanism.n, mechanism.domain)
    except InfeasibleError as cause:
        raise InfeasibleError(
            f"the bounds of an entry leave no multiple of the granularity {step:g}; relax them or "
            "use a finer granularity."
        ) from cause
    return out


def _part(part: Part, step: float) -> Part:
    with np.errstate(over="ignore"):
        if isinstance(part, Bounds):
            return Bounds(part.lo / step, part.hi / step)
        if isinstance(part, MarginBounds):
            return replace(part, lo=part.lo / step, hi=part.hi / step)
        if isinstance(part, Linear | AtLeast):
            return replace(part, value=part.value / step)
    return part
