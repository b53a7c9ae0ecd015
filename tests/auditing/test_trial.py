"""The auditor: honest mechanisms pass, and every planted fault is found.

Draws refute a true claim with probability at most 1e-6, for every seed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

import congenial as cg
from congenial.conditioning.samplers.rejection import Rejection
from congenial.errors import ArgumentError
from support.enumeration import enumerate_law, rows_of

SURE = 1.0 - 1e-6
PAIR = cg.Tree.from_parents([-1, 0, 0])
DEEP = cg.Tree.from_parents([-1, 0, 0, 1, 1, 2, 2])
INF = np.inf
TOTAL = cg.consistent(PAIR) & cg.exactly(0)
TOO_MUCH = {"loss, enumerated", "loss, computed"}
SCALES = np.array([INF, 2.0, 1.5])
WIDE = 4.0 * SCALES


def noisy(scales=SCALES, queries: Any = PAIR, **options):
    return cg.Additive(cg.DiscreteLaplace(scales, **options), queries)


def audit(mechanism, neighbours="substitute", **options):
    return cg.audit(mechanism, neighbours=neighbours, confidence=SURE, **options)


def union():
    return cg.bounds([0, 0], [1, 9]) | cg.bounds([2, 0], [9, 9])


def deep(*more):
    scales = [INF, 2.0, 2.0, 3.0, 2.0, 1.5, 1.5]
    whole = cg.consistent(DEEP) & cg.exactly(0)
    for part in more:
        whole = whole & part
    return cg.condition(noisy(scales, DEEP), whole)


FREE = np.array([1.5, 2.0, 1.5])
# name: mechanism, relation, checks that draws leave out
HONEST = {
    "equalities": (lambda: cg.condition(noisy(), TOTAL), "substitute"),
    "bounds": (lambda: cg.condition(noisy(), TOTAL & cg.nonnegative()), "substitute"),
    "no pin": (
        lambda: cg.condition(noisy(FREE), cg.consistent(PAIR) & cg.nonnegative()),
        "add-remove",
    ),
    "two levels": (deep, "substitute"),
    "two levels with bounds": (lambda: deep(cg.nonnegative()), "substitute"),
    "discrete Gaussian": (
        lambda: cg.condition(cg.Additive(cg.DiscreteGaussian(3.0), PAIR), cg.consistent(PAIR)),
        "substitute",
    ),
    "discrete Gaussian with bounds": (
        lambda: cg.condition(
            cg.Additive(cg.DiscreteGaussian(3.0), PAIR), cg.consistent(PAIR) & cg.nonnegative()
        ),
        "substitute",
    ),
    "fixed sum": (
        lambda: cg.condition(noisy(2.0, 3), cg.linear(np.ones(3), 3) & cg.bounds(0, 3)),
        "substitute",
    ),
    "mixture": (
        lambda: cg.condition(
            cg.mixture([noisy(FREE), noisy(3.0)], [0.5, 0.5]), cg.consistent(PAIR)
        ),
        "substitute",
    ),
    "mixture of discrete Gaussian": (
        lambda: cg.condition(
            cg.mixture(
                [cg.Additive(cg.DiscreteGaussian(s * SCALES), PAIR) for s in (1.0, 1.5)], [0.4, 0.6]
            ),
            TOTAL,
        ),
        "substitute",
    ),
    "mixture of conditioned": (
        lambda: cg.mixture(
            [cg.condition(noisy(), TOTAL), cg.condition(noisy(2 * SCALES), TOTAL)], [0.3, 0.7]
        ),
        "substitute",
    ),
    "union": (lambda: cg.condition(noisy(2.0, 2), union()), "add-remove"),
    "grid": (
        lambda: cg.condition(noisy(granularity=0.5), TOTAL & cg.nonnegative()),
        "substitute",
    ),
    "rejection": (lambda: cg.condition(noisy(), TOTAL, "rejection"), "substitute"),
    "independence": (lambda: cg.condition(noisy(), TOTAL, "independence"), "substitute"),
    "perfect": (lambda: cg.condition(noisy(), TOTAL, "perfect"), "substitute"),
    "Gaussian in closed form": (
        lambda: cg.condition(cg.Additive(cg.Gaussian(2.0), PAIR), cg.consistent(PAIR)),
        "substitute",
    ),
}
IMAGES = {
    "l2": lambda: cg.image(noisy(), TOTAL),
    "l2, bounds": lambda: cg.image(noisy(), TOTAL & cg.nonnegative()),
    "l2, whole": lambda: cg.image(noisy(), TOTAL & cg.nonnegative(), integer=True),
    "l1": lambda: cg.image(noisy(), TOTAL, norm="l1"),
    "l1, whole": lambda: cg.image(noisy(), TOTAL & cg.nonnegative(), norm="l1", integer=True),
    "two bins": lambda: cg.image(noisy(2.0), TOTAL, norm="l1", beta=0.5),
}


@pytest.mark.parametrize("name", HONEST)
def test_honest_mechanisms_pass(name):
    make, neighbours = HONEST[name]
    found = audit(make(), neighbours, draws=8000)
    assert found.passed, str(found)
    enumerated = [f for f in found.findings if f.check == "loss, enumerated"]
    assert len(enumerated) == (name != "Gaussian in closed form")
    assert all(f.pairs > 0 and f.outputs > 0 and f.found > 0.3 * f.stated for f in enumerated)


@pytest.mark.parametrize("name", IMAGES)
def test_honest_images_pass(name):
    found = audit(IMAGES[name](), draws=400, total=1)
    assert found.passed, str(found)
    assert found.findings[0].check == "loss, enumerated"
    assert 0.4 < found.findings[0].found / found.findings[0].stated <= 1.0 + 1e-9


def test_equalities_attain_their_claim():
    for make in (lambda: cg.condition(noisy(), TOTAL), deep):
        finding = audit(make(), method="exact").findings[0]
        assert finding.slack == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize("pinned", [True, False])
def test_the_enumerated_loss_equals_that_of_brute_force(pinned):
    """Compared with laws that share no code with the package."""
    scales = np.array([INF if pinned else 1.5, 1.1, 0.8])
    whole = cg.consistent(PAIR) & cg.nonnegative()
    relation = "add-remove"
    if pinned:
        whole, relation = whole & cg.exactly(0), "substitute"
    finding = audit(cg.condition(noisy(scales), whole), relation, method="exact", total=2).findings[
        0
    ]
    cells = [(a, b) for a in range(3) for b in range(3 - a)]
    laws = {}
    for cell in cells:
        x = PAIR.roll_up(np.array(cell))
        law = enumerate_law(
            rows_of(PAIR.parents), "laplace", scales, x, (0,) if pinned else (), 0.0
        )
        laws[cell] = dict(
            zip(map(tuple, law.states.tolist()), np.log(law.probabilities), strict=True)
        )
    moves = [(1, -1)] if pinned else [(1, 0), (0, 1)]
    pairs = [
        (one, other)
        for one in cells
        for move in moves
        if (other := (one[0] + move[0], one[1] + move[1])) in laws
    ]
    worst = max(
        abs(laws[one][z] - laws[other][z])
        for one, other in pairs
        for z in laws[one].keys() & laws[other].keys()
    )
    assert finding.pairs == len(pairs)
    assert finding.found == pytest.approx(worst, abs=1e-9)


# Planted faults.


@dataclass(frozen=True)
class Planted:
    """A mechanism that states one thing and does another."""

    stated: Any
    drawn: Any
    change: Any = None

    @property
    def mechanism(self):
        return self.stated.mechanism

    @property
    def resolved(self):
        return self.stated.resolved

    def guarantee(self, neighbours):
        return self.stated.guarantee(neighbours)

    def sample(self, x, size=None, rng=None):
        z = self.drawn.sample(x, size, rng)
        return z if self.change is None else self.change(z, np.asarray(x))


@dataclass(frozen=True)
class WithLaw(Planted):
    """Its law is that of what it does."""

    def log_prob(self, z, x):
        return self.drawn.log_prob(z, x)


class ToldLaw(Planted):
    """Its law is told as stated."""

    def log_prob(self, z, x):
        return self.stated.log_prob(z, x)

    def marginal(self, node, x):
        return self.stated.marginal(node, x)


def failed(found) -> set[str]:
    return {f.check for f in found.findings if not f.passed}


@pytest.mark.parametrize("share", [0.7, 0.5])
def test_enumeration_and_draws_both_find_too_little_noise(share):
    """Noise 30% too small, and half the noise, as if only one end of a move were charged."""
    stated, drawn = (cg.condition(noisy(s), TOTAL) for s in (SCALES, share * SCALES))
    planted = WithLaw(stated, drawn)
    assert failed(audit(planted, method="exact")) == TOO_MUCH
    assert failed(audit(planted, method="statistical")) == {"loss, from draws"}
    # without its law, from values alone
    assert failed(audit(Planted(stated, drawn))) == {"loss, from draws"}
    assert failed(audit(WithLaw(stated, stated))) == set()


def test_too_little_noise_is_found_in_a_deep_tree():
    drawn = cg.condition(
        noisy(0.7 * deep().mechanism.scales, DEEP), cg.consistent(DEEP) & cg.exactly(0)
    )
    found = audit(WithLaw(deep(), drawn))
    assert {"loss, enumerated", "loss, from draws"} <= failed(found)


@dataclass(frozen=True)
class Twice(Planted):
    """Counts every record twice."""

    def sample(self, x, size=None, rng=None):
        return self.stated.sample(2 * np.asarray(x), size, rng)

    def log_prob(self, z, x):
        return self.stated.log_prob(z, 2 * np.asarray(x))


def test_a_record_counted_twice_is_found():
    stated = cg.condition(noisy(FREE), cg.consistent(PAIR))
    found = audit(Twice(stated, stated))
    assert failed(found) == TOO_MUCH | {"loss, from draws"}
    assert found.findings[0].found == pytest.approx(2 * found.findings[0].stated)


def test_uncharged_inequalities_are_detected():
    stated, drawn = cg.condition(noisy(), TOTAL), cg.condition(noisy(), TOTAL & cg.nonnegative())
    found = audit(WithLaw(stated, drawn), method="exact")
    assert failed(found) == TOO_MUCH


class WithoutWeights(Rejection):
    """Takes the first candidate, whatever its weight p/q."""

    def batch(self, counts, rows, steps, source):
        made = super().batch(counts, rows, steps, source)
        return made._replace(log_weights=np.zeros_like(made.log_weights))


def unweighted(proposal=None) -> WithoutWeights:
    made = cg.condition(noisy(), TOTAL, "independence", proposal=proposal)
    return WithoutWeights(made.mechanism, made.resolved, made.exact, made.placed)


def test_a_proposal_weight_left_out_is_found_in_the_law():
    assert failed(audit(unweighted())) == {"law, from draws"}


def test_a_proposal_weight_left_out_is_found_in_the_loss():
    """Candidates narrower than the noise reveal more than the weighted draws would."""
    narrow = unweighted(cg.conditioning.Proposal([1], 0.5))
    found = audit(ToldLaw(cg.condition(noisy(), TOTAL), narrow))
    assert {"loss, from draws", "law, from draws"} == failed(found)


BOUNDED = TOTAL & cg.nonnegative()


def clip(z, _):
    return np.maximum(z, 0)


def clip_leaves(z, x):
    """Clip the leaves, and take the pinned total from the data."""
    out = np.maximum(z, 0)
    out[..., 0] = x[0]
    return out


def clip_and_add_up(z, x):
    """Clip one leaf to the range that the total allows, and give the other the rest."""
    first = np.clip(z[..., 1], 0, x[0])
    return np.stack((np.full_like(first, x[0]), first, x[0] - first), axis=-1)


def restore(z, x):
    """Replace entries that violate a bound by those of the data."""
    return np.where((z < 0).any(axis=-1, keepdims=True), x, z)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (clip, "invariant, from draws"),
        (clip_leaves, "invariant, from draws"),
        (clip_and_add_up, "law, from draws"),
        (restore, "loss, from draws"),
    ],
)
def test_clipping_after_the_draw_is_detected(change, told):
    stated, drawn = cg.condition(noisy(WIDE), BOUNDED), cg.condition(noisy(WIDE), TOTAL)
    found = audit(ToldLaw(stated, drawn, change), draws=8000)
    assert told in failed(found)
    assert failed(audit(ToldLaw(stated, stated), draws=8000)) == set()


@dataclass(frozen=True)
class FromTheData(Planted):
    """A Metropolis chain that begins at the data and takes few steps."""

    steps: int = 5

    def sample(self, x, size=None, rng=None):
        x = np.asarray(x)
        z = np.tile(x, (size or 1, 1))
        move = np.array([0, 1, -1])
        for _ in range(self.steps):
            words = rng.bits(2 * len(z)).reshape(2, -1)
            to = z + np.where(words[0] >> np.uint64(63), 1, -1)[:, None] * move
            chance = (words[1] >> np.uint64(11)) * 2.0**-53
            ratio = self.stated.log_prob(to, x) - self.stated.log_prob(z, x)
            z = np.where((chance < np.exp(np.minimum(ratio, 0.0)))[:, None], to, z)
        return z if size is not None else z[0]


def test_a_chain_that_begins_at_the_data_is_found():
    stated = cg.condition(noisy(WIDE), TOTAL)
    found = audit(FromTheData(stated, stated))
    assert failed(found) == {"loss, from draws"}
    # run on, it forgets where it began
    given = [([9, 4, 5], [9, 5, 4])]
    long = FromTheData(stated, stated, steps=200)
    assert failed(audit(long, pairs=given, draws=1000)) == set()


def test_an_image_of_too_little_noise_is_found():
    stated, drawn = (cg.image(noisy(s), TOTAL) for s in (SCALES, 0.4 * SCALES))
    given = [([6, 3, 3], [6, 4, 2])]
    assert failed(audit(Planted(stated, drawn), pairs=given, draws=4000)) == {"loss, from draws"}
    assert audit(Planted(stated, stated), pairs=given, draws=1000).passed
    # its law is enumerated through the projection
    assert audit(stated, method="exact", total=1).passed
    told = replace(drawn.guarantee("substitute"), epsilon=stated.guarantee("substitute").epsilon)
    object.__setattr__(drawn, "guarantee", lambda _: told)
    assert failed(audit(drawn, method="exact", total=1)) == TOO_MUCH


def test_more_counts_than_memory_holds_are_refused_at_once():
    huge = cg.condition(cg.Additive(cg.DiscreteLaplace(2.0), 2_500_001), cg.nonnegative(), "exact")
    with pytest.raises(ArgumentError, match="has 2,500,001 counts, and 100 releases"):
        audit(huge)


def test_a_plan_is_refused_with_the_name_of_audit_plan():
    plan = cg.parse_plan(
        '[data]\nsource = "rows.csv"\n[hierarchy]\nroot = "All"\nlevels = ["a"]\n'
        'domain = "data"\n[privacy]\nneighbours = "substitute"\nepsilon = 1.0\n'
    )
    with pytest.raises(ArgumentError, match=r"states no guarantee.*congenial\.audit_plan\."):
        cg.audit(plan, neighbours="substitute")
