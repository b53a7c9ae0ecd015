"""Gong and Meng (2020): Theorem 2.1 and its gamma, section 5.1 and its three examples."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from typing import Literal

from congenial.belief.adjacency import hamming, neighbourhood
from congenial.belief.finite_mechanism import FiniteMechanism, Pair
from congenial.belief.finite_noise import cyclic_geometric, cyclic_mechanism, double_geometric
from congenial.belief.worlds import Probability
from papers.claims.claim import Case, Claim, told
from papers.claims.cost_of_bounds import pinned_total
from papers.claims.draws import Draws

OUTPUTS = (0, 1, 2)
Records = tuple[int, ...]


def cube(records: int) -> list[Records]:
    """Every dataset of some binary records."""
    return list(product((0, 1), repeat=records))


def apart(datasets: list[Records], distance: int) -> list[Pair]:
    """Pairs of datasets that differ in so many records."""
    return [
        (a, b) for i, a in enumerate(datasets) for b in datasets[:i] if hamming(a, b) == distance
    ]


def _theorem(most: Literal["bound", "gamma = 1", "gamma = 0"]) -> Case:
    """Theorem 2.1 with gamma by equation 2.5, with gamma = 1, and without."""

    def case(draws: Draws) -> str | None:
        whole = cube(draws.integer(1, 3))
        mechanism = FiniteMechanism({x: draws.belief(OUTPUTS, zeros=False) for x in whole})
        epsilon = mechanism.ratio(apart(whole, 1))
        event = draws.event(OUTPUTS)
        kept = [x for x in whole if draws.integer(0, 3)]
        k = draws.integer(1, len(whole[0]))
        pairs = apart(kept, k)
        if not pairs:
            return None
        met = {x: mechanism[x].probability(event) for x in kept}
        factor = max(max(met[a] / met[b], met[b] / met[a]) for a, b in pairs)
        allowed = {"bound": factor, "gamma = 1": epsilon**k, "gamma = 0": 1}[most]
        after = mechanism.condition(event).ratio(pairs)
        # gamma of equation 2.5 lies between 0 and 1
        if after <= epsilon**k * allowed and 1 <= factor <= epsilon**k:
            return None
        a, b = max(pairs, key=lambda pair: mechanism.condition(event).ratio([pair]))
        return (
            f"M{a} = ({told(mechanism[a])}), M{b} = ({told(mechanism[b])}), S* = {set(event)}: "
            f"e^(k epsilon) = {epsilon**k} becomes {after}"
        )

    return case


def _trivial(*, all_outputs: bool) -> Case:
    """Example 5.1, with S* all outputs, or the range of the query as equation 2.1 has it."""

    def case(draws: Draws) -> str | None:
        n = draws.integer(1, 4)
        a = draws.fraction()
        reach = range(-6, n + 7)
        mechanism = FiniteMechanism({s: double_geometric(a, reach, centre=s) for s in range(n + 1)})
        pairs = [(s, s + 1) for s in range(n)]
        event = set(reach) if all_outputs else set(range(n + 1))
        after = mechanism.condition(event)
        exact = after.ratio(pairs)
        if exact <= 1 / a if not all_outputs else after == mechanism:
            return None
        return (
            f"a count of 0 to {n}, double geometric noise with a = {a}: M* is M given 0 to {n}, "
            f"ratio 1/a = {1 / a} becomes {exact}"
        )

    return case


def rounding(a: Probability, low: int, high: int) -> tuple[FiniteMechanism, list[Pair]]:
    """Return Example 5.2 for counts from `low` to `high`: M* by count, and neighbouring counts."""
    counts = range(low, high + 1)
    groups = {c: -(-c // 10) for c in counts}
    values = sorted(set(groups.values()))
    mechanism = FiniteMechanism({c: double_geometric(a, values, centre=groups[c]) for c in counts})
    return mechanism, [(c, c + 1) for c in range(low, high)]


def _secret(*, one_group: bool) -> Case:
    """Example 5.2; the control lets the invariant hold two groups."""

    def case(draws: Draws) -> str | None:
        a = draws.fraction()
        low = 10 * draws.integer(0, 8) + 1
        high = low + (9 if one_group else 19)
        mechanism, pairs = rounding(a, low, high)
        ratio = mechanism.ratio(pairs)
        if ratio == 1:
            return None
        return f"a = {a}, {low} to {high} persons: ratio {ratio}"

    return case


def two_bins(a: Probability, records: int) -> FiniteMechanism:
    """Return Example 4.1: both bins with noise of the ratio a, conditioned on their true total.

    Noise goes round a circle more than twice as long as the answers, so that no ratio is reached
    by going round.
    """
    size = 2 * records + 3
    queries = {x: (records - sum(x), sum(x)) for x in cube(records)}
    mechanism = cyclic_mechanism(cyclic_geometric(a, size), queries, size=size)
    return mechanism.condition(lambda z: sum(z) % size == records)


def _still_neighbours(draws: Draws) -> str | None:
    """Section 5.1: the fixed total of Example 4.1 leaves no pairs at distance 1."""
    records = draws.integer(1, 4)
    # the total of both bins is the number of records, whatever they are
    kept = [x for x in cube(records) if (records - sum(x)) + sum(x) == records]
    found = neighbourhood(kept, hamming)
    if found.state == "disrupted":
        return None
    a, b = found.pairs[0]
    return (
        f"bins of the records: {a[0] if records == 1 else a} in one dataset, "
        f"{b[0] if records == 1 else b} in the other; 1 record differs, and both have total "
        f"{records}"
    )


def _half(draws: Draws) -> str | None:
    """Section 5.1: gamma = -1/2 at k = 2 for Example 4.1."""
    loss = _loss(draws, 2)
    return None if loss[0] == loss[1] else loss[2]


def _loss(draws: Draws, k: int) -> tuple[Probability, Probability, str]:
    """Return ratio at distance k, the one for gamma = -1/2, and both in words."""
    a = Fraction(1, draws.integer(2, 5))
    mechanism = two_bins(a, 2)
    ratio = mechanism.ratio(apart(cube(2), k))
    epsilon = 1 / a**2
    # exp((1 + gamma) k epsilon) with k = 2 and gamma = -1/2
    words = f"a = {a}: e^epsilon = {epsilon}, ratio {ratio} at distance {k}"
    return ratio, epsilon, words


def _none(*, conditioned: bool) -> Case:
    """Example 4.1 has gamma = 0 at every distance; the control is a bounded release."""

    def case(draws: Draws) -> str | None:
        a = Fraction(1, draws.integer(2, 4))
        k = draws.integer(1, 2)
        if conditioned:
            ratio = two_bins(a, 2).ratio(apart(cube(2), k))
        else:
            ratio = pinned_total(a, cells=2, total=2).ratio ** k
        return None if ratio == (1 / a**2) ** k else f"a = {a}, k = {k}: ratio {ratio}"

    return case


def _add_remove(steps: int) -> Case:
    """Compare the loss of a moved record with so many additions or removals."""

    def case(draws: Draws) -> str | None:
        a = Fraction(1, draws.integer(2, 5))
        n = draws.integer(1, 3)
        size = 2 * n + 5
        # counts (n, 0), a record less, a record more in the other bin
        answers = {"start": (n, 0), "less": (n - 1, 0), "moved": (n - 1, 1)}
        mechanism = cyclic_mechanism(cyclic_geometric(a, size), answers, size=size)
        once = mechanism.ratio([("start", "less"), ("less", "moved")])
        after = mechanism.condition(lambda z: sum(z) % size == n).ratio([("start", "moved")])
        return None if after == once**steps else f"a = {a}, n = {n}: {once} once, {after} for both"

    return case


def _nominal(gamma: Fraction) -> Case:
    """Equation 2.4 at k = 2 with add-remove neighbours, epsilon that of a substituted record."""

    def case(draws: Draws) -> str | None:
        root = draws.integer(2, 5)
        # e^epsilon = root^4, so that e^(epsilon / 2) is whole
        a = Fraction(1, root**2)
        n = draws.integer(1, 3)
        size = 2 * n + 5
        answers = {"start": (n, 0), "moved": (n - 1, 1)}
        mechanism = cyclic_mechanism(cyclic_geometric(a, size), answers, size=size)
        after = mechanism.condition(lambda z: sum(z) % size == n).ratio([("start", "moved")])
        allowed = Fraction(root) ** int(4 * 2 * (1 + gamma))
        return None if after <= allowed else f"a = {a}, n = {n}: {after}, allowed {allowed}"

    return case


def _double(*, bound: bool) -> Case:
    """One pinned total and no negative cell: ratio at most 2 e^epsilon - 1."""

    def case(draws: Draws) -> str | None:
        under = draws.integer(2, 20)
        a = Fraction(draws.integer(1, under - 1), under)
        cells, total = draws.integer(2, 4), draws.integer(1, 6)
        found = pinned_total(a, cells=cells, total=total)
        allowed = 2 / a**2 - 1 if bound else 1 / a**2
        if found.ratio <= allowed:
            return None
        return (
            f"a = {a}, {cells} cells, total {total}: e^epsilon = {1 / a**2} becomes {found.ratio} "
            f"between {found.pair[0]} and {found.pair[1]}"
        )

    return case


def _disrupted(*, mandated: bool) -> Case:
    """Look at what is left of the neighbours once the sum of the records is mandated, or is not."""

    def case(draws: Draws) -> str | None:
        records = draws.integer(1, 4)
        total = draws.integer(0, records)
        kept = [x for x in cube(records) if sum(x) == total or not mandated]
        found = neighbourhood(kept, hamming)
        state = "destroyed" if total in (0, records) else "disrupted"
        distance = None if state == "destroyed" else 2
        if (found.state, found.distance, set(found.isolated)) == (state, distance, set(kept)):
            return None
        return f"{records} records, sum {total}: {found.state} at distance {found.distance}"

    return case


CLAIMS = (
    Claim(
        "Gong and Meng (2020), Theorem 2.1",
        "If datasets that differ in k records both satisfy the invariant, M* loses at most (1 + "
        "gamma) k epsilon, where equation 2.5 gives a gamma from 0 to 1.",
        "the paper",
        True,
        _theorem("bound"),
        _theorem("gamma = 0"),
    ),
    Claim(
        "Gong and Meng (2020), Theorem 2.1, gamma = 1",
        "M* loses at most twice as much as M.",
        "the paper",
        True,
        _theorem("gamma = 1"),
        _theorem("gamma = 0"),
    ),
    Claim(
        "Two Views, Table 1, conditioning is not privacy preserving",
        "Conditioning loses no more than before.",
        "the paper denies it",
        False,
        _theorem("gamma = 0"),
    ),
    Claim(
        "Gong and Meng (2020), one pinned total and no negative cell",
        "For per-cell double geometric noise and one record substituted, the loss is at most "
        "log(2 e^epsilon - 1).",
        "ours",
        True,
        _double(bound=True),
        _double(bound=False),
    ),
    Claim(
        "Gong and Meng (2020), Example 5.1",
        "An invariant that every output meets changes nothing: gamma = 0.",
        "the paper",
        True,
        _trivial(all_outputs=True),
        _trivial(all_outputs=False),
    ),
    Claim(
        "Gong and Meng (2020), Example 5.1, S* by equation 2.1",
        "If every dataset satisfies the invariant, M* is conditioned on all values of the query. "
        "Then M* loses no more than M: gamma = 0.",
        "the paper, read otherwise",
        False,
        _trivial(all_outputs=False),
    ),
    Claim(
        "Gong and Meng (2020), Example 5.2",
        "If the query is a count in tens, rounded up, and its value is mandated, M* is 0-private: "
        "gamma = -1.",
        "the paper",
        True,
        _secret(one_group=True),
        _secret(one_group=False),
    ),
    Claim(
        "Gong and Meng (2020), section 5.1, Example 4.1 disrupts",
        "With the fixed total of Example 4.1, no two datasets differ in 1 record.",
        "the paper",
        False,
        _still_neighbours,
    ),
    Claim(
        "Gong and Meng (2020), section 5.1, gamma = -1/2",
        "In Example 4.1, M* loses epsilon if k = 2 records are substituted, so gamma = -1/2.",
        "the paper",
        False,
        _half,
    ),
    Claim(
        "Gong and Meng (2020), section 5.1, gamma = -1/2 for add-remove neighbours",
        "If a record is removed and then added, k = 2. M loses half of the epsilon of Example 4.1 "
        "at each step, so M* loses epsilon in all. With this epsilon, equation 2.4 gives gamma = "
        "-1/2.",
        "the paper, read otherwise",
        True,
        _nominal(Fraction(-1, 2)),
        _nominal(Fraction(-3, 4)),
    ),
    Claim(
        "Gong and Meng (2020), section 5.1, Example 4.1 corrected",
        "In Example 4.1, M* loses exactly k epsilon at k = 1 and at k = 2: gamma = 0.",
        "ours: corrected",
        True,
        _none(conditioned=True),
        _none(conditioned=False),
    ),
    Claim(
        "Gong and Meng (2020), section 5.1, add-remove neighbours",
        "If a record is removed and then added, and epsilon is M's loss at one step, M* loses "
        "exactly 2 epsilon: gamma = 0.",
        "ours",
        True,
        _add_remove(2),
        _add_remove(1),
    ),
    Claim(
        "Gong and Meng (2020), section 5.1, disrupted and destroyed",
        "If records are numbers and their sum is mandated, no two datasets differ in exactly one "
        "record. If the sum is the smallest or largest possible, no two datasets differ at all.",
        "ours",
        True,
        _disrupted(mandated=True),
        _disrupted(mandated=False),
    ),
)
