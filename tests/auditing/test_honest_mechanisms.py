"""Random correct mechanisms pass an audit: all noise, methods, bounds, pins and tables."""

from __future__ import annotations

import congenial as cg
from congenial.auditing.enumerated import can_enumerate
from congenial.auditing.space import space_of
from congenial.errors import CongenialError
from support.random_mechanisms import random_mechanism

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
    assert not can_enumerate(mechanism, space, next(space.datasets(2))), name
