"""What a check of a release is, and when a statement agrees with what follows."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

import msgspec

from congenial._version import __version__
from congenial.wording import show

# Keys of a certificate that hold words of ours, which versions may choose otherwise.
WORDS = frozenset(
    ("covered", "datasets", "gamma_source", "rows", "sentence", "told", "unprotected")
)
# Relative agreement asked of recomputed claims: other machines may round the last digits otherwise.
TOLERANCE = 1e-12
# The same of estimates told to three digits.
SHOWN = 0.01
_DIGITS = r"(?:(?<!\w)-)?\d+(?:\.\d+)?(?:e[+-]?\d+)?"
_NUMBER = re.compile(_DIGITS, re.ASCII)
# Numbers that tell what a draw costs: they change with the samplers.
_COST = re.compile(
    _DIGITS + r" (?:table entries|multiplications|operations|assignments|[KMG]i?B|B|minutes)\b",
    re.ASCII,
)


@dataclass(frozen=True)
class Check:
    """One thing that was checked.

    Attributes
    ----------
    detail : str
        What was found, in a sentence.
    comparable : bool
        False where numbers and kinds agree, and the words are another version's.
    """

    name: str
    passed: bool
    detail: str
    comparable: bool = True


def compare(
    name: str, what: str, found: object, stated: object, author: str = __version__
) -> Check:
    """Compare a part of the certificate with what follows from its plan."""
    ours, theirs = msgspec.to_builtins(found), msgspec.to_builtins(stated)
    if close(ours, theirs):
        return Check(name, True, f"{what}: as it follows from the plan")
    if author != __version__ and close(_wordless(ours), _wordless(theirs)):
        pairs = list(zip(_words(ours), _words(theirs), strict=True))
        if all(same_numbers(*pair) for pair in pairs):
            first = next(one for one, other in pairs if one != other)
            return otherwise_worded(name, what, first, author)
    return Check(name, False, f"{what}: the certificate states what does not follow from the plan")


def otherwise_worded(name: str, what: str, ours: str, author: str) -> Check:
    """Return the check of a part whose words are another version's."""
    told = (
        f"{what}: follows from the plan but for its words, those of congenial {show(author)}, "
        f"which {__version__} does not compare"
    )
    return Check(name, True, f"{told}; it would say {ours!r}" if ours else told, comparable=False)


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
    numbers, others = (map(float, _NUMBER.findall(text)) for text in (one, other))
    return _NUMBER.split(one) == _NUMBER.split(other) and all(
        math.isclose(a, b, rel_tol=SHOWN) for a, b in zip(numbers, others, strict=True)
    )


def begins_with(text: str, *shown: str) -> bool:
    """Whether the numbers of a text begin with some, in their order; each counts where first."""
    wanted = [*dict.fromkeys(map(float, shown))]
    return [*dict.fromkeys(_numbers(text))][: len(wanted)] == wanted


def same_numbers(ours: str, theirs: str) -> bool:
    """Whether the other words hold no number that ours do not."""
    return {*_numbers(theirs)} <= {*_numbers(ours)}


def without_costs(text: str) -> str:
    """Return a text without what it says a draw costs."""
    return _COST.sub("", text)


def _wordless(part: object) -> object:
    """Plain data without the words of ours in it: only whether there are any is left."""
    if isinstance(part, dict):
        return {k: _said(v) if k in WORDS else _wordless(v) for k, v in part.items()}
    return [_wordless(v) for v in part] if isinstance(part, list | tuple) else part


def _said(words: object) -> str:
    """Whether there are words, none, or an entry that says nothing."""
    entries = [words] if isinstance(words, str) else words
    if not isinstance(entries, list | tuple) or not entries:
        return "none"
    return "some" if all(any(map(str.isalnum, text)) for text in entries) else "blank"


def _words(part: object) -> list[str]:
    """Words of ours in plain data, in order."""
    if isinstance(part, list | tuple):
        return [text for v in part for text in _words(v)]
    if not isinstance(part, dict):
        return []
    found = []
    for key, value in part.items():
        if key in WORDS:
            found.append(value if isinstance(value, str) else "; ".join(value or ()))
        else:
            found += _words(value)
    return found


def _numbers(text: str) -> list[float | str]:
    """Numbers of a text in order, then signs for numbers that are not ASCII's, such as a half."""
    signs = [sign for sign in text if sign.isnumeric() and not sign.isascii()]
    return [*map(float, _NUMBER.findall(text)), *signs]
