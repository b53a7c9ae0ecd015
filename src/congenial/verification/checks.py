"""Checks of a release, and the tolerance of their comparisons."""

from __future__ import annotations

import math
from dataclasses import dataclass

import msgspec

from congenial.namespaces import renamed

# Relative tolerance of recomputed claims: machines may round the last digits differently
TOLERANCE = 1e-12


@dataclass(frozen=True)
class Check:
    """The result of one check.

    Attributes
    ----------
    text : str
        The finding, in a sentence.
    comparable : bool
        False if a certificate of format 1 has only words, which are not compared.
    """

    name: str
    passed: bool
    text: str
    comparable: bool = True
    detail = renamed("detail", "text")


def judged(name: str, passed: bool, good: str, bad: str) -> Check:
    """Return a check with the sentence for its outcome."""
    return Check(name, passed, good if passed else bad)


def compare(name: str, what: str, found: object, stated: object) -> Check:
    """Compare a part of the certificate with what follows from its plan."""
    same = close(msgspec.to_builtins(found), msgspec.to_builtins(stated))
    false = f"{what}: the certificate disagrees with the plan"
    return judged(name, same, f"{what}: as the plan implies", false)


def close(one: object, other: object) -> bool:
    """Whether plain data agree, numbers up to rounding."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(close(one[k], other[k]) for k in one)
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(close, one, other))
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=TOLERANCE)
    return one == other
