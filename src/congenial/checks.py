"""What a check of a release is, and when a statement agrees with what follows."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

import msgspec

# Relative agreement asked of recomputed claims: other machines may round the last digits otherwise.
TOLERANCE = 1e-12
# The same of estimates told to three digits.
SHOWN = 0.01


@dataclass(frozen=True)
class Check:
    """One thing that was checked.

    Attributes
    ----------
    name : str
    passed : bool
    detail : str
        What was found, in a sentence.
    """

    name: str
    passed: bool
    detail: str


def compare(name: str, what: str, found: object, stated: object) -> Check:
    """Compare a part of the certificate with what follows from its plan."""
    same = close(msgspec.to_builtins(found), msgspec.to_builtins(stated))
    text = "as it follows" if same else "the certificate states what does not follow"
    return Check(name, same, f"{what}: {text} from the plan")


def close(one: object, other: object) -> bool:
    """Whether plain data agree, numbers up to rounding."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(close(one[k], other[k]) for k in one)
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(close, one, other))
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=TOLERANCE)
    return one == other


def same_words(one: str, other: str) -> bool:
    """Whether texts agree, and numbers in them but for what rounding may do to an estimate."""
    pattern = r"\d+(?:\.\d+)?(?:e[+-]?\d+)?"
    numbers, others = (map(float, re.findall(pattern, text)) for text in (one, other))
    return re.split(pattern, one) == re.split(pattern, other) and all(
        math.isclose(a, b, rel_tol=SHOWN) for a, b in zip(numbers, others, strict=True)
    )
