"""Two Views, section 3, constrained privacy as belief revision: Theorem 3.5, Lemma 3.6."""

from __future__ import annotations

from congenial.belief.finite_mechanism import FiniteMechanism, hockey_stick, largest_ratio
from congenial.belief.finite_noise import double_geometric
from congenial.belief.worlds import Belief, Probability, mixture
from papers.claims.claim import (
    Case,
    Claim,
    listed,
    told_laws,
)
from papers.claims.draws import PAIR, Draws

OUTPUTS = (0, 1, 2, 3)


def _share(law: Belief, first: frozenset[int], second: frozenset[int]) -> Probability:
    return law.probability(first) / law.probability(first | second)


def _union_law(*, apart: bool) -> Case:
    def case(draws: Draws) -> str | None:
        first, second = draws.disjoint(OUTPUTS) if apart else draws.overlapping(OUTPUTS)
        mechanism = draws.mechanism(OUTPUTS, first, second, zeros=True)
        for law in mechanism.laws:
            p, q = law.probability(first), law.probability(second)
            parts = [law.condition(first), law.condition(second)]
            if law.condition(first | second) != mixture(parts, [p / (p + q), q / (p + q)]):
                return f"{told_laws(mechanism)}; C = {listed(first)}, C' = {listed(second)}"
        return None

    return case


def _union_private(*, same_share: bool) -> Case:
    """Theorem 3.5, second part; with `same_share` for weights that ignore the data."""

    def case(draws: Draws) -> str | None:
        first, second = draws.disjoint(OUTPUTS)
        mechanism = draws.mechanism(OUTPUTS, first, second, zeros=True)
        if same_share:
            share = draws.fraction()
            parts = [mechanism.condition(first), mechanism.condition(second)]
            mechanism = FiniteMechanism.mixture(parts, [share, 1 - share])
        factor = draws.factor()
        parts = [mechanism.condition(first), mechanism.condition(second)]
        before = max(part.excess(factor, PAIR) for part in parts)
        after = mechanism.condition(first | second).excess(factor, PAIR)
        if after <= before:
            return None
        return (
            f"{told_laws(mechanism)}; C = {listed(first)}, C' = {listed(second)}; at "
            f"e^epsilon = {factor}, delta {before} becomes {after}"
        )

    return case


def _union_counts(draws: Draws) -> str | None:
    """Theorem 3.5, second part, for double geometric noise on two counts of the union."""
    while True:
        first, second = draws.disjoint(OUTPUTS)
        x = draws.integer(0, OUTPUTS[-1] - 1)
        if {x, x + 1} <= first | second:
            break
    a = draws.fraction()
    mechanism = FiniteMechanism({d: double_geometric(a, OUTPUTS, centre=d) for d in (x, x + 1)})
    pair = ((x, x + 1),)
    before = [mechanism.condition(part).ratio(pair) for part in (first, second)]
    after = mechanism.condition(first | second).ratio(pair)
    if after <= max(before):
        return None
    return (
        f"double geometric, a = {a}, counts {x} and {x + 1}, C = {listed(first)}, C' = "
        f"{listed(second)}: ratios {before[0]} and {before[1]} become {after}"
    )


def _union_exactly(*, with_shares: bool) -> Case:
    """Try the exact ratio of a union; the control leaves out the ratios of the weights."""

    def case(draws: Draws) -> str | None:
        first, second = draws.disjoint(OUTPUTS)
        mechanism = draws.mechanism(OUTPUTS)
        wanted: list[Probability] = []
        for p, q in (mechanism.laws, mechanism.laws[::-1]):
            for part, other in ((first, second), (second, first)):
                ratio = largest_ratio(p.condition(part), q.condition(part))
                shares = _share(p, part, other) / _share(q, part, other)
                wanted.append(ratio * shares if with_shares else ratio)
        if mechanism.condition(first | second).ratio(PAIR) == max(wanted):
            return None
        return f"{told_laws(mechanism)}; C = {listed(first)}, C' = {listed(second)}"

    return case


def _union_delta(*, with_shares: bool) -> Case:
    """Try the exact delta of a union at any epsilon."""

    def case(draws: Draws) -> str | None:
        first, second = draws.disjoint(OUTPUTS)
        mechanism = draws.mechanism(OUTPUTS, first, second, zeros=True)
        factor = draws.factor()
        for p, q in (mechanism.laws, mechanism.laws[::-1]):
            wanted: Probability = 0
            for part, other in ((first, second), (second, first)):
                mine, theirs = _share(p, part, other), _share(q, part, other)
                at = factor * theirs / mine if with_shares else factor
                wanted += mine * hockey_stick(at, p.condition(part), q.condition(part))
            union = first | second
            if hockey_stick(factor, p.condition(union), q.condition(union)) != wanted:
                return f"{told_laws(mechanism)}; C = {listed(first)}, C' = {listed(second)}"
        return None

    return case


def _union_bound(*, charged: bool) -> Case:
    """Try (epsilon + eta, delta), where the weights by themselves are eta-private."""

    def case(draws: Draws) -> str | None:
        first, second = draws.disjoint(OUTPUTS)
        mechanism = draws.mechanism(OUTPUTS, first, second, zeros=True)
        chosen = mechanism.condition(first | second).then(lambda z: z in first)
        eta = chosen.ratio(PAIR) if charged else 1
        factor = draws.factor()
        parts = [mechanism.condition(first), mechanism.condition(second)]
        before = max(part.excess(factor, PAIR) for part in parts)
        after = mechanism.condition(first | second).excess(factor * eta, PAIR)
        if after <= before:
            return None
        return f"{told_laws(mechanism)}; C = {listed(first)}, C' = {listed(second)}"

    return case


def _product(*, rectangle: bool) -> Case:
    """Lemma 3.6; the control conditions on a set of pairs that is no product."""

    def case(draws: Draws) -> str | None:
        small = OUTPUTS[:3]
        first, second = draws.event(small), draws.event(small)
        one, two = draws.mechanism(small), draws.mechanism(small)
        joint = one.product(two)
        kept = frozenset((a, b) for a in first for b in second)
        if not rectangle:
            kept = frozenset((a, b) for a in small for b in small if draws.integer(0, 1)) or kept
        after = joint.condition(kept)
        parts = one.condition(first), two.condition(second)
        if rectangle and after != parts[0].product(parts[1]):
            return "the joint conditional law is no product"
        most = parts[0].ratio(PAIR) * parts[1].ratio(PAIR)
        if after.ratio(PAIR) <= most:
            return None
        return f"{told_laws(one)}; {told_laws(two)}; C12 = {sorted(kept)}"

    return case


def _mixture_law(draws: Draws) -> str | None:
    """Cross of Table 1: conditioning a mixture is not mixing the conditional laws."""
    event = draws.event(OUTPUTS[:3])
    one, two = draws.mechanism(OUTPUTS[:3]), draws.mechanism(OUTPUTS[:3])
    share = draws.fraction()
    weights = [share, 1 - share]
    left = FiniteMechanism.mixture([one, two], weights).condition(event)
    right = FiniteMechanism.mixture([one.condition(event), two.condition(event)], weights)
    if left == right:
        return None
    return f"{told_laws(one)}; M2: {told_laws(two)}; weight {share}; C = {listed(event)}"


def _mixture_private(draws: Draws) -> str | None:
    """Cross of Table 1: a mixture, conditioned, may lose more than its conditioned parts.

    Given C each part has one law for both datasets; only how often it meets C depends on them.
    """
    inside, outside = (0, 1), (2,)
    off = draws.belief(outside)
    parts = []
    for _ in range(2):
        law = draws.belief(inside)
        met = {d: draws.fraction() for d in PAIR[0]}
        parts.append(FiniteMechanism({d: mixture([law, off], [p, 1 - p]) for d, p in met.items()}))
    event = frozenset(inside)
    share = draws.fraction()
    before = max(part.condition(event).ratio(PAIR) for part in parts)
    after = FiniteMechanism.mixture(parts, [share, 1 - share]).condition(event).ratio(PAIR)
    if after <= before:
        return None
    return (
        f"{told_laws(parts[0])}; M2: {told_laws(parts[1])}; weight {share}; C = {listed(event)}; "
        f"ratio {before} becomes {after}"
    )


CLAIMS = (
    Claim(
        "Two Views, Theorem 3.5, part 1",
        "M given a disjoint union is M given C and M given C', mixed with weights that depend on "
        "the data.",
        "the paper",
        True,
        _union_law(apart=True),
        _union_law(apart=False),
    ),
    Claim(
        "Two Views, Theorem 3.5, part 2",
        "If M given C and M given C' are epsilon-private, so is M given the union of the disjoint "
        "sets C and C'. Tried with double geometric noise, where the true counts of both "
        "neighbours are in the union.",
        "the paper",
        False,
        _union_counts,
    ),
    Claim(
        "Two Views, Theorem 3.5, part 2, corrected",
        "If neighbours give C the same share of the union's probability, M given the disjoint "
        "union is as private as the less private of M given C and M given C'.",
        "ours: corrected",
        True,
        _union_private(same_share=True),
        _union_private(same_share=False),
    ),
    Claim(
        "Two Views, Theorem 3.5, part 2, exactly",
        "For each pair of neighbours, multiply each part's largest ratio by the ratio of the "
        "part's shares. The larger product is the largest ratio given the union.",
        "ours",
        True,
        _union_exactly(with_shares=True),
        _union_exactly(with_shares=False),
    ),
    Claim(
        "Two Views, Theorem 3.5, part 2, exactly, with delta",
        "Let a part have the share s under D, and s' under D'. At e^epsilon = f, delta given the "
        "union is the mean of the parts' deltas at e^epsilon = f s'/s, weighted by s.",
        "ours",
        True,
        _union_delta(with_shares=True),
        _union_delta(with_shares=False),
    ),
    Claim(
        "Two Views, Theorem 3.5, part 2, bound",
        "If a release of only the part's name is eta-private, M given the union is (epsilon + "
        "eta, delta)-private.",
        "ours",
        True,
        _union_bound(charged=True),
        _union_bound(charged=False),
    ),
    Claim(
        "Two Views, Lemma 3.6",
        "If independent mechanisms are conditioned on a product of invariants, each is "
        "conditioned on its own invariant, and their epsilons add up.",
        "the paper",
        True,
        _product(rectangle=True),
        _product(rectangle=False),
    ),
    Claim(
        "Two Views, Table 1, conditioning and mixtures",
        "Conditioning a mixture of mechanisms is mixing the conditioned mechanisms.",
        "the paper denies it",
        False,
        _mixture_law,
    ),
    Claim(
        "Two Views, Table 1, privacy of a conditioned mixture",
        "A mixture, conditioned, is as private as the worse of its conditioned parts.",
        "the paper denies it",
        False,
        _mixture_private,
    ),
)
