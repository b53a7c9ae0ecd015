"""An invariant taken apart into single invariants, and their names in messages."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from congenial.domain.tree import Tree
from congenial.domain.workload import Workload
from congenial.invariants.resolved import ResolvedInvariant
from congenial.invariants.written import Bounds, Invariant, Nonnegative
from congenial.types import FloatArray, IntArray
from congenial.wording import joined

Kind = Literal["every", "lower", "upper", "pin", "sum", "linear", "at_least", "pair"]

# Names listed in a message; further ones are only counted.
_LISTED = 4


@dataclass(frozen=True, order=True)
class SingleInvariant:
    """One invariant on one entry, node, row or pair."""

    # "every" for a bound that all entries share, "lower" and "upper" for bounds of one entry, "pin"
    # for an entry published exactly, "sum" for an inner node that equals the sum of its children,
    # "linear" and "at_least" for rows, "pair" for two entries where one is published exactly and
    # bounds the other.
    kind: Kind
    at: int  # The entry, node or row; of "every", 0 for the lower bound and 1 for the upper.


@dataclass(frozen=True, eq=False)
class SingleInvariants:
    """All single invariants, with bounds rounded to values that entries can take."""

    resolved: ResolvedInvariant
    whole: bool  # Whether entries are integers.
    every: tuple[float, float]  # The bounds that all entries share; infinite if there is none.
    nonnegative: bool  # Whether the shared lower bound is that of nonnegative().
    # `lo` and `hi`: shape (n,): Bounds of single entries if tighter than the shared ones, else
    # infinite.
    lo: FloatArray
    hi: FloatArray
    pins: IntArray  # shape (k,)
    # shape (k,): Entries published exactly and their values; both empty if the data are not known.
    values: FloatArray

    @property
    def tree(self) -> Tree | None:
        """The hierarchy that must add up."""
        return self.resolved.tree


def take_apart(
    resolved: ResolvedInvariant,
    invariant: Invariant | None = None,
    *,
    whole: bool,
    counts: npt.ArrayLike | None = None,
) -> SingleInvariants:
    """Take an invariant apart."""
    low, high = resolved.lo, resolved.hi
    parts = () if invariant is None else invariant.parts
    nonnegative = any(isinstance(part, Nonnegative) for part in parts)
    shared = [part for part in parts if isinstance(part, Bounds)]
    least = [float(part.lo) for part in shared if part.lo.ndim == 0]
    least += [0.0] * nonnegative
    most = [float(part.hi) for part in shared if part.hi.ndim == 0]
    every = max(least, default=-np.inf), min(most, default=np.inf)
    if whole:
        low, high = np.ceil(low), np.floor(high)
        every = float(np.ceil(every[0])), float(np.floor(every[1]))
    pins = np.flatnonzero(resolved.pinned & (counts is not None))
    values = np.zeros(0) if counts is None else np.asarray(counts, dtype=np.float64)[pins]
    return SingleInvariants(
        resolved,
        whole,
        every,
        nonnegative and every[0] == 0.0,
        np.where(low > every[0], low, -np.inf),
        np.where(high < every[1], high, np.inf),
        pins,
        values,
    )


@dataclass(frozen=True)
class InfeasibleSubset:
    """Single invariants that no release can satisfy together."""

    members: tuple[SingleInvariant, ...]  # Without any one of them, the others are feasible.
    text: str  # Requirements of the members, in words.

    @property
    def sentence(self) -> str:
        """The message of the error."""
        number = len(self.members)
        if number == 1:
            return f"no release can satisfy {self.text}; correct it or leave it out."
        return (
            f"no release can satisfy these {number} invariants together: {self.text}; "
            "relax one of them or leave it out."
        )


def tell(
    single: SingleInvariants,
    members: Iterable[SingleInvariant],
    domain: Tree | Workload | None,
    grid: float,
) -> InfeasibleSubset:
    """Name the members of an infeasible subset, without any value from the data."""
    found = tuple(sorted(members, key=lambda m: (_ORDER.index(m.kind), m.at)))

    def name(v: int) -> str:
        if domain is None:
            return f"entry {v}"
        return repr(domain.name(v) if isinstance(domain, Workload) else "/".join(domain.path(v)))

    texts = []
    for kind in _ORDER:
        at = [m.at for m in found if m.kind == kind]
        if at:
            texts += _TEXTS[kind](single, at, name, grid)
    return InfeasibleSubset(found, joined(texts))


def _pairs(pairs: list[IntArray], name: Callable[[int], str]) -> list[str]:
    """Name pairs of a larger and a smaller entry."""
    texts = [
        f"at least as many of {name(int(more))} as of {name(int(fewer))}"
        for more, fewer in pairs[:_LISTED]
    ]
    if len(pairs) > _LISTED:
        texts.append(f"{len(pairs) - _LISTED} more pairs of that kind")
    return texts


_ORDER: tuple[Kind, ...] = ("upper", "lower", "every", "pin", "linear", "at_least", "pair", "sum")
_Texts = Callable[[SingleInvariants, list[int], Callable[[int], str], float], list[str]]


def _every(
    single: SingleInvariants, at: list[int], _: Callable[[int], str], grid: float
) -> list[str]:
    return [
        "no count below 0"
        if side == 0 and single.nonnegative
        else f"the bound of every count (at {('least', 'most')[side]} "
        f"{single.every[side] * grid:.12g})"
        for side in at
    ]


def _bounded(at: list[int], ends: FloatArray, side: str, name: Callable[[int], str]) -> list[str]:
    together = " together" if len(at) > 1 else ""
    text = f"(at {side} {ends[at].sum():.12g}{together})"
    bounds = f"the bound{'s' * (len(at) > 1)} of"
    return [f"{bounds} {_listed([name(v) for v in at[:_LISTED]], len(at))} {text}"]


def _rows(function: str, at: list[int]) -> list[str]:
    first = "row" if len(at) == 1 else "rows"
    return [f"{first} {_listed([str(k) for k in at[:_LISTED]], len(at))} of {function}"]


_TEXTS: dict[Kind, _Texts] = {
    "upper": lambda single, at, name, grid: _bounded(at, single.hi * grid, "most", name),
    "lower": lambda single, at, name, grid: _bounded(at, single.lo * grid, "least", name),
    "every": _every,
    "pin": lambda _, at, name, __: [
        f"the exact count{'s' * (len(at) > 1)} of "
        f"{_listed([name(v) for v in at[:_LISTED]], len(at))}"
    ],
    "linear": lambda _, at, __, ___: _rows("linear(), counted from 0", at),
    "at_least": lambda _, at, __, ___: _rows("at_least(), counted from 0", at),
    "pair": lambda single, at, name, _: _pairs([single.resolved.pairs[k] for k in at], name),
    "sum": lambda single, at, name, _: [
        f"the sum{'s' * (len(at) > 1)} of the {'tree' if single.tree else 'cells'} at "
        f"{_listed([name(v) for v in at[:_LISTED]], len(at))}"
    ],
}


def _listed(names: Sequence[str], number: int) -> str:
    if number > len(names):
        return f"{', '.join(names)} and {number - len(names)} more"
    return joined(names)
