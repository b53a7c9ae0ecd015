"""Mechanisms and invariants for samplers that propose."""

from __future__ import annotations

import numpy as np

import congenial as cg
from support.conditioning_cases import LAWS, Case
from support.tree_cases import CASES, make

DRAWS = 20_000


MORE = {
    "rows, nonnegative": Case(
        "laplace", np.full(4, 1.2), np.array([2, 0, 1, 1]), lo=0, rows=((1, 1, 0, 0), (0, 1, 1, 1))
    ),
    "bounds alone": Case("laplace", np.full(2, 1.5), np.array([1, 0]), lo=0.0, hi=3.0),
    "gaussian binary": make((-1, 0, 0, 1, 1), 0.9, [3, 1, 2], kind="gaussian"),
    "gaussian, wide root": make((-1, 0, 0, 0), [3.0, 0.8, 1.1, 0.9], [3, 0, 1], kind="gaussian"),
}


ALL = {
    name: CASES[name]
    for name in (
        "star",
        "star, pinned total",
        "star, pinned total, nonnegative",
        "star, pinned total, all children different",
        "binary, middle not measured",
        "uneven, nonnegative",
    )
} | MORE


def mechanism_of(case: Case):
    tree = None if case.parents is None else cg.Tree.from_parents(case.parents)
    return cg.Additive(LAWS[case.kind](case.scales), case.n if tree is None else tree)


def invariant_of(case: Case):
    mechanism = mechanism_of(case)
    parts = [] if mechanism.tree is None else [cg.consistent(mechanism.tree)]
    if case.rows:
        parts.append(cg.linear(np.array(case.rows), np.array(case.rows) @ case.x))
    if case.pinned:
        parts.append(cg.exactly(list(case.pinned)))
    parts.append(cg.bounds(case.lo, case.hi))
    whole = parts[0]
    for part in parts[1:]:
        whole = whole & part
    return whole


def made(case: Case, sampler: str, **proposal):
    given = cg.conditioning.Proposal(**proposal) if proposal else None
    return cg.condition(mechanism_of(case), invariant_of(case), sampler, proposal=given)
