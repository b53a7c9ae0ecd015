"""Draws from given bits are those of exact arithmetic, in the fast way and where it is crippled.

The reference below is written apart: it takes all bits at once and searches for the value whose
boundaries, worked out as decimals of 150 digits, enclose the uniform number.
"""

from __future__ import annotations

from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import combinations, pairwise

import numpy as np
import pytest

import congenial as cg
from congenial.noise import discrete_gaussian, discrete_laplace

DIGITS, FURTHER = 150, 4


def further(seed):
    """Return a source of more words, and the number that all of them make up."""
    words = np.random.default_rng(seed).integers(0, 2**64, FURTHER, dtype=np.uint64)
    given, whole = iter(words), 0
    for word in words.tolist():
        whole = whole << 64 | word
    return lambda count: np.array([next(given) for _ in range(count)], dtype=np.uint64), whole


def uniform(word, whole):
    """The middle of all numbers whose first bits are those of a word and of those that follow."""
    bits = 64 * FURTHER
    return (Decimal(word << bits | whole) + Decimal("0.5")) / 2 ** (64 + bits)


def geometric(word, whole, scale):
    with localcontext(prec=DIGITS):
        return int(-Decimal(scale) * uniform(word, whole).ln())


def gaussian(word, whole, sigma):
    with localcontext(prec=DIGITS):
        reach = int(30 * sigma) + 30
        weights = [(-Decimal(k * k) / (2 * Decimal(sigma) ** 2)).exp() for k in range(reach + 1)]
        left = uniform(word, whole) * (2 * sum(weights) - weights[0])
        for k in range(-reach, reach + 1):
            left -= weights[abs(k)]
            if left < 0:
                return k
        raise AssertionError("the reach is 30 sigma")


def beside(source, boundaries):
    """Return words at boundaries, and a few units beside them."""
    at = np.array([min(int(b * 2**64), 2**64 - 1) for b in boundaries], dtype=object)
    near = at + source.integers(-3, 4, at.size)
    return np.array([w for w in near if 0 <= w < 2**64], dtype=np.uint64)


def crippled(monkeypatch, module, name, slack):
    """Change how soon a law takes its slow way; return a list that grows whenever it does."""
    asked, exact = [], getattr(module, name)

    def counted(*args):
        asked.append(args)
        return exact(*args)

    monkeypatch.setattr(module, "_SLACK", slack)
    monkeypatch.setattr(module, name, counted)
    return asked


@pytest.mark.parametrize("slack", [1.0, 2.0**46])
def test_laplace_noise_is_that_of_exact_arithmetic(monkeypatch, slack):
    asked = crippled(monkeypatch, discrete_laplace, "geometric", slack)
    source, drawn = np.random.default_rng(3), 0
    for number in range(300):
        scale = float(np.exp(source.uniform(np.log(0.1), np.log(1000.0))))
        with localcontext(prec=60):
            some = source.integers(0, int(5 * scale) + 2, 4).tolist()
            edges = [(-Decimal(k) / Decimal(scale)).exp() for k in some]
        plain = source.integers(0, 2**64, 6, dtype=np.uint64)
        words = np.concatenate(
            (beside(source, edges), plain, np.array([0, 2**64 - 1], dtype=np.uint64))
        )
        for word in words.tolist():
            pair = np.array([[word, 2**63]], dtype=np.uint64)
            more, whole = further(number)
            law = cg.DiscreteLaplace(scale)
            down = geometric(2**63, 0, scale)
            assert (
                law.draw(pair, np.array([scale]), more)[0, 0]
                == geometric(word, whole, scale) - down
            )
            drawn += 1
    if slack > 1.0:  # crippled: a third of all entries are worked out exactly
        assert len(asked) / 2 > drawn / 3


@pytest.mark.parametrize("slack", [1, 2**58])
def test_gaussian_noise_is_that_of_exact_arithmetic(monkeypatch, slack):
    asked = crippled(monkeypatch, discrete_gaussian, "decided", slack)
    source, drawn = np.random.default_rng(4), 0
    for number in range(120):
        sigma = float(np.exp(source.uniform(np.log(0.1), np.log(12.0))))
        table = discrete_gaussian._thresholds(sigma)
        edges = [Decimal(int(t)) / 2**64 for t in source.choice(table, 3)]
        plain = source.integers(0, 2**64, 4, dtype=np.uint64)
        words = np.concatenate((beside(source, edges), plain, np.array([0, 2**64 - 1], np.uint64)))
        for word in words.tolist():
            more, whole = further(number)
            found = cg.DiscreteGaussian(sigma).draw(
                np.array([[word]], dtype=np.uint64), np.array([sigma]), more
            )
            assert found[0, 0] == gaussian(word, whole, sigma)
            drawn += 1
    if slack > 1:
        assert len(asked) > drawn / 3


@pytest.mark.parametrize("sigma", [0.01, 0.3, 1.7, 10.05, 60.0])
def test_a_table_is_rounded_down_and_as_long_as_the_proof_says(sigma):
    table = discrete_gaussian._thresholds(sigma)
    assert table.size <= 24 * sigma + 18
    with localcontext(prec=DIGITS):
        reach = int(30 * sigma) + 30
        weights = [(-Decimal(k * k) / (2 * Decimal(sigma) ** 2)).exp() for k in range(reach + 1)]
        total = 2 * sum(weights) - weights[0]
        below = sum(weights[table.size // 2 + 1 :])
        margin = Decimal(2) ** -40
        for k, entry in enumerate(table.tolist(), -(table.size // 2)):
            below += weights[abs(k)]
            assert -margin < below / total * 2**64 - entry < 1 + margin


def test_the_stated_loss_is_never_below_the_exact_one():
    tree = cg.Tree.from_paths([f"{a}/{b}/{c}" for a in "pq" for b in "rs" for c in "tuv"])
    source = np.random.default_rng(5)
    above = [set(path) for path in (ancestors(tree, leaf) for leaf in tree.leaves.tolist())]
    moves = [list(first ^ second) for first, second in combinations(above, 2)]
    for _ in range(1000):
        scales = np.exp(source.uniform(-3.0, 6.0, len(tree)))
        costs = [1 / Fraction(scale) for scale in scales.tolist()]
        for law, power, stated in (
            (cg.DiscreteLaplace, 1, "epsilon"),
            (cg.DiscreteGaussian, 2, "rho"),
        ):
            image = cg.image(cg.Additive(law(scales), tree), cg.consistent(tree))
            found = Fraction(float(getattr(image.guarantee("substitute"), stated)))
            exact = max(sum(costs[v] ** power for v in move) for move in moves) / power
            assert exact <= found <= exact * (1 + Fraction(1, 2**47))


def test_the_stated_loss_of_crossing_margins_is_never_below_the_exact_one():
    table = cg.Table({"sex": ("f", "m"), "age": ("0", "1", "2")})
    queries = cg.Workload.of(table, [(), ("sex",), ("age",), ("sex", "age")])
    chain, source = queries.chain, np.random.default_rng(6)
    moves = [list(set(one.tolist()) ^ set(two.tolist())) for one, two in combinations(chain.T, 2)]
    for _ in range(1000):
        scales = np.exp(source.uniform(-3.0, 6.0, len(queries)))
        image = cg.image(cg.Additive(cg.DiscreteLaplace(scales), queries), cg.consistent(queries))
        stated = Fraction(float(image.guarantee("substitute").epsilon))
        exact = max(sum(1 / Fraction(scales[v]) for v in move) for move in moves)
        assert exact <= stated <= exact * (1 + Fraction(1, 2**47))


def test_calibrated_noise_loses_at_most_epsilon_in_fractions():
    tree = cg.Tree.from_paths([f"a/{b}/{c}" for b in "rst" for c in "uvw"])
    invariant, source = cg.consistent(tree) & cg.exactly([0]), np.random.default_rng(7)
    for _ in range(1000):
        share, epsilon = float(source.uniform(0.01, 0.99)), float(np.exp(source.uniform(-3, 2.5)))
        law = cg.calibrate(
            tree,
            invariant,
            epsilon=epsilon,
            neighbours="substitute",
            split={1: share, 2: 1.0 - share},
            method="imaging",
        )
        exact = 2 * sum(1 / Fraction(float(law.spread[v])) for v in (1, 2))
        assert exact <= Fraction(epsilon) <= exact * (1 + Fraction(1, 2**46))


def ancestors(tree, node):
    """The node and all nodes above it."""
    while node >= 0:
        yield node
        node = int(tree.parents[node])


@pytest.mark.parametrize("scale", [0.1, 1.0, 30.0, 1000.0])
def test_a_crippled_fast_way_changes_no_draw_of_a_release(monkeypatch, scale):
    scales = np.full(2_000, scale)
    laws = (
        (cg.DiscreteLaplace, discrete_laplace, 2.0**44),
        (cg.DiscreteGaussian, discrete_gaussian, 2**50),
    )
    for law, module, slack in laws:
        with monkeypatch.context() as patched:
            first = cg.Additive(law(scales), 2_000).sample(np.zeros(2_000, int), rng=cg.seeded(8))
            patched.setattr(module, "_SLACK", slack)
            again = cg.Additive(law(scales), 2_000).sample(np.zeros(2_000, int), rng=cg.seeded(8))
        assert (first == again).all()


def test_words_that_decide_nothing_take_more_bits_until_they_do():
    asked = []

    def more(count):
        asked.append(count)
        return (
            np.zeros(count, dtype=np.uint64) if len(asked) < 5 else np.full(count, 2**63, np.uint64)
        )

    # 64 bits of 0, and 4 times as many more: U is about 2^-321
    drawn = cg.DiscreteLaplace(2.0).draw(
        np.array([[0, 2**64 - 1]], dtype=np.uint64), np.array([2.0]), more
    )
    assert drawn[0, 0] == int(2.0 * 321 * np.log(2.0))
    assert len(asked) == 5


def test_ends_of_doubt_leave_no_word_out():
    full = 2**64 - 1
    table = np.array([0, 1, 5, 5, 100, full - 3, full - 1, full], dtype=np.uint64)
    ends = discrete_gaussian._doubtful(table, 1)
    assert all(a <= b for a, b in pairwise(ends.tolist()))
    for word in (0, 1, 2, 3, 4, 6, 7, 8, 98, 99, 101, 102, 10**9, full - 5, full - 4, full):
        place = int(np.searchsorted(ends, np.uint64(word), side="right"))
        doubtful = min(abs(word - int(t)) for t in table) <= 1
        assert place % 2 == doubtful
        if not doubtful:
            assert place // 2 == sum(int(t) <= word for t in table)
