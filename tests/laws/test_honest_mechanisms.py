"""Random correct mechanisms pass an audit: all noise, methods, bounds, pins and tables."""

from __future__ import annotations

import numpy as np

import congenial as cg
from congenial.auditing.enumerated import can_enumerate
from congenial.auditing.space import space_of
from congenial.errors import CongenialError
from support.random_mechanisms import random_mechanism
from support.table_worlds import world

SURE = 1.0 - 1e-6


def test_random_correct_mechanisms_pass():
    audited = 0
    for seed in range(45, 60):
        try:
            name, mechanism, relation = random_mechanism(seed)
            mechanism.guarantee(relation)
        except CongenialError:
            continue  # not supported, or without a guarantee
        found = cg.audit(
            mechanism, neighbours=relation, draws=200, total=2, confidence=SURE, rng=cg.seeded(1)
        )
        assert found.passed, f"seed {seed}: {name}\n{found}"
        audited += 1
    assert audited >= 6


def test_tables_of_too_many_outputs_are_not_enumerated():
    """Where one step from a dataset allows 10^8 releases, which took all memory."""
    name, mechanism, _ = random_mechanism(116)
    space = space_of(mechanism)
    assert not can_enumerate(mechanism, space, np.array([*space.datasets(2)])), name


def test_tables_whose_margins_cross_are_enumerated_with_fewer_records():
    """Boxes of 11 counts around all datasets of two records took minutes and gigabytes."""
    _, _, queries, mandates = world("measured margins that cross")
    mechanism = cg.condition(queries, mandates)
    space = space_of(mechanism)
    two, one = (np.array([*space.datasets(records)]) for records in (2, 1))
    assert not can_enumerate(mechanism, space, two)
    assert can_enumerate(mechanism, space, one)
    found = cg.audit(mechanism, neighbours="add-remove", method="exact", total=2)
    assert found.passed
    assert found.findings[0].pairs == 6
