"""Dense projections: thousands of small systems against their exact rational solutions."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from congenial.errors import InfeasibleError
from congenial.imaging.solvers.dense import least_move

pytestmark = pytest.mark.kernels

EPS = np.finfo(float).eps
# Two decompositions, a solution of the rows and one of what they leave free.
STEPS = 4


def reduced(rows):
    """Reduced echelon form of a list of rows of integers, as fractions, and its pivots."""
    rows, pivots = [[Fraction(v) for v in row] for row in rows], []
    for c in range(len(rows[0]) if rows else 0):
        k = len(pivots)
        at = next((i for i in range(k, len(rows)) if rows[i][c]), None)
        if at is None:
            continue
        rows[k], rows[at] = rows[at], rows[k]
        lead = rows[k][c]
        rows[k] = [v / lead if v else v for v in rows[k]]
        for i, row in enumerate(rows):
            if i != k and row[c]:
                by = row[c]
                rows[i] = [v - by * w if w else v for v, w in zip(row, rows[k], strict=True)]
        pivots.append(c)
    return rows[: len(pivots)], pivots


def null_space(rows, n):
    """Basis of what all rows leave at 0."""
    form, pivots = reduced(rows)
    basis = []
    for c in sorted(set(range(n)) - set(pivots)):
        one = [Fraction(int(v == c)) for v in range(n)]
        for row, pivot in zip(form, pivots, strict=True):
            one[pivot] = -row[c]
        basis.append(one)
    return basis


def exact_move(rows, gap, weight):
    """The least move, or none where rows contradict each other.

    It meets the rows, has no slope along what they leave free, and of what is then left nothing.
    """
    n = len(weight)
    system = [[*row, g] for row, g in zip(rows, gap, strict=True)]
    if n in reduced(system)[1]:
        return None
    system += [[v * w for v, w in zip(d, weight, strict=True)] + [0] for d in null_space(rows, n)]
    unweighted = [[w * int(u == v) for u in range(n)] for v, w in enumerate(weight) if w]
    system += [[*d, 0] for d in null_space(rows + unweighted, n)]
    form, pivots = reduced(system)
    assert pivots == list(range(n))
    return np.array([float(row[n]) for row in form])


def random_system(seed):
    """Rows of integers, some of which follow from others or are 0; some entries have no weight."""
    rng = np.random.default_rng([79, seed])
    n, m = rng.integers(2, 7), rng.integers(1, 5)
    size = rng.choice([1, 3, 50])
    rows = rng.integers(-size, size + 1, (m, n)) * (rng.random((m, n)) < 0.7)
    point = rng.integers(-99, 100, n)
    again = rng.integers(-2, 3, (rng.integers(0, 3), m)) @ rows
    rows = np.vstack((rows, again))
    gap = rows @ point
    if rng.random() < 0.2:
        gap[rng.integers(gap.size)] += rng.choice([-1, 1])
    # powers of two: the system in doubles is the system in integers
    weight = 2 ** rng.integers(0, rng.choice([1, 5, 30]), n)
    weight[rng.random(n) < rng.choice([0.0, 0.3])] = 0
    scale = 2.0 ** rng.integers(-40, 41, gap.size)
    scale[~rows.any(axis=1)] = 1.0  # nothing else says how large its gap is
    return rows, gap, weight, scale


def rounding(rows, weight, move):
    """How far rounding may take a move: bounds of least squares with errors in the matrix.

    Rows that are met and directions that they leave free are off by `EPS` times the condition of
    the rows, and that counts once by the condition of the weighted directions, and by its square
    for what remains of the weighted move (Higham 2002, section 20.1).
    """
    lengths = np.linalg.norm(rows, axis=1)
    _, singular, right = np.linalg.svd(rows[lengths > 0] / lengths[lengths > 0, None])
    rank = np.linalg.matrix_rank(rows)
    off = STEPS * EPS * sum(rows.shape) / (singular[rank - 1] if rank else 1.0)
    root = np.sqrt(weight / max(weight.max(), 1))
    along = np.linalg.svd(root[:, None] * right[rank:].T, compute_uv=False)
    # roots of weights lie within 2^15 of each other
    condition = 1.0 / along[along > 1e-9].min(initial=1.0)
    sizes = np.linalg.norm(move), np.linalg.norm(root * move)
    return off * (condition * sizes[0] + condition**2 * sizes[1])


def test_moves_of_thousands_of_systems_are_the_exact_ones():
    refused = deficient = 0
    for seed in range(2000):
        rows, gap, weight, scale = random_system(seed)
        exact = exact_move(rows.tolist(), gap.tolist(), weight.tolist())
        system = rows * scale[:, None], gap * scale, weight / max(weight.max(), 1)
        if exact is None:
            with pytest.raises(InfeasibleError):
                least_move(*system)
            refused += 1
            continue
        move = least_move(*system)
        assert np.abs(move - exact).max() <= rounding(rows, weight, exact), seed
        deficient += np.linalg.matrix_rank(rows) < len(rows)
    assert refused > 200
    assert deficient > 1000
