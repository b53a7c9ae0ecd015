"""Convolution by transforms: tables so wide that the bound on their error grows with them."""

from __future__ import annotations

import numpy as np
import pytest

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


@pytest.mark.parametrize(("first", "width"), [(0, 900), (1700, 40), (2300, 1500), (4700, 250)])
@pytest.mark.parametrize("same", [False, True])
def test_a_stretch_of_the_sum_takes_no_longer_transform_than_it_needs(first, width, same):
    a = np.exp(-np.abs(np.arange(3000) - 1400) / 90.0)
    b = a if same else np.exp(-0.5 * ((np.arange(2000) - 900) / 60.0) ** 2)
    whole = np.convolve(a.astype(np.longdouble), b.astype(np.longdouble))
    table, error, top = fourier.convolve_wide(a, b, first, width)
    true = whole[first : first + width] / np.longdouble(top)
    assert (np.abs(table - true) <= error + 1e-300).all()
    size = fourier._Transform(a, b, first, width).size
    assert size < 2 * max(a.size + b.size - first, first + width, a.size, b.size)


@pytest.mark.parametrize("scale", [3e2, 3e4])
def test_the_bound_of_a_transform_does_not_grow_with_the_width_of_tables(scale):
    s = np.arange(-15 * scale, 15 * scale + 1)
    a = np.exp(-0.5 * (s / scale) ** 2)
    got, error = fourier._Transform(a, a, a.size // 2, a.size).product(a, a)
    known = scale * np.sqrt(np.pi) * np.exp(-0.25 * (s / scale) ** 2)
    assert (np.abs(got - known) <= error).all()
    # forwards twice and back once, each by 7 units for every doubling, and the largest entry is
    # what the norms are
    assert error <= 1.01 * 3 * 7 * 2.0**-53 * np.log2(4 * a.size) * known.max()


@pytest.mark.parametrize("first", [98_000, 99_390, 99_401])
def test_a_few_positive_entries_among_many_are_added_up_exactly(monkeypatch, first):
    # noise far narrower than a count leaves such a table; no tilt resolves its sums
    monkeypatch.setattr(fourier, "_Transform", None)
    few = np.zeros(100_000)
    few[99_400:99_403] = 1e-40, 1.0, 1e-30
    wide = np.exp(-np.abs(np.arange(4000.0) - 900.0) / 50.0)
    wanted = np.zeros(110_000)
    for at in range(99_400, 99_403):
        wanted[at : at + 4000] += few[at] * wide
    wanted = wanted[first : first + 4900]
    for a, b in ((few, wide), (wide, few)):
        table, error, top = fourier.convolve_wide(a, b, first, 4900)
        assert top == pytest.approx(wanted.max(), rel=1e-15)
        assert (np.abs(table * top - wanted) <= error * top + 2.0**-50 * wanted).all()
        assert (error <= 2.0**-49 * table).all()
