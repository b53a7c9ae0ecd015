"""Mandates whose coefficients add up along a tree in floating point leave the same neighbours."""

import numpy as np

import congenial as cg


def _case() -> tuple[cg.Tree, np.ndarray]:
    tree = cg.Tree.from_paths([("r", "A", "a"), ("r", "A", "a2"), ("r", "B", "b")])
    row = np.zeros(len(tree))
    for name, value in {"r/A/a": 0.1, "r/A/a2": 0.1, "r/A": 0.2, "r/B/b": 0.3}.items():
        row[tree.find(name)] = value  # 0.1 + 0.2 is not 0.3 in the last digit
    return tree, row


def test_guarantee_does_not_depend_on_the_unit_of_a_mandate() -> None:
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
    assert stated[0] == stated[1] == 2.0


def test_sensitivity_does_not_depend_on_the_unit_of_a_mandate() -> None:
    tree, row = _case()
    found = cg.sensitivity(
        tree, neighbours="substitute", invariant=cg.consistent(tree) & cg.linear(row, [0.9])
    )
    assert found.value == 4.0
