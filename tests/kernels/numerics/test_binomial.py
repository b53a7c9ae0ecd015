"""Tables of binomial laws, against the law in exact fractions."""

from __future__ import annotations

from fractions import Fraction
from math import comb

import numpy as np
import pytest

from congenial.kernels.numerics.binomial import BYTES, MORE
from support.kernel_entries import entry

WORD = 2**64


def law_of_tables(n, odds):
    """Return the law that a byte and a word draw, as fractions of 0 to 64."""
    table, edges = np.empty(BYTES, dtype=np.int64), np.empty(65, dtype=np.uint64)
    entry("numerics.binomial.fill_tables")(n, odds, table, edges)
    more = Fraction(int((table == MORE).sum()), BYTES)
    ends = [0, *(int(edge) for edge in edges[:64]), WORD]
    return [
        Fraction(int((table == k).sum()), BYTES) + more * Fraction(ends[k + 1] - ends[k], WORD)
        for k in range(65)
    ]


@pytest.mark.parametrize(("n", "odds"), [(1, 1.0), (2, 3.0), (10, 0.25), (40, 0.1), (3000, 1e-3)])
def test_tables_draw_the_binomial_law(n, odds):
    weights = [comb(n, k) * Fraction(odds) ** k for k in range(65)]
    total = sum(weights)
    found = law_of_tables(n, odds)
    apart = sum(abs(p - w / total) for p, w in zip(found, weights, strict=True)) / 2
    assert apart < Fraction(1, 2**62)
    other = [comb(n, k) * Fraction(1.3 * odds) ** k for k in range(65)]
    assert sum(abs(p - w / sum(other)) for p, w in zip(found, other, strict=True)) > Fraction(1, 50)
