"""Draws from unions and mixtures (`congenial.conditioning.weighed_parts`)."""

from __future__ import annotations

from fractions import Fraction

from congenial.conditioning import weighed_parts
from support.reference import merges
from support.reference.numbers import Words, below, decimal, many_digits


def draw(parts, counts, words: Words):
    """Draw one release of counts; `parts` are forests, and none is far from the counts."""
    with many_digits():
        # masses are numbers with which parts are chosen, as tables are
        most = max(part.mass(0)[1] for part in parts)
    with weighed_parts.precision(0):
        unit = most / weighed_parts._LARGEST
        shares = [int(part.mass(0)[1] / unit) + 2 for part in parts]
        bounds = [share * unit for share in shares]
    while True:
        i, kept = _place(shares, words), words.word()
        with many_digits():
            if not below(kept, parts[i].mass(4)[1] / bounds[i], words):
                continue
        part = parts[i].part
        accepted, drawn = merges.attempt(part.weighed_envelopes(counts), 1, words)
        if accepted[0]:
            n = counts.size
            return drawn[0, :n] * part.forest.orientation[:n] + counts


def _place(shares, words):
    """Choose a place with a probability of its share, by as many words as it takes."""
    word, begun = words.word(), 0
    with many_digits():
        for i, share in enumerate(shares):
            begun += share
            if i == len(shares) - 1 or below(word, decimal(Fraction(begun, sum(shares))), words):
                return i
    raise AssertionError
