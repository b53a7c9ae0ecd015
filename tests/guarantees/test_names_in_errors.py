"""Errors name an entry by its place in the tree or table, and name unsatisfiable bounds."""

from __future__ import annotations

import numpy as np
import pytest

import congenial as cg
from congenial.errors import ArgumentError, CongenialError

STREETS = [("town", "a"), ("town", "b")]
TREE = cg.Tree.from_paths(STREETS)
PEOPLE = cg.Table({"sex": ("F", "M")}, geography=TREE, name="people")
NESTED = cg.Workload.of(PEOPLE, {0: [()], 1: [(), "sex"]})
CROSSING = cg.Workload.of(
    cg.Table({"sex": ("F", "M"), "age": ("0-17", "18+")}, name="people"),
    [(), "sex", "age", ("sex", "age")],
)
# a domain, one of its entries, and how it is named
WORLDS = {
    "vector": (None, 1, "entry 1"),
    "tree": (TREE, 1, "node 'town/a'"),
    "nested": (NESTED, 3, "entry 'sex=F in people at town/a'"),
    "crossing": (CROSSING, 1, "entry 'age=0-17 in people'"),
}


def wrongly(domain, at):
    """Calls on this domain that must refuse a value for one entry."""
    n = 3 if domain is None else len(domain)
    imposed = cg.nonnegative() if domain is None else cg.consistent(domain)
    noise = cg.Additive(cg.DiscreteLaplace(2.0), n if domain is None else domain)
    bad = np.zeros(n)
    bad[at] = np.inf
    low, high = np.full(n, -np.inf), np.full(n, np.inf)
    low[at], high[at] = 3.0, 2.0
    infeasible = imposed & cg.bounds(low, high)
    yield lambda: cg.project(bad, imposed)
    yield lambda: cg.project(np.zeros(n), infeasible)
    yield lambda: cg.image(noise, infeasible)
    yield lambda: cg.condition(noise, infeasible)
    if domain is None or domain is CROSSING:
        return
    tree = domain if isinstance(domain, cg.Tree) else domain.tree
    yield lambda: cg.topdown(bad, domain, imposed)
    yield lambda: cg.topdown(bad, domain, cg.nonnegative())
    yield lambda: cg.topdown(np.zeros(n), domain, infeasible)
    yield lambda: cg.posterior(bad, noise, imposed)
    yield lambda: cg.calibrate(domain, infeasible, epsilon=1.0, neighbours="substitute")
    leaf = np.arange(n) == at
    if tree.is_leaf[at]:
        scales = np.where(leaf, np.inf, 2.0)
        unmeasured = cg.Additive(cg.DiscreteLaplace(scales), domain)
        yield lambda: cg.imaging.topdown_image(unmeasured, imposed)
    yield lambda: cg.project(np.full(n, 0.5), imposed & cg.exactly(at), integer=True)


@pytest.mark.parametrize("world", WORLDS)
def test_entries_have_their_names(world):
    domain, at, name = WORLDS[world]
    calls = list(wrongly(domain, at))
    assert len(calls) >= 4
    for call in calls:
        with pytest.raises(CongenialError) as told:
            call()
        assert name in str(told.value)


@pytest.mark.parametrize("domain", [TREE, NESTED, CROSSING], ids=["tree", "nested", "crossing"])
def test_a_pin_that_is_not_an_integer_is_named(domain):
    imposed = cg.consistent(domain)
    total = cg.exactly(0) if domain is TREE else cg.exactly(margins=[()])
    if domain is NESTED:
        total = cg.exactly(margins=[()], level=0)
    values = np.full(len(domain), 0.5)
    # under crossing conditions as on a forest
    for more in (imposed, imposed & cg.at_least(np.ones(len(domain)), 0)):
        with pytest.raises(CongenialError, match=r"'(total in people.*|town)' must equal a number"):
            cg.project(values, more & total, integer=True)


def test_a_sum_that_does_not_hold_is_named():
    values = np.zeros(len(NESTED))
    values[1] = 1.0
    values[0] = 1.0
    with pytest.raises(ArgumentError, match="at entry 'total in people at town/a'; give values"):
        cg.imaging.round_unbiased(values, NESTED)


@pytest.mark.parametrize("wrong", [{"lo": np.inf}, {"hi": -np.inf}, {"hi": [1, np.nan]}])
def test_bounds_that_no_number_satisfies_are_refused(wrong):
    for bound in (cg.bounds, lambda **b: cg.bounds(margin="sex", **b)):
        with pytest.raises(ArgumentError, match=r"was given (lo=inf|hi=-inf|hi=nan); give numbers"):
            bound(**wrong)


@pytest.mark.parametrize("method", ["conditioning", "imaging"])
@pytest.mark.parametrize("domain", [TREE, NESTED, CROSSING], ids=["tree", "nested", "crossing"])
def test_bounds_of_counts_mean_the_integers_within(domain, method):
    # counts are integers: a bound of -0.7 is one of 0
    found = [
        cg.calibrate(
            domain,
            cg.consistent(domain) & cg.bounds(low, high),
            epsilon=1.0,
            neighbours="substitute",
            method=method,
        ).scale
        for low, high in ((-0.7, 9.4), (0.0, 9.0))
    ]
    np.testing.assert_array_equal(*found)
