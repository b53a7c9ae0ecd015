"""The datasets that several claims compare in common."""

from __future__ import annotations

import pytest

import congenial as cg
from congenial.accounting.composition import compose
from congenial.errors import EmptyNeighbourhoodError, PrivacyError

CITY = cg.Tree.from_paths([("city", "a"), ("city", "b"), ("city", "c")])


AGES = cg.Tree.from_paths([("all", "young"), ("all", "old"), ("all", "oldest")])


def of_tree(tree: cg.Tree, *pins: str, within: cg.Invariant | None = None, noise=1.0):
    mandate = cg.consistent(tree)
    if pins:
        mandate &= cg.exactly(list(pins))
    if within is not None:
        mandate &= within
    mechanism = cg.Additive(cg.DiscreteLaplace(noise), tree)
    return cg.condition(mechanism, mandate).guarantee("substitute")


def of_vector(mandate: cg.Invariant):
    return cg.condition(cg.Additive(cg.DiscreteLaplace(1.0), 3), mandate).guarantee("substitute")


def test_claims_that_fix_different_counts_do_not_compose():
    """Together the pins let no record move, which no single tree shows."""
    refused = [
        (of_tree(CITY, "a"), of_tree(CITY, "b")),
        (of_tree(CITY, "a"), of_tree(AGES, "young")),
        (of_vector(cg.exactly([0])), of_vector(cg.linear([[1, 1, 0]], [5]))),
    ]
    for pair in refused:
        for claims in (pair, pair[::-1], (*pair, pair[0])):
            with pytest.raises(PrivacyError, match="publish different things exactly"):
                compose(claims)
    with pytest.raises(EmptyNeighbourhoodError):
        of_tree(CITY, "a", "b")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (("a",), ("a",)),
        ((), ("a",)),
        (("city",), ("city", "a")),
    ],
)
def test_claims_compose_if_one_fixes_everything_that_the_others_fix(one, other):
    claims = [of_tree(CITY, *one), of_tree(CITY, *other, noise=3.0)]
    joint = compose(claims)
    assert joint.epsilon == pytest.approx(2.0 + 2.0 / 3.0)
    for name in other:
        assert any(text.endswith(name) for text in joint.unprotected)
    # and what is joined fixes as much
    with pytest.raises(PrivacyError, match="different things"):
        compose([joint, of_tree(CITY, "b")])


def test_every_claim_by_substitution_fixes_the_number_of_records():
    joint = compose([of_tree(CITY, "city"), of_tree(AGES, "all", "young"), of_tree(AGES)])
    assert joint.epsilon == pytest.approx(6.0)
    assert {"the exact count of city", "the exact count of all"} <= set(joint.unprotected)


def test_claims_whose_bounds_exclude_each_other_do_not_compose():
    def bounded(low, high, granularity=1.0):
        noise = cg.DiscreteLaplace(1.0, granularity=granularity)
        return cg.condition(cg.Additive(noise, 1), cg.bounds(low, high)).guarantee("add-remove")

    for low in (5, 4):
        with pytest.raises(EmptyNeighbourhoodError):
            compose([bounded(0, 4), bounded(low, 9)])
    compose([bounded(0, 4), bounded(3, 9)])
    with pytest.raises(EmptyNeighbourhoodError):
        compose([bounded(0, 4, 0.5), bounded(3.5, 9, 0.5)])
    compose([bounded(0, 4, 0.5), bounded(3, 9)])
