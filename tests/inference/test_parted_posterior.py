"""The posterior by parts has exactly the law of the posterior at once."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

import congenial as cg
from congenial.errors import ArgumentError, InfeasibleError, UnsupportedError
from congenial.inference.parted_posterior import posterior_by_parts
from congenial.sum_network.joined import part_messages, split_sums
from support.bounded_trees import p_values
from support.enumeration import Law
from support.goodness_of_fit import FAILS, fit
from support.narrow_windows import narrow_windows
from support.parted_trees import measured_parted, measured_wide

REACH = 45.0  # nats
TREE = cg.Tree.from_parents([-1, 0, 0, 1, 1, 2, 2])
NOISY = cg.Additive(cg.DiscreteLaplace(1.0), TREE)
KNOWN = cg.consistent(TREE) & cg.nonnegative()
Y = np.array([9, 3, 6, -1, 3, 2, 5])


def test_the_public_name():
    assert cg.inference.posterior_by_parts is posterior_by_parts


def test_draws_obey_the_invariant():
    for seed in range(150):
        y, mechanism, invariant, level = measured_parted(seed, 40)
        law = posterior_by_parts(y, mechanism, invariant, level)
        drawn, known = law.sample(3, cg.seeded(seed)), law.problem.resolved
        assert law.split.tree.is_consistent(drawn)
        assert (drawn[:, known.pinned] == y[known.pinned]).all()
        assert ((drawn >= known.lo) & (drawn <= known.hi)).all()
        assert law.sample(rng=cg.seeded(seed)).shape == y.shape


def log_weights(law, values, nodes, factor=1.0):
    """Log weights of the counts of some nodes, shape (k, nodes), with scales a `factor` off."""
    problem, noise = law.problem, law.problem.mechanism.noise
    u = np.where(problem.measured[nodes], values - problem.y[nodes], 0)
    u = u / (factor * problem.mechanism.scales[nodes])
    return -np.abs(u) if "laplace" in noise.name else -0.5 * u**2


def enumerated(law, factor=1.0):
    """Enumerate the posterior, leaf by leaf; every leaf is measured or pinned."""
    problem, tree = law.problem, law.split.tree
    states, log = np.zeros((1, 0), dtype=np.int64), np.zeros(1)
    for v in tree.leaves:
        reach = int(REACH * factor * problem.mechanism.scales[v])
        low, high = np.clip(
            [problem.y[v] - reach, problem.y[v] + reach], problem.lo[v], problem.hi[v]
        )
        values = np.arange(int(low), int(high) + 1)
        own = log_weights(law, values[:, None], [v], factor)[:, 0]
        both = (log[:, None] + own).ravel()
        kept = both > -REACH
        pairs = np.repeat(states, values.size, axis=0), np.tile(values, log.size)[:, None]
        states, log = np.hstack(pairs)[kept], both[kept]
    states = tree.roll_up(states)
    kept = ((states >= problem.lo) & (states <= problem.hi)).all(axis=1)
    states = states[kept]
    log = log_weights(law, states, np.arange(len(tree)), factor).sum(axis=1)
    total = np.log(np.exp(log - log.max()).sum()) + log.max()
    return Law(states, np.exp(log - total), total)


def small_laws(count, **options):
    """Yield posteriors of few leaves, all of them measured."""
    for seed in range(count):
        given = measured_parted(seed, 9, unmeasured=0.0, **options)
        law = posterior_by_parts(*given)
        if law.split.tree.leaves.size <= 4:
            yield seed, law


def test_probabilities_of_all_tops_are_those_of_enumeration():
    compared = 0
    for seed, law in small_laws(200, scales=(0.3, 0.6)):
        exact, split, joined = enumerated(law), law.split, law.sums.joined
        keys, at = np.unique(exact.states[:, split.nodes], axis=0, return_inverse=True)
        want = np.bincount(at.ravel(), weights=exact.probabilities)
        log = log_weights(law, keys, split.nodes).sum(axis=1)
        around, inside = keys - law._center[split.nodes], np.ones(len(keys), dtype=bool)
        for root, sent in zip(split.roots, joined.messages, strict=True):
            u = around[:, root]
            entry = sent.table[np.clip(u - sent.lo, 0, sent.table.size - 1)]
            inside &= (u >= sent.lo) & (u <= sent.hi) & (entry > 0)
            log += np.log(np.maximum(entry, 1e-300)) - sent.theta * u
        got = np.where(inside, np.exp(log - log[inside].max()), 0.0)
        # the tables exceed the exact messages by what lies beyond windows
        assert np.abs(got / got.sum() - want).max() < 1e-4, seed
        compared += len(keys)
    assert compared > 5000


@pytest.mark.parametrize("narrow", [False, True])
def test_draws_fit_the_law_and_not_one_of_a_scale_30_percent_off(narrow, monkeypatch):
    if narrow:
        narrow_windows(monkeypatch)
    compared = 0
    for seed, law in small_laws(30, scales=(1.0,), mean=(2.0,)):
        exact = enumerated(law)
        free = [v for v in range(law.problem.y.size) if np.unique(exact.states[:, v]).size > 1]
        if law.split.tree.leaves.size != 3 or len(free) < 4:
            continue
        drawn = law.sample(40_000, cg.seeded(seed))
        assert fit(drawn, exact, free[-3:]) > FAILS, seed
        for factor in (1.3, 1 / 1.3):
            assert fit(drawn, enumerated(law, factor), free[-3:]) < FAILS, seed
        compared += 1
    assert compared >= 5


def test_draws_of_a_larger_tree_fit_every_marginal_law():
    tree = cg.Tree.from_parents([-1, 0, 0, 0, *np.repeat([1, 2, 3], 20)])
    known = cg.consistent(tree) & cg.nonnegative() & cg.exactly([0])
    x = tree.roll_up(np.arange(60) % 4)
    noisy = cg.Additive(cg.DiscreteLaplace(3.0), tree)
    y = noisy.sample(x, rng=cg.seeded(1)).copy()
    y[0] = x[0]
    drawn = posterior_by_parts(y, noisy, known, 1).sample(5_000, cg.seeded(1))

    def least(scale):
        whole = cg.posterior(y, cg.Additive(cg.DiscreteLaplace(scale), tree), known)
        return min(p_values(drawn, SimpleNamespace(marginal=lambda v, _: whole.marginal(v)), y))

    assert least(3.0) > FAILS
    assert least(3.9) < FAILS


@pytest.mark.parametrize("exact", [True, False])
def test_parts_under_wide_noise_are_filled_once_for_messages(exact, monkeypatch):
    given = measured_wide(10, 60, exact=exact)
    asked, message_of = [], split_sums.message_of

    def message(part, outside):
        asked.append(outside.place_only)
        return message_of(part, outside)

    monkeypatch.setattr(split_sums, "message_of", message)
    law = posterior_by_parts(*given, 1)
    assert law.error_bound == 0.0
    assert law.split.tree.is_consistent(law.sample(rng=cg.seeded(1)))
    assert asked.count(False) == 10


def test_one_part_at_a_time_is_filled(monkeypatch):
    law = posterior_by_parts(*measured_parted(2, 40))
    part, numbers = split_sums.SplitSums.part, []

    def seen(self, number):
        numbers.append(number)
        return part(self, number)

    monkeypatch.setattr(split_sums.SplitSums, "part", seen)
    law.sample(rng=cg.seeded(1))
    times, rest = divmod(len(numbers), law.split.roots.size)
    assert rest == 0 and times > 1
    assert numbers == [*range(law.split.roots.size)] * times
    law.sample(rng=cg.seeded(2))  # messages are kept
    assert len(numbers) == (times + 1) * law.split.roots.size


def test_measurements_of_nested_margins_are_drawn_too():
    table = cg.Table({"age": ("0-17", "18+"), "sex": ("F", "M")}, name="people")
    workload = cg.Workload.of(table, [(), "age", ("age", "sex")])
    noisy = cg.Additive(cg.DiscreteLaplace(1.0), workload)
    known = cg.consistent(workload) & cg.nonnegative()
    law = posterior_by_parts(Y, noisy, known, 1)
    assert law.problem.tree.is_consistent(law.sample(5, cg.seeded(1)))


@pytest.mark.parametrize(
    ("mechanism", "invariant", "told"),
    [
        (cg.Additive(cg.Gaussian(1.0), TREE), KNOWN, "noise on the integers"),
        (cg.Additive(cg.DiscreteLaplace(1.0), 7), cg.bounds(0, 9), "need a tree that adds up"),
        (NOISY, cg.nonnegative(), "need a tree that adds up"),
        (NOISY, KNOWN & cg.linear([[0, 0, 0, 1, 1, 0, 0]], [3]), "a tree that adds up"),
        (NOISY, KNOWN & cg.at_least([[0, 0, 0, 1, 0, 1, 0]], [3]), "a tree that adds up"),
    ],
)
def test_what_parts_do_not_cover_is_refused(mechanism, invariant, told):
    with pytest.raises(UnsupportedError, match=told):
        posterior_by_parts(Y, mechanism, invariant, 1)


@pytest.mark.parametrize(
    ("prior", "told"),
    [
        ("poisson", "prior is 'poisson', and only the flat prior"),
        (cg.inference.Prior(2.0), "prior is a Prior, and only the flat prior"),
        (cg.inference.DirichletTree(np.ones(7)), "prior is a DirichletTree"),
    ],
)
def test_other_priors_are_refused(prior, told):
    with pytest.raises(UnsupportedError, match=told):
        posterior_by_parts(Y, NOISY, KNOWN, 1, prior)


def test_mistakes_are_refused():
    with pytest.raises(ArgumentError, match="level is 2"):
        posterior_by_parts(Y, NOISY, KNOWN, 2)
    with pytest.raises(ArgumentError, match="y has shape"):
        posterior_by_parts(Y[:3], NOISY, KNOWN, 1)
    with pytest.raises(InfeasibleError):
        posterior_by_parts(-Y, NOISY, KNOWN & cg.exactly([0]) & cg.bounds(hi=-1), 1)


def test_a_part_that_its_own_measurements_do_not_determine_is_refused():
    # only the root's measurement limits the counts below node 1
    scales = np.array([1.0, np.inf, 1.0, np.inf, np.inf, 1.0, 1.0])
    noisy = cg.Additive(cg.DiscreteLaplace(scales), TREE)
    assert cg.posterior(Y, noisy, KNOWN).sample(rng=cg.seeded(1)).shape == (7,)
    with pytest.raises(UnsupportedError, match="the part has no law of its own"):
        posterior_by_parts(Y, noisy, KNOWN, 1).sample(rng=cg.seeded(1))


@pytest.mark.parametrize("exact", [False, True])
def test_draws_under_wide_noise_have_the_means_of_the_law_at_once(exact, monkeypatch):
    made, fill = [], part_messages.fill_by_families

    def filled(*args):
        made.append(fill(*args))
        return made[-1]

    monkeypatch.setattr(part_messages, "fill_by_families", filled)
    y, mechanism, invariant = measured_wide(3, 8, exact=exact)
    drawn = posterior_by_parts(y, mechanism, invariant, 1).sample(3_000, cg.seeded(1))
    assert made and all(tables is not None for tables in made)

    def largest(scale):
        noisy = cg.Additive(cg.DiscreteLaplace(scale), mechanism.queries)
        law = cg.posterior(y, noisy, invariant).summary()
        free = law.standard_deviation > 0.0
        off = (drawn.mean(axis=0) - law.mean)[free] / law.standard_deviation[free]
        return np.abs(off).max() * np.sqrt(len(drawn))

    # the largest of some hundred normal deviates: probability below 1e-6
    assert largest(13.0) < 6.5 < largest(1.3 * 13.0)
