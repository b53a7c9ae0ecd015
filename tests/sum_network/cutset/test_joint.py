"""Joint laws of a few entries, and their stated cost."""

from __future__ import annotations

import numpy as np
import pytest

import congenial as cg
from congenial.errors import ArgumentError, UnsupportedError
from congenial.sum_network import filling
from congenial.sum_network.cost import bytes_text, time_text
from support.conditioning_cases import Case
from support.joint_laws import assert_same_joint
from support.sum_networks import scaled, table_case

BINARY = (-1, 0, 0, 1, 1)
X = np.array([6, 4, 2, 3, 1])
CASES = {
    "equalities": Case("laplace", np.full(5, 0.7), X, parents=BINARY),
    "gaussian": Case("gaussian", np.array([0.7, 0.5, 0.8, 0.6, 0.9]), X, parents=BINARY),
    "bounds and a pin": Case("laplace", np.full(5, 1.1), X, (1,), 0, 12, BINARY),
    "cycles": table_case((3, 3), 0.6, [1, 2, 0, 0, 3, 1, 2, 2, 1]),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("nodes", [(2,), (0, 1), (3, 4), (4, 2), (2, 3, 4), (0, 3, 1)])
def test_joint_laws_are_those_of_enumeration(name, nodes):
    case = CASES[name]
    assert_same_joint(case.condition(), case.law(), case.x, nodes)


@pytest.mark.parametrize("off", [0.7, 1.3])
def test_the_test_fails_at_a_wrong_scale(off):
    case = CASES["equalities"]
    wrong = Case(case.kind, case.scales * off, case.x, parents=BINARY)
    with pytest.raises(AssertionError):
        assert_same_joint(case.condition(), wrong.law(), case.x, (3, 4))
    with pytest.raises(AssertionError):
        assert_same_joint(
            CASES["cycles"].condition(), scaled(CASES["cycles"], off), CASES["cycles"].x, (0, 1)
        )


def test_sums_of_a_joint_law_are_the_marginals():
    parents = [-1, *[0] * 4, *[1] * 30, *[2] * 30]
    tree = cg.Tree.from_parents(parents)
    x = tree.roll_up(np.arange(len(tree.leaves)) % 7)
    conditioned = cg.condition(
        cg.Additive(cg.DiscreteLaplace(2.0), tree), cg.consistent(tree) & cg.nonnegative()
    )
    values, joint = conditioned.joint([1, 40], x)
    for axis, node in enumerate((1, 40)):
        one, want = conditioned.marginal(node, x)
        table = dict(zip(values[axis].tolist(), joint.sum(axis=1 - axis), strict=True))
        got = np.array([table.get(v, 0.0) for v in one.tolist()])
        np.testing.assert_allclose(got, want, rtol=0, atol=1e-11)
        assert abs(sum(table.values()) - 1.0) < 1e-12


def test_names_and_pins():
    tree = cg.Tree.from_paths([("city", "a"), ("city", "b")])
    x = tree.roll_up(np.array([3, 4]))
    conditioned = cg.condition(
        cg.Additive(cg.DiscreteLaplace(1.0), tree), cg.consistent(tree) & cg.exactly("city")
    )
    (root, a, b), joint = conditioned.joint(["city", "a", "b"], x)
    np.testing.assert_array_equal(root, [7])
    assert joint.shape == (1, a.size, b.size)
    i, j = np.nonzero(joint[0] > 0)
    assert (a[i] + b[j] == 7).all()


@pytest.mark.parametrize("nodes", [[], [1, 1], [0, 1, 2, 3], [9], "root", 1])
def test_invalid_nodes_are_refused(nodes):
    case = CASES["equalities"]
    with pytest.raises(ArgumentError) as caught:
        case.condition().joint(nodes, case.x)
    assert str(caught.value).endswith(".")


def test_a_joint_law_of_wide_noise_is_refused():
    case = Case("laplace", np.full(5, 60.0), X, parents=BINARY)
    with pytest.raises(UnsupportedError):
        case.condition().joint([2, 3, 4], case.x)


# what is said beforehand


@pytest.mark.parametrize("bounded", [False, True])
def test_the_cost_is_stated_before_any_table_is_filled(bounded, monkeypatch):
    def fail(*_args, **_more):
        raise AssertionError("tables were filled")

    tree = cg.Tree.from_parents([-1, *[0] * 50])
    invariant = cg.consistent(tree) & cg.exactly(0)
    if bounded:
        invariant = invariant & cg.nonnegative()
    conditioned = cg.condition(cg.Additive(cg.DiscreteLaplace(3.0), tree), invariant)
    monkeypatch.setattr(filling, "fill_noise", fail)
    text = conditioned.explain()
    for told in ("table entries", "multiplications", "KiB", "milliseconds"):
        assert told in text
    assert ("not the confidential counts" in text) == bounded


def test_the_stated_size_is_that_of_the_tables():
    tree = cg.Tree.from_parents([-1, *[0] * 5, *[1 + i % 5 for i in range(200)]])
    conditioned = cg.condition(cg.Additive(cg.DiscreteGaussian(3.0), tree), cg.consistent(tree))
    told = float(conditioned.explain().split(" table entries")[0].rpartition("(")[2])
    actual = conditioned._tables(np.zeros(len(tree), dtype=np.int64)).table.size
    assert 0.5 < told / actual < 2


@pytest.mark.parametrize(
    ("count", "text"), [(5, "5 B"), (2048, "2 KiB"), (3 << 20, "3 MiB"), (5 << 30, "5 GiB")]
)
def test_bytes_have_a_unit(count, text):
    assert bytes_text(count) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(1e-4, "milliseconds"), (0.5, "less than a second"), (5, "seconds"), (3600, "60 minutes")],
)
def test_times_are_orders_of_magnitude(seconds, text):
    assert text in time_text(1e9 * seconds)
