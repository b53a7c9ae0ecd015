"""Conditioning a mixture, or on a disjoint union: a mixture of conditional mechanisms."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from congenial.accounting.guarantee import (
    ZCDP_DELTA,
    Guarantee,
    Neighbours,
    mixed_guarantee,
    union_guarantee,
)
from congenial.accounting.loss.inequalities import TRIVIAL
from congenial.conditioning.laws.conditional import PlotsMarginals
from congenial.conditioning.laws.forest_sampler import Conditioned
from congenial.conditioning.laws.questions import checked_counts, checked_rows
from congenial.conditioning.mixtures import check_alike
from congenial.conditioning.weighed_parts import WeighedPart, draw_weighed
from congenial.errors import (
    ArgumentError,
    InfeasibleError,
    InvariantError,
    PrivacyError,
    UnsupportedError,
)
from congenial.invariants.resolved import ResolvedInvariant
from congenial.kernels.numerics import elementwise
from congenial.noise.additive import checked_size
from congenial.randomness import Randomness, resolve
from congenial.types import FloatArray, IntArray

JointLaw = tuple[tuple[IntArray, ...], FloatArray]

# Log probability, relative to no noise, below which the tables of an alternative are not filled
# before it is chosen.
_NEVER = 100.0


@dataclass(frozen=True, eq=False)
class ConditionedMixture(PlotsMarginals):
    """A mixture of conditional mechanisms, part i weighted by its probability of the invariant.

    Made by `congenial.condition` from a mixture, ``sum_i w_i M_i``, whose conditional law is the
    mixture of the ``M_i( . | C)`` with weights in proportion to ``w_i P(M_i in C)``; or from a
    disjoint union, where part i has weight ``P(M in C_i)`` (Two Views, Theorem 3.5).

    Attributes
    ----------
    weights : tuple of float
        Weights before the probabilities of the invariant.
    alternatives : tuple of ResolvedInvariant
        The invariant's alternatives; the data satisfy one of them.
    """

    parts: tuple[Conditioned, ...]
    weights: tuple[float, ...]
    alternatives: tuple[ResolvedInvariant, ...]

    def __post_init__(self) -> None:
        """Check that every part's probability of the invariant is known."""
        if not all(part.certified for part in self.parts):
            raise UnsupportedError(
                "the parts of a mixture or union are weighed by their probabilities of the "
                "invariant, which are unknown for sums with so many cycles; impose fewer sums, "
                "use smaller noise scales, or condition each part alone for a study."
            )

    def sample(
        self, x: npt.ArrayLike, size: int | None = None, rng: Randomness | None = None
    ) -> IntArray:
        """Draw releases; see `Conditioned.sample`."""
        rows, source = checked_size(size), resolve(rng)
        counts = self._checked(x)
        out = draw_weighed(self._weighed(counts), counts, rows, source)
        return out[0] if size is None else out

    def log_normalizer(self, x: npt.ArrayLike) -> float:
        """Log probability that the unconditioned mechanism satisfies the invariant at `x`."""
        return float(elementwise.log_sum(self._log_weights(x)))

    def log_prob(self, z: npt.ArrayLike, x: npt.ArrayLike) -> float | FloatArray:
        """Log probability of releases, normalised; -inf outside the invariant."""
        first = self.parts[0].mechanism
        counts, values = first.counts(x).astype(np.int64, copy=False), checked_rows(first, z)
        rows = np.atleast_2d(values)
        terms = [
            prior + part.log_weights(rows, counts)
            for part, prior in zip(self.parts, self._log_priors, strict=True)
        ]
        out = elementwise.log_sum(np.array(terms), axis=0) - self.log_normalizer(x)
        return float(out[0]) if values.ndim == 1 else np.asarray(out)

    def marginal(self, node: int | str, x: npt.ArrayLike) -> tuple[IntArray, FloatArray]:
        """Law of one released value; see `Conditioned.marginal`."""

        def law(part: Conditioned) -> JointLaw:
            values, probabilities = part.marginal(node, x)
            return (values,), probabilities

        (values,), probabilities = self._mixed(x, law)
        return values, probabilities

    def joint(
        self, nodes: Sequence[int | str], x: npt.ArrayLike
    ) -> tuple[tuple[IntArray, ...], FloatArray]:
        """Joint law of one to three released values; see `Conditioned.joint`."""
        return self._mixed(x, lambda part: part.joint(nodes, x))

    def _mixed(self, x: npt.ArrayLike, law: Callable[[Conditioned], JointLaw]) -> JointLaw:
        """Mix the parts' laws of some values, on the smallest box that contains them all."""
        log_weights = self._log_weights(x)
        shares = elementwise.exp(log_weights - elementwise.log_sum(log_weights))
        laws = [
            (law(part), share)
            for part, share in zip(self.parts, shares.tolist(), strict=True)
            if share > 0.0
        ]
        ends = [[(int(v[0]), int(v[-1])) for v in values] for (values, _), _ in laws]
        first = [min(lo for lo, _ in axis) for axis in zip(*ends, strict=True)]
        last = [max(hi for _, hi in axis) for axis in zip(*ends, strict=True)]
        out = np.zeros([hi - lo + 1 for lo, hi in zip(first, last, strict=True)])
        for ((_, table), share), each in zip(laws, ends, strict=True):
            at = tuple(slice(lo - f, hi - f + 1) for (lo, hi), f in zip(each, first, strict=True))
            out[at] += share * table
        return tuple(np.arange(lo, hi + 1) for lo, hi in zip(first, last, strict=True)), out

    def interval(self, node: int | str, alpha: float = 0.1) -> tuple[int, int]:
        """Interval of the noise at a node that holds for every part; see `Conditioned.interval`."""
        ends = [part.interval(node, alpha) for part in self.parts]
        return min(lo for lo, _ in ends), max(hi for _, hi in ends)

    def guarantee(self, neighbours: Neighbours) -> Guarantee:
        """Privacy guarantee of one draw.

        Under equalities the mixture's weights are the same for every dataset, so its loss is at
        most the largest loss of its parts. Under inequalities the weights depend on the data, so
        gamma = 1 is charged, even if no part has a cost of its own. A union is charged as one
        invariant, because neighbours may satisfy different alternatives.
        """
        if len(self.alternatives) > 1:
            mechanism = self.parts[0].mechanism
            parts = [union_guarantee(mechanism, self.alternatives, neighbours)]
            stated = parts[0]
        else:
            check_alike(self.parts)
            parts = [part.guarantee(neighbours) for part in self.parts]
            stated = mixed_guarantee(parts, self.weights)
            if any(part.whole_orders for part in parts):
                raise PrivacyError(
                    "no bound is proved for a mixture with Gaussian noise conditioned on "
                    "inequalities, whose weights depend on the data; mix discrete Laplace noise."
                )
            if any(part.resolved.has_inequalities for part in self.parts):
                base = max(part.base_epsilon for part in parts)
                stated = replace(
                    stated, epsilon=2.0 * base, base_epsilon=base, gamma=1.0, gamma_source=TRIVIAL
                )
        delta = max(0.0 if part.rho is None else ZCDP_DELTA for part in parts)
        return replace(stated, delta=delta, sampler_error=0.0)

    @property
    def error_bound(self) -> float:
        """Bound on the total variation between a draw and its law."""
        return 0.0

    def explain(self) -> str:
        """Say how the mixture is drawn."""
        first, weighed = self.parts[0], "weighed by their probabilities of the invariant"
        made = f"mixture of {len(self.parts)} conditional mechanisms, {weighed}"
        calls = "All draws share the tables of the parts."
        if not all(part.data_free for part in self.parts):
            calls = "Each call of sample() fills the tables of all parts."
        return (
            f"{made}: {first.sums_text}. {calls} Each draw is independent. Its law is exactly the "
            "stated one."
        )

    def _checked(self, x: npt.ArrayLike) -> IntArray:
        first = self.parts[0]
        counts = checked_counts(first.mechanism, first.resolved, x, bounds_hold=False)
        if not any(one.with_pins(counts).within_bounds(counts) for one in self.alternatives):
            raise InvariantError(
                "x satisfies no alternative of the invariant; the data themselves must satisfy one."
            )
        return counts

    def _weighed(self, counts: IntArray) -> list[WeighedPart]:
        """Return the parts that can hold for these counts."""
        found = []
        for part, weight, free in zip(self.parts, self.weights, self._free, strict=True):
            if not weight or _contradicts(part, counts):
                continue
            if part.data_free:
                found.append(free)
                continue
            try:
                made = WeighedPart(part, weight, counts, far=_is_far(part, counts))
                if not made.far:
                    made.fill()
            except InfeasibleError:
                continue
            found.append(made)
        return found

    @cached_property
    def _free(self) -> list[WeighedPart]:
        """All parts; those under equalities alone have the same tables for all data."""
        nothing = np.zeros(self.parts[0].mechanism.n, dtype=np.int64)
        each = zip(self.parts, self.weights, strict=True)
        return [WeighedPart(part, weight, nothing) for part, weight in each]

    def _log_weights(self, x: npt.ArrayLike) -> FloatArray:
        counts = self._checked(x)
        found = [self._log_probability(part, counts) for part in self.parts]
        return np.asarray(self._log_priors + np.array(found), dtype=np.float64)

    @property
    def _log_priors(self) -> FloatArray:
        with np.errstate(divide="ignore"):
            return np.asarray(elementwise.log(np.array(self.weights)), dtype=np.float64)

    def _log_probability(self, part: Conditioned, counts: IntArray) -> float:
        """Log probability of a part's invariant; -inf if it never, or almost never, holds."""
        try:
            if _contradicts(part, counts) or _is_far(part, counts):
                return -np.inf
            return part.log_normalizer(counts)
        except InfeasibleError:
            return -np.inf


def _contradicts(part: Conditioned, counts: IntArray) -> bool:
    """Whether the pinned values of the data, which neighbours share, exclude an alternative."""
    resolved = part.resolved.with_pins(counts)
    outside = (counts < resolved.lo) | (counts > resolved.hi)
    return bool(outside[part.fixed[: resolved.n]].any())


def _is_far(part: Conditioned, counts: IntArray) -> bool:
    """Whether an alternative has less than exp(-100) times the probability of no noise.

    The point without noise satisfies the alternative of the data. Raises InfeasibleError if no
    values satisfy the alternative.
    """
    if part.resolved.with_pins(counts).within_bounds(counts):
        return False
    never = part.log_mode - _NEVER
    return any(part.log_ceiling(counts, thorough=long) < never for long in (False, True))


def check_alternatives(alternatives: Sequence[ResolvedInvariant]) -> None:
    """Check that alternatives differ in bounds only and exclude each other."""
    first = alternatives[0]
    for i, one in enumerate(alternatives):
        pairs = zip(
            (one.pinned, one.relative, *one.equalities),
            (first.pinned, first.relative, *first.equalities),
            strict=True,
        )
        if (one.sums is None) != (first.sums is None) or not all(
            np.array_equal(own, other) for own, other in pairs
        ):
            raise UnsupportedError(
                "the alternatives of a union differ in more than bounds; give each of them the "
                "same consistent(), exactly() and linear() parts."
            )
        for other in alternatives[:i]:
            if not ((one.lo > other.hi) | (other.lo > one.hi)).any():
                raise ArgumentError(
                    "two alternatives of a union may hold at once; give an entry bounds that "
                    "exclude each other."
                )
