"""Mixtures of mechanisms: one of several, chosen at random."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from congenial.accounting.guarantee import Guarantee, Neighbours, imaged_guarantee, mixed_guarantee
from congenial.accounting.mechanism import Mechanism
from congenial.domain.tree import Tree
from congenial.domain.workload import Workload
from congenial.errors import ArgumentError, PrivacyError
from congenial.invariants.resolved import ResolvedInvariant
from congenial.invariants.written import Invariant, resolve_invariant
from congenial.kernels.numerics import elementwise
from congenial.noise.additive import Additive, checked_size
from congenial.randomness import Randomness, choose, resolve
from congenial.types import FloatArray, Values

# All doubles are multiples of 1 over this number.
_UNITS = 1 << 1074
Part = Additive | Mechanism


@dataclass(frozen=True, eq=False)
class Mixture:
    """The mechanism that follows part i with probability ``weights[i]``; made by `mixture`.

    Attributes
    ----------
    parts : tuple
        `Additive` mechanisms, or conditioned, imaged or mixed ones.
    weights : tuple of float
        Public, adding up to 1. A part is drawn with exactly its weight over the sum of all.
    """

    parts: tuple[Part, ...]
    weights: tuple[float, ...]

    def sample(
        self, x: npt.ArrayLike, size: int | None = None, rng: Randomness | None = None
    ) -> Values:
        """Draw releases, each from a part chosen at random."""
        return draw_mixed(self.parts, np.array(self.weights), x, size, resolve(rng))

    def log_prob(self, z: npt.ArrayLike, x: npt.ArrayLike) -> float | FloatArray:
        """Log probability (or density) of releases; raises ArgumentError if it is unknown."""
        terms = []
        for part, weight in zip(self.parts, self.weights, strict=True):
            law: Callable[..., FloatArray] | None = getattr(part, "log_prob", None)
            if law is None:
                raise ArgumentError(
                    f"a part of the mixture is a {type(part).__name__}, whose law is not known; "
                    "mix additive or conditioned mechanisms to ask for log_prob."
                )
            with np.errstate(divide="ignore"):
                terms.append(np.asarray(law(z, x)) + elementwise.log(weight))
        out = elementwise.log_sum(np.array(terms), axis=0)
        return float(out) if out.ndim == 0 else out

    def guarantee(self, neighbours: Neighbours) -> Guarantee:
        """Privacy guarantee of one draw: the largest loss of any part, the mean of the deltas.

        Raises PrivacyError if the parts count in different ways, fix different values, or one has
        no guarantee.
        """
        check_alike(self.parts)
        stated = []
        for part in self.parts:
            if isinstance(part, Additive):
                free = resolve_invariant(Invariant(()), part.n, part.domain)
                error = part.noise.sampling_error(part.scales)
                stated.append(imaged_guarantee(part, free, neighbours, sampler_error=error))
            else:
                stated.append(part.guarantee(neighbours))
        return mixed_guarantee(stated, self.weights)

    def explain(self) -> str:
        """List the parts with their weights."""
        names = (
            f"{part.noise.name} noise"
            if isinstance(part, Additive)
            else type(part).__name__.lower()
            for part in self.parts
        )
        listed = ", ".join(f"{w:.6g} {name}" for w, name in zip(self.weights, names, strict=True))
        return f"mixture: one part is chosen at random for each draw, with weights {listed}."


def mixture(parts: Sequence[Part], weights: Sequence[float]) -> Mixture:
    """Mix mechanisms with public weights.

    Parameters
    ----------
    parts : sequence
        Mechanisms on the same queries.
    weights : sequence of float
        Nonnegative, adding up to 1.

    Returns
    -------
    Mixture

    Raises
    ------
    ArgumentError
        If there are no parts, the numbers of parts and weights differ, or the weights are not a
        probability.
    """
    members, shares = tuple(parts), np.asarray(weights, dtype=np.float64)
    if not members or shares.shape != (len(members),):
        raise ArgumentError(
            f"mixture() was given {len(members)} mechanisms and weights of shape {shares.shape}; "
            "give at least one mechanism and one weight for each."
        )
    for part in members:
        if not hasattr(part, "sample"):
            raise ArgumentError(
                f"mixture() was given a {type(part).__name__}; give mechanisms, such as Additive "
                "ones or what condition() and image() return."
            )
    if not (np.isfinite(shares) & (shares >= 0)).all() or abs(shares.sum() - 1.0) > 1e-9:
        raise ArgumentError(
            f"mixture() was given weights {shares.tolist()}; "
            "give nonnegative ones that add up to 1."
        )
    return Mixture(members, tuple(float(w) for w in shares / shares.sum()))


def draw_mixed(
    parts: Sequence[Part], weights: FloatArray, x: npt.ArrayLike, size: int | None, rng: Randomness
) -> Values:
    """Draw from parts chosen exactly in proportion to weights; shapes as `Mixture.sample`."""
    rows = checked_size(size)
    chosen = choose([int(Fraction(w) * _UNITS) for w in weights.tolist()], rows, rng)
    drawn = {int(i): parts[i].sample(x, int((chosen == i).sum()), rng) for i in np.unique(chosen)}
    if not drawn:
        return parts[0].sample(x, 0, rng)
    first = next(iter(drawn.values()))
    out = np.empty((rows, first.shape[1]), dtype=np.result_type(*drawn.values()))
    for i, values in drawn.items():
        out[chosen == i] = values
    return out[0] if size is None else out


class _Neighbourhood(NamedTuple):
    """The facts that decide which datasets are neighbours: how records count, and fixed sums."""

    counted: Tree | Workload | None
    resolved: ResolvedInvariant
    unit: float
    per_record: float


def _neighbourhoods(part: object, unit: float) -> Iterator[_Neighbourhood]:
    """Yield these facts for every mechanism in a part; `unit` is the unit of its numbers."""
    mechanism = part if isinstance(part, Additive) else getattr(part, "mechanism", None)
    resolved = getattr(part, "resolved", None)
    if isinstance(part, Additive):
        resolved = resolve_invariant(Invariant(()), part.n, part.domain)
    if isinstance(inner := getattr(part, "parts", None), tuple):
        for each in inner:
            yield from _neighbourhoods(each, unit)
    elif (below := getattr(part, "inner", None)) is not None:
        yield from _neighbourhoods(below, unit * float(getattr(part, "granularity", 1.0)))
    elif isinstance(mechanism, Additive) and isinstance(resolved, ResolvedInvariant):
        counted = mechanism.counted or resolved.counted
        yield _Neighbourhood(counted, resolved, unit, unit * mechanism.per_record)
    else:
        raise PrivacyError(
            f"a part of the mixture is a {type(part).__name__}, whose exact values are unknown; "
            "mix additive, conditioned or imaged mechanisms."
        )


def check_alike(parts: Sequence[object]) -> None:
    """Refuse parts under which different datasets are neighbours."""
    first, *others = (found for part in parts for found in _neighbourhoods(part, 1.0))
    for other in others:
        if first.resolved.n != other.resolved.n or not _same(first.counted, other.counted):
            raise PrivacyError(
                "the mixed mechanisms count records in different ways, so they share no guarantee; "
                "give all of them the same tree, or the same number of queries."
            )
        if first.per_record != other.per_record:
            raise PrivacyError(
                f"one record changes the mixed mechanisms' counts by {first.per_record:g} and by "
                f"{other.per_record:g}, so they share no guarantee; give all of them the same "
                "per_record."
            )
        rows, values = first.resolved.equalities
        theirs, their_values = other.resolved.equalities
        if not (
            np.array_equal(first.resolved.determined, other.resolved.determined)
            and np.array_equal(rows, theirs)
            and np.array_equal(values * first.unit, their_values * other.unit)
        ):
            raise PrivacyError(
                "the mixed mechanisms fix different values, so they share no guarantee; mix "
                "mechanisms under the same invariants."
            )


def _same(one: Tree | Workload | None, other: Tree | Workload | None) -> bool:
    if isinstance(one, Workload) and isinstance(other, Workload):
        return one.same_as(other)
    if isinstance(one, Tree) and isinstance(other, Tree):
        return one.same_as(other)
    return one is None and other is None
