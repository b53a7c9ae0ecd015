"""Sections of the papers that are no theorem of theirs: 1.6, 5.1, 5.4, and a union far apart."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise, product

import pytest

from congenial.belief import FiniteMechanism
from congenial.belief.finite_noise import double_geometric
from congenial.belief.worlds import Belief
from congenial.randomness import seeded
from papers.claims.draws import Draws

CASES = 300
OUTPUTS = (0, 1, 2)
# the first record has three values, the second has two
DATASETS = list(product((0, 1, 2), (0, 1)))
NEAR = [
    (x, y)
    for x, y in product(DATASETS, repeat=2)
    if sum(s != t for s, t in zip(x, y, strict=True)) == 1
]


def of_first_record(prior, likelihood):
    """Law of the first record after a report, from the report's probability for each dataset."""
    whole = Belief.from_weights({x: prior[x] * likelihood[x] for x in DATASETS if prior[x]})
    return whole.then(lambda x: x[0])


def compared(prior, mechanism):
    """Largest factor between the posteriors of equation 5.1.

    One report is about the database, the other about it with the first record replaced. The
    analyst knows which report it is, and the value that replaces the record.
    """
    worst = Fraction(1)
    for output, other in product(OUTPUTS, (0, 1, 2)):
        actual = {x: mechanism[x][output] for x in DATASETS}
        replaced = {x: mechanism[other, x[1]][output] for x in DATASETS}
        one, two = of_first_record(prior, actual), of_first_record(prior, replaced)
        for value in one.support:
            worst = max(worst, one[value] / two[value], two[value] / one[value])
    return worst


def drawn(*, known):
    draws = Draws(seeded(11))
    for _ in range(CASES):
        a = draws.fraction()
        noise = {x: double_geometric(a, OUTPUTS, centre=sum(x)) for x in DATASETS}
        free = {x: draws.belief(OUTPUTS, zeros=False) for x in DATASETS}
        mechanism = FiniteMechanism(draws.choice([noise, free]))
        prior = draws.belief(DATASETS, zeros=False, most=20)
        if known:  # the other record
            prior = prior.condition({x for x in DATASETS if x[1] == 1})
        yield prior, mechanism, mechanism.ratio(NEAR)


def test_posteriors_differ_by_the_square_of_the_factor_for_every_prior():
    """Equation 5.1, if the first record is replaced by a fixed value and the analyst knows that."""
    for prior, mechanism, ratio in drawn(known=False):
        assert compared(prior, mechanism) <= ratio**2


def test_the_factor_alone_does_not_suffice_for_every_prior():
    quarter = Fraction(1, 4)
    first = dict.fromkeys(DATASETS, quarter) | {(1, 0): 2 * quarter, (2, 1): quarter / 2}
    mechanism = FiniteMechanism({x: Belief({0: p, 1: 1 - p, 2: 0}) for x, p in first.items()})
    assert mechanism.ratio(NEAR) == 2
    prior = Belief(
        dict.fromkeys(DATASETS, 0) | {(1, 0): Fraction(1, 100), (2, 1): Fraction(99, 100)}
    )
    after = of_first_record(prior, first)[1]
    replaced = of_first_record(prior, {x: first[0, x[1]] for x in DATASETS})[1]
    assert 3 < after / replaced <= 4


def test_posteriors_differ_by_the_factor_if_the_other_records_are_known():
    for prior, mechanism, ratio in drawn(known=True):
        assert compared(prior, mechanism) <= ratio
        # the report on the replaced record says nothing about the true one
        replaced = {x: mechanism[0, x[1]][1] for x in DATASETS}
        assert of_first_record(prior, replaced) == prior.then(lambda x: x[0])


def test_a_posterior_tends_to_the_prior_as_epsilon_tends_to_zero():
    """Equation 1.6, for double geometric noise and a known second record."""
    prior = Belief(dict.fromkeys(DATASETS, 0) | {(0, 1): Fraction(1, 5), (1, 1): Fraction(4, 5)})
    before = prior.then(lambda x: x[0])
    gaps = []
    for k in (1, 10, 100, 1000):
        a = Fraction(k, k + 1)
        mechanism = {x: double_geometric(a, OUTPUTS, centre=sum(x)) for x in DATASETS}
        after = [of_first_record(prior, {x: mechanism[x][z] for x in DATASETS})[1] for z in OUTPUTS]
        gaps.append(max(abs(p - before[1]) for p in after))
    assert all(later < earlier / 5 for earlier, later in pairwise(gaps))


def union(*counts):
    """Ratio for noise of weight 1/2 a step, given that the count is one of these."""
    laws = {x: double_geometric(Fraction(1, 2), counts, centre=x) for x in counts}
    near = [(x, y) for x in counts for y in counts if abs(x - y) == 1]
    return FiniteMechanism(laws).ratio(near)


def test_a_union_loses_more_than_its_parts_though_neighbours_are_in_one_part():
    low, high = (0, 1, 2), (5, 6, 7)
    assert union(*low) == union(*high) == Fraction(16, 7)
    assert union(*low, *high) == Fraction(180, 77)
    assert Fraction(180, 77) > Fraction(16, 7)


@pytest.mark.parametrize("datasets", [((0, 0), (0, 1)), ((0, 0), (1, 1))])
def test_conditioning_on_an_outcome_of_another_mechanism_is_conditioning_on_an_event(datasets):
    """Bounded leakage: M given that M' says "in C" is M given C, if M' reports on M's output."""
    draws = Draws(seeded(3))
    for _ in range(CASES):
        mechanism = {x: draws.belief(OUTPUTS, zeros=False) for x in datasets}
        event = draws.event(OUTPUTS)
        for x in datasets:
            both = Belief({(z, z in event): mechanism[x][z] for z in OUTPUTS})
            told = both.condition({(z, True) for z in event}).then(lambda pair: pair[0])
            assert told == mechanism[x].condition(event)
