"""The cost of bounds for moves that change queries by different amounts, in exact fractions."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

import congenial as cg
from congenial.accounting.guarantee import conditioned_guarantee
from congenial.accounting.loss.inequalities import PROVED, bounded_loss
from congenial.invariants.written import resolve_invariant

# What one step of noise leaves of a weight, exp(-1 / scale); 1 where a query is not measured.
WEIGHTS = [Fraction(1, 20), Fraction(1, 3), Fraction(4, 5), Fraction(19, 20)]


def cases(count):
    """Points that keep a random weighted sum and random bounds, and noise of random sizes."""
    rng = np.random.default_rng(11)
    while count:
        cells = int(rng.integers(2, 4))
        row = rng.integers(1, 4, cells) * rng.choice([-1, 1], cells)
        high = rng.integers(2, 9, cells)
        box = np.array([*itertools.product(*(range(h + 1) for h in high))])
        points = box[box @ row == int(row @ box[rng.integers(len(box))])]
        if not 3 <= len(points) <= 40:
            continue
        count -= 1
        yield points, [WEIGHTS[i] for i in rng.integers(len(WEIGHTS), size=cells)]


def weight(z, x, weights):
    return math.prod(w ** abs(int(d)) for w, d in zip(weights, z - x, strict=True))


def shares(points, weights, times=1):
    """For each ordered pair: what the normalizers' ratio adds to 1, over what is claimed of it.

    The claim is that of a bound that holds back so many times as much.
    """
    total = [sum(weight(z, x, weights) for z in points) for x in points]
    for i, j in itertools.permutations(range(len(points)), 2):
        v = points[j] - points[i]
        changed = np.flatnonzero(v)
        loss = math.prod(weights[m] ** abs(int(v[m])) for m in changed)  # exp(-E)
        step = max(weights[m] for m in changed)  # exp(-alpha)
        claimed = (1 - loss) * step ** (2 * times) / loss
        yield len({*np.abs(v[v != 0]).tolist()}) > 1, (total[j] / total[i] - 1) / claimed


def most(times):
    """Largest share, of changes of one size and of several."""
    found = {False: Fraction(0), True: Fraction(0)}
    for points, weights in cases(60):
        for several, share in shares(points, weights, times):
            found[several] = max(found[several], share)
    return found


def test_no_pair_loses_more_than_is_stated():
    found = most(1)
    assert max(found.values()) <= 1
    # and not much less
    assert min(found.values()) > Fraction(3, 10)
    # if bounds were to hold back three times as much it would be false
    assert min(most(3).values()) > 1


@pytest.mark.parametrize("scale", [0.5, 2.0])
@pytest.mark.parametrize("granularity", [1.0, 0.5])
def test_the_guarantee_states_the_largest_loss(scale, granularity):
    weights = cg.linear(np.array([[1, 2, 3]]), [8])
    noise = cg.Additive(cg.DiscreteLaplace(scale, granularity), 3)
    resolved = resolve_invariant(weights & cg.nonnegative(), 3)
    claim = conditioned_guarantee(noise, resolved, "substitute", sampler_error=0.0)
    assert claim.gamma_source == PROVED
    # two records of the middle for one of each side
    assert claim.base_epsilon == pytest.approx(4 / scale)
    assert claim.epsilon == pytest.approx(float(bounded_loss(4 / scale, granularity / scale)))
    assert claim.epsilon < 2 * claim.base_epsilon
