"""Invariants whose coefficients add up along a tree up to rounding keep the same neighbours."""

from fractions import Fraction

import numpy as np
import pytest

import congenial as cg
from congenial.accounting.neighbours.whole_sums import alike_columns, whole_sums
from congenial.errors import PrivacyError


def _case() -> tuple[cg.Tree, np.ndarray]:
    tree = cg.Tree.from_paths([("r", "A", "a"), ("r", "A", "a2"), ("r", "B", "b")])
    row = np.zeros(len(tree))
    for name, value in {"r/A/a": 0.1, "r/A/a2": 0.1, "r/A": 0.2, "r/B/b": 0.3}.items():
        row[tree.find(name)] = value  # 0.1 + 0.2 is not 0.3 in the last digit
    return tree, row


def test_the_guarantee_does_not_depend_on_the_unit_of_an_invariant() -> None:
    tree, row = _case()
    stated = [
        cg.image(
            cg.Additive(cg.DiscreteLaplace(2.0), tree),
            cg.consistent(tree) & cg.linear(scale * row, [scale * 0.9]),
        )
        .guarantee("substitute")
        .epsilon
        for scale in (1.0, 10.0)
    ]
    assert stated[0] == stated[1] == pytest.approx(2.0)


def test_the_sensitivity_does_not_depend_on_the_unit_of_an_invariant() -> None:
    tree, row = _case()
    found = cg.accounting.sensitivity(
        tree, neighbours="substitute", invariant=cg.consistent(tree) & cg.linear(row, [0.9])
    )
    assert found.value == 4.0


def _claim(row: list[float]) -> cg.Guarantee:
    law = cg.Additive(cg.Gaussian(2.0), len(row))
    return cg.condition(law, cg.linear([row], [4.0 * row[0]])).guarantee("substitute")


def test_coefficients_that_differ_in_their_last_digits_distinguish_records() -> None:
    # two of the middle cell for one of each other: no single record can move
    big = 2.0**39
    for row in ([big, big + 1, big + 2], [2.0**60, 2.0**60 + 2**8, 2.0**60 + 2**9]):
        if row[-1] < 2.0**50:
            claim = _claim(row)
            assert (claim.records, claim.at_once) == (2, True)
            assert claim.rho == pytest.approx((1 + 4 + 1) / (2 * 4.0))
        else:
            with pytest.raises(PrivacyError, match="at most 2\\^40"):
                _claim(row)


def test_decimals_become_integers_after_scaling() -> None:
    whole, tenths = _claim([1, 2, 3]), _claim([0.1, 0.2, 0.3])
    assert whole.records == tenths.records == 2
    assert whole.rho == tenths.rho == pytest.approx((1 + 4 + 1) / (2 * 4.0))


@pytest.mark.parametrize(
    "row", [[0.5, 0.5 + 1e-12, 0.5 + 2e-12], [0.3, 0.1 + 0.2, 0.7], [1 / 3, 1 / 3 + 2**-40, 1.0]]
)
def test_ambiguous_coefficients_are_refused(row: list[float]) -> None:
    with pytest.raises(PrivacyError, match="in doubt"):
        _claim(row)
    with pytest.raises(PrivacyError, match="in doubt"):
        cg.accounting.sensitivity(3, neighbours="substitute", invariant=cg.linear([row], [1.0]))
    with pytest.raises(PrivacyError, match="in doubt"):
        cg.accounting.sensitivity(
            np.eye(3), neighbours="substitute", invariant=cg.linear([row], [1.0])
        )


def test_sums_along_a_tree_that_only_nearly_agree_are_refused() -> None:
    tree, row = _case()
    row[tree.find("r/B/b")] = 0.1 + 0.2
    with pytest.raises(PrivacyError, match="in doubt"):
        cg.accounting.sensitivity(
            tree, neighbours="substitute", invariant=cg.consistent(tree) & cg.linear(row, [0.9])
        )


def test_whole_sums_are_those_of_fractions() -> None:
    rng = np.random.default_rng(5)
    for _ in range(200):
        m, n, cells = rng.integers(1, 5, 3)
        units = [Fraction(1), Fraction(1, 4), Fraction(1, 10), Fraction(7, 1000), Fraction(2**55)]
        meant = [
            [units[at] * int(k) for k in rng.integers(-3, 4, n)]
            for at in rng.integers(len(units), size=m)
        ]
        counted = rng.integers(0, 3, (n, cells))
        rows = np.array([[float(c) for c in row] for row in meant])
        found = whole_sums(rows, lambda row, by=counted: row @ by)
        exact = [
            [sum(c * int(k) for c, k in zip(row, column, strict=True)) for column in counted.T]
            for row in meant
        ]
        for sums, wanted in zip(found, exact, strict=True):
            at = next((i for i, value in enumerate(wanted) if value), 0)
            factor = Fraction(int(sums[at])) / wanted[at] if wanted[at] else Fraction(1)
            assert factor > 0
            assert [int(value) for value in sums] == [factor * value for value in wanted]
        groups = alike_columns(found)
        for i in range(cells):
            for j in range(cells):
                alike = all(row[i] == row[j] for row in exact)
                assert (groups[i] == groups[j]) == alike
