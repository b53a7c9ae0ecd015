"""Convolution by transforms: tables so wide that the bound on their error grows with them."""

from __future__ import annotations

import numpy as np

from congenial.sum_network import fourier


def test_tables_of_a_million_counts_are_not_added_up_term_by_term(monkeypatch):
    def directly(a, b, first, size):
        spent.append(size * min(a.size, b.size))
        assert sum(spent) < 1e10
        return term_by_term(a, b, first, size)

    spent: list[int] = []
    term_by_term = fourier.convolve_directly
    monkeypatch.setattr(fourier, "convolve_directly", directly)
    s = np.arange(800_000)
    a = np.exp(-s / 1e5)
    table, error, top = fourier.convolve_wide(a, a, 0, s.size)
    np.testing.assert_allclose(table * top, (s + 1) * a, rtol=1e-12)
    assert (error <= 1.001e-10 * table).all()
