"""Losses computed at any size, against brute force; and faults that they or draws must find."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import congenial as cg
from congenial.auditing.computed import computed
from congenial.auditing.pairs import (
    chosen_pairs,
)
from congenial.auditing.space import space_of
from congenial.errors import ArgumentError, NumericalError, UnsupportedError
from support.enumeration import enumerate_law, rows_of

SCRIPT = Path(__file__).parents[2] / "examples" / "audit" / "faults.py"
SURE = 1.0 - 1e-6


@pytest.fixture(scope="module")
def faults():
    spec = importlib.util.spec_from_file_location("planted_faults", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules[spec.name]


def laws_at(pair, kind, scales, tree):
    """Probabilities of all releases at two datasets, by code that shares none with the package."""
    found = [enumerate_law(rows_of(tree.parents), kind, scales, x, (0,), 0.0) for x in pair]
    sides = [
        dict(zip(map(tuple, law.states.tolist()), law.probabilities, strict=True)) for law in found
    ]
    common = sides[0].keys() & sides[1].keys()
    return [np.array([side[z] for z in common]) for side in sides]


@pytest.mark.parametrize("law", [cg.DiscreteLaplace, cg.DiscreteGaussian])
def test_computed_losses_equal_those_of_brute_force(law, monkeypatch):
    """The whole loss of each pair under Laplace noise; divergences of orders under Gaussian."""
    orders = (2, 3)  # brute force leaves out the tails that high orders look at
    monkeypatch.setattr("congenial.auditing.computed.ORDERS", orders)
    tree = cg.Tree.from_parents([-1, 0, 0, 1, 1])
    source = np.random.default_rng(5)
    for _ in range(6):
        scales = np.append(np.inf, source.uniform(0.9, 1.6, 4))
        made = cg.condition(
            cg.Additive(law(scales), tree), cg.consistent(tree) & cg.exactly(0) & cg.nonnegative()
        )
        cells = source.integers(0, 5, 3)
        x = tree.roll_up(cells + np.array([1, 0, 0]))
        other = tree.roll_up(cells + np.array([0, 0, 1]))
        kind = "laplace" if law is cg.DiscreteLaplace else "gaussian"
        p, q = laws_at((x, other), kind, scales, tree)
        space, claim = space_of(made), made.guarantee("substitute")
        (finding,) = computed(made, space, claim, [(x, other)])
        if law is cg.DiscreteLaplace:
            assert finding.found == pytest.approx(np.abs(np.log(p / q)).max(), abs=1e-9)
            continue
        seen = [0.0]
        for one, two, (a, b) in ((p, q, (x, other)), (q, p, (other, x))):
            for order in orders:
                if (order * a - (order - 1) * b >= 0).all():
                    divergence = np.log((one**order * two ** (1.0 - order)).sum()) / (order - 1)
                    seen.append(divergence / order)
        assert finding.found == pytest.approx(max(seen), abs=1e-9)


def large(factor=1.0, groups=5, leaves=60):
    tree = cg.Tree.from_parents(
        [-1] + [0] * groups + [1 + i // leaves for i in range(groups * leaves)]
    )
    mandates = cg.consistent(tree) & cg.exactly(0) & cg.nonnegative()
    noise = cg.calibrate(tree, mandates, epsilon=1.0, neighbours="substitute")
    return cg.condition(cg.Additive(cg.DiscreteLaplace(factor * noise.scale), tree), mandates)


@pytest.mark.parametrize("law", ["laplace", "gaussian"])
def test_losses_are_computed_from_tables_of_single_datasets_if_others_do_not_fit(law, monkeypatch):
    tree = cg.Tree.from_parents([-1, 0, 0, 1, 1, 2, 2])
    noise = cg.DiscreteLaplace(2.0) if law == "laplace" else cg.DiscreteGaussian(2.0)
    made = cg.condition(
        cg.Additive(noise, tree), cg.consistent(tree) & cg.exactly(0) & cg.nonnegative()
    )
    space, claim = space_of(made), made.guarantee("substitute")
    pairs = chosen_pairs(space, "substitute", cg.seeded(0))
    (together,) = computed(made, space, claim, pairs)

    def refuse(*_):
        raise UnsupportedError("the tables do not fit.")

    monkeypatch.setattr(type(made), "log_normalizers", refuse)
    (alone,) = computed(made, space, claim, pairs)
    assert alone.found == pytest.approx(together.found, abs=1e-9)
    assert (alone.pairs, alone.outputs) == (together.pairs, together.outputs)
    assert alone.passed
    assert together.passed


@pytest.mark.parametrize("size", [(2, 2), (5, 60)])
def test_computed_losses_reveal_too_little_noise_under_bounds(size):
    """The loss nearly reaches the claim, so a tenth less noise exceeds it."""
    claim = large(1.0, *size).guarantee("substitute")
    for factor, passes in ((1.0, True), (0.9, False), (0.8, False)):
        made = large(factor, *size)
        pairs = chosen_pairs(space_of(made), "substitute", cg.seeded(0))
        (finding,) = computed(made, space_of(made), claim, pairs)
        assert finding.passed is passes
        # the worst pair has one record in a cell that goes, and a crowd where it comes
        one, other = finding.worst
        assert min(one[other < one].min(), other[other > one].min()) == 1


def test_refusals_are_reported_and_refusing_one_of_two_neighbours_is_a_fault():
    made = large(1.0, 2, 2)

    def refuse(where):
        def sample(x, size=None, rng=None):
            if where(np.asarray(x)):
                raise NumericalError("no draw here.")
            return made.sample(x, size, rng)

        return SimpleNamespace(
            mechanism=made.mechanism,
            resolved=made.resolved,
            guarantee=made.guarantee,
            sample=sample,
        )

    def audit(where):
        return cg.audit(refuse(where), neighbours="substitute", draws=200, confidence=SURE)

    few = audit(lambda x: x[0] < 3)
    assert few.passed
    said = r"further pairs? both datasets were refused: no draw here"
    assert re.search(said, few.findings[0].text)
    alone = audit(lambda x: x[3] == 1)
    assert [f.check for f in alone.findings if not f.passed] == ["loss, from draws"]
    assert np.isinf(alone.findings[0].found)
    with pytest.raises(ArgumentError, match="no release could be drawn at any of"):
        audit(lambda _: True)


@pytest.mark.parametrize("leaf", [0, 111, 299])
def test_a_leaf_without_noise_is_found_anywhere(faults, leaf, monkeypatch):
    """The law is unknown, and random pairs would seldom move a record of that leaf."""
    monkeypatch.setitem(faults.LEAVES, faults.LARGE, leaf)
    faults.made.cache_clear()
    planted = faults.Planted(
        faults.made(faults.LARGE), faults.made(faults.LARGE, leaf=True), "none"
    )
    found = cg.audit(planted, neighbours="substitute", draws=1500, confidence=SURE)
    (failed,) = (finding for finding in found.findings if not finding.passed)
    assert failed.check == "loss, from draws"
    one, other = failed.worst
    assert (one != other)[planted.mechanism.tree.leaves[leaf]]
    faults.made.cache_clear()


def test_the_table_of_faults_equals_the_output_of_its_command(faults):
    text = faults.PAGE.read_text(encoding="utf-8")
    written = text.partition(faults.BEGIN)[2].partition(faults.END)[0].splitlines()[2:]
    cases = faults.cases()
    assert len(written) == len(cases)
    again = [c for c in cases if c.size == faults.SMALL and "imaging" not in c.fault][::3]
    assert len(again) > 3
    for case, line in zip(cases, written, strict=True):
        groups, leaves = case.size
        assert line.startswith(f"| {case.fault} | {groups} × {leaves} | {case.told} | ")
        if case in again:
            assert f"{line}\n" == faults.row(case)
