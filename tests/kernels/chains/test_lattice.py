"""Moves along a lattice: shorter vectors of it, and intervals and draws against lists of points."""

from __future__ import annotations

from itertools import product
from math import floor, log

import numpy as np
import pytest

from congenial.kernels.chains.lattice import shorten
from congenial.kernels.numerics import laws
from support.kernel_entries import entry

pytestmark = pytest.mark.kernels

INF = np.inf
EPS = 2.0**-52
move = entry("chains.lattice._move")


def integer_rank(basis):
    """Rank by elimination without fractions."""
    rows, rank = [[int(v) for v in row] for row in basis], 0
    for c in range(len(rows[0])):
        at = next((i for i in range(rank, len(rows)) if rows[i][c]), None)
        if at is None:
            continue
        rows[rank], rows[at] = rows[at], rows[rank]
        for i in range(rank + 1, len(rows)):
            lead, here = rows[rank][c], rows[i][c]
            rows[i] = [lead * v - here * w for v, w in zip(rows[i], rows[rank], strict=True)]
        rank += 1
    return rank


def test_shortened_vectors_of_thousands_of_lattices_span_the_same_and_cannot_be_shortened():
    shortened = 0
    for seed in range(2000):
        rng = np.random.default_rng([81, seed])
        k = int(rng.integers(1, 5))
        n = k + int(rng.integers(0, 4))
        most = int(rng.choice([2, 9, 200]))
        basis = rng.integers(-most, most + 1, (k, n))
        if integer_rank(basis) < k:
            continue
        # as of noise laws whose scales lie four orders of magnitude apart
        weight, given = 10.0 ** rng.uniform(0.0, rng.choice([0.1, 8.0]), n), basis.copy()
        shorten(basis, weight)
        # the same lattice: an integer change of basis, and another back
        there = np.linalg.lstsq(given.T.astype(float), basis.T.astype(float), rcond=None)[0]
        change = np.rint(there).astype(np.int64)
        assert (change.T @ given == basis).all()
        assert abs(round(np.linalg.det(change))) == 1
        lengths, before = ((weight * b.astype(float) ** 2).sum(axis=1) for b in (basis, given))
        # products are kept up to date, and each step rounds those of the longest vectors
        slack = 1e-9 + 100.0 * n * EPS * before.max() / lengths
        assert (lengths <= before * (1.0 + 100.0 * n * EPS)).all()
        for i, j in product(range(k), repeat=2):
            for sign in (-1, 1):
                other = weight @ (basis[i] + sign * basis[j]).astype(float) ** 2
                assert i == j or other >= lengths[i] * (1.0 - slack[i])
        shortened += (basis != given).any()
    assert shortened > 1000


def random_line(seed):
    """A point within bounds, and a direction through it, with laws of any scale."""
    rng = np.random.default_rng([82, seed])
    n = int(rng.integers(1, 7))
    at = np.sort(rng.choice(n, int(rng.integers(1, n + 1)), replace=False))
    by = rng.integers(1, 4, at.size) * rng.choice([-1, 1], at.size)
    u = rng.integers(-20, 21, n)
    kind = rng.choice([laws.LAPLACE, laws.GAUSSIAN], n)
    # some variables are not measured, not all of those that move
    kind[rng.random(n) < 0.2] = laws.FLAT
    kind[at[0]] = rng.choice([laws.LAPLACE, laws.GAUSSIAN])
    scale, center = 10.0 ** rng.uniform(-0.5, 1.5, n), rng.uniform(-30.0, 30.0, n)
    lo = u - rng.choice([0.0, 3.0, 40.0, INF], n, p=[0.1, 0.2, 0.3, 0.4])
    hi = u + rng.choice([0.0, 3.0, 40.0, INF], n, p=[0.1, 0.2, 0.3, 0.4])
    return rng, u, at, by, (kind, scale, center), lo, hi


def log_weights(t, u, at, by, law):
    """Log weights at steps `t` along a line, and how far rounding may have moved them."""
    kind, scale, center = (column[at][:, None] for column in law)
    off = np.abs((u[at][:, None] + np.outer(by, t)) - center) / scale
    terms = np.where(kind == laws.LAPLACE, off, np.where(kind == laws.GAUSSIAN, 0.5 * off**2, 0.0))
    return -terms.sum(axis=0), 4.0 * EPS * at.size * terms.sum(axis=0)


def test_intervals_along_thousands_of_lines_are_those_of_lists():
    ended = bounded = moved = 0
    for seed in range(3000):
        rng, u, at, by, law, lo, hi = random_line(seed)
        first, second = rng.integers(0, 2**64, 2, dtype=np.uint64)
        uniform = [((int(w) >> 11) + 0.5) * 2.0**-53 for w in (first, second)]
        # along the line the first law loses all nats that a word may ask for within these steps
        t = np.arange(-4000, 4001)
        weight, rounding = log_weights(t, u, at, by, law)
        level = weight[4000] + log(uniform[0])
        slack = rounding + rounding[4000]
        z = u[at][:, None] + np.outer(by, t)
        within = ((z >= lo[at][:, None]) & (z <= hi[at][:, None])).all(axis=0)
        # steps that are too close to the level to say
        held, maybe = within & (weight >= level + slack), within & (weight >= level - slack)
        assert (held == maybe).all()
        assert not held[[0, -1]].any()
        assert held[4000]
        left, right = (np.flatnonzero(held)[[0, -1]] - 4000).tolist()
        assert held.sum() == right - left + 1
        new = u.copy()
        move(new, at, by, *law, lo, hi, first, second)
        step = floor(uniform[1] * (right - left + 1)) + left
        wanted = u.copy()
        wanted[at] += step * by
        assert (new == wanted).all(), seed
        ended += within[4000 + right + 1] or within[4000 + left - 1]
        bounded += not (within[4000 + right + 1] and within[4000 + left - 1])
        moved += step != 0
    assert min(ended, bounded, moved) > 1000
