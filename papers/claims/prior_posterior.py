"""Gong and Meng (2020): prior against posterior, Theorem 1.3, and knowing nothing, section 5.3."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator, Sequence
from fractions import Fraction
from itertools import combinations
from typing import Literal

from congenial.belief.finite_mechanism import FiniteMechanism
from congenial.belief.finite_noise import double_geometric
from congenial.belief.vacuous import Vacuous, dilation
from congenial.belief.worlds import Belief, Probability
from papers.claims.claim import (
    Case,
    Claim,
    listed,
    told,
)
from papers.claims.congenial_dp import (
    OUTPUTS,
    Records,
    apart,
    cube,
)
from papers.claims.draws import Draws

COUNTS = (0, 1, 2)


def _reports(outputs: Sequence[Hashable]) -> Iterator[frozenset[Hashable]]:
    for size in range(1, len(outputs) + 1):
        yield from map(frozenset, combinations(outputs, size))


def _first(belief: Belief) -> Belief:
    """Belief about the first record."""
    return belief.then(lambda x: x[0])


def posterior(prior: Belief, mechanism: FiniteMechanism, report: Collection[Hashable]) -> Belief:
    """Belief about the dataset after a report."""
    return Belief.from_weights(
        {x: prior[x] * mechanism[x].probability(report) for x in prior.worlds if prior[x]}
    )


def _sharpened(prior: Belief, mechanism: FiniteMechanism) -> Probability:
    """Largest change, up or down, of the first record's odds against the prior."""
    before = _first(prior)
    worst: Probability = Fraction(1)
    for report in _reports(OUTPUTS):
        after = _first(posterior(prior, mechanism, report))
        for value in before.support:
            change = after[value] / before[value]
            worst = max(worst, change, 1 / change)
    return worst


Others = Literal["fixed", "independent", "any"]


def _prior(draws: Draws, datasets: list[Records], *, others: Others) -> Belief:
    """Draw a belief about the database, by what it says of the other records."""
    if others == "any":
        return draws.belief(datasets, most=20)
    single = [draws.belief((0, 1), most=20) for _ in datasets[0]]
    if others == "fixed":
        single[1:] = [Belief({draws.integer(0, 1): 1}) for _ in single[1:]]
    law: dict[Records, Probability] = {}
    for x in datasets:
        law[x] = Fraction(1)
        for value, belief in zip(x, single, strict=True):
            law[x] = law[x] * belief[value]
    return Belief(law)


def _theorem(others: Others) -> Case:
    """Theorem 1.3 for priors about one record, about independent ones, or about the database."""

    def case(draws: Draws) -> str | None:
        whole = cube(2)
        a = draws.fraction()
        noisy = {x: double_geometric(a, COUNTS, centre=sum(x)) for x in whole}
        free = {x: draws.belief(OUTPUTS, zeros=False) for x in whole}
        mechanism = FiniteMechanism(draws.choice([noisy, free]))
        epsilon = mechanism.ratio(apart(whole, 1))
        prior = _prior(draws, whole, others=others)
        change = _sharpened(prior, mechanism)
        if change <= epsilon:
            return None
        laws = ", ".join(f"M{x} = ({told(mechanism[x])})" for x in whole if prior[x])
        return f"prior ({told(prior)}), {laws}: e^epsilon = {epsilon}, a factor of {change}"

    return case


def _constrained(*, by_record: bool) -> Case:
    """The interval after Theorem 2.1, for a prior restricted to the datasets that conform.

    With `by_record` the other records are known.
    """

    def case(draws: Draws) -> str | None:
        whole = cube(2)
        # noise on the sum of the records, for which two records tell twice as much as one
        a = draws.fraction()
        mechanism = FiniteMechanism({x: double_geometric(a, COUNTS, centre=sum(x)) for x in whole})
        kept = [x for x in whole if draws.integer(0, 2)]
        pairs = apart(kept, 1)
        event = draws.choice([frozenset(COUNTS), draws.event(COUNTS)])
        if not pairs:
            return None
        held = mechanism.condition(event)
        prior = _prior(draws, whole, others="independent")
        if by_record:
            known = draws.integer(0, 1)
            kept = [x for x in kept if x[1] == known]
        if not kept or not prior.probability(set(kept)):
            return None
        prior = prior.condition(set(kept))
        before = _first(prior)
        # (1 + gamma) epsilon by equation 2.5
        met = {x: mechanism[x].probability(event) for x in whole}
        share = max(max(met[a] / met[b], met[b] / met[a]) for a, b in pairs)
        allowed = mechanism.ratio(apart(whole, 1)) * share
        for z in sorted(event):
            report = frozenset({z})
            after = _first(posterior(prior, held, report))
            for value in before.support:
                change = after[value] / before[value]
                if not 1 / allowed <= change <= allowed:
                    return (
                        f"X* = {kept}, prior ({told(prior)}), "
                        f"double geometric noise on the sum with a = {a} on {COUNTS}, S* = "
                        f"{listed(event)}, report {z}: allowed from {1 / allowed} to {allowed}, a "
                        f"factor of {change}"
                    )
        return None

    return case


def _suppressed(*, same: bool) -> Case:
    """Equation 1.7: the posterior is the prior under every law that ignores the data.

    The control lets the unknown law differ from dataset to dataset.
    """

    def case(draws: Draws) -> str | None:
        prior = draws.belief((0, 1, 2))
        outputs = ("a", "b")
        report = draws.choice([("a",), ("b",), ("a", "b")])
        nothing = Vacuous(outputs)
        bounds = dilation(prior, outputs, report, same=same)
        fine = nothing.posterior(prior, report) == prior and all(
            bound == (prior[world], prior[world]) for world, bound in bounds.items()
        )
        if fine:
            return None
        return f"prior ({told(prior)}), report {report}: " + ", ".join(
            f"{world} from {low} to {high}" for world, (low, high) in bounds.items()
        )

    return case


def _stays_vacuous(*, precise: bool) -> Case:
    """Equation 5.2 after conditioning; the control asks the same of an ordinary probability."""

    def case(draws: Draws) -> str | None:
        worlds = tuple(range(draws.integer(2, 4)))
        report = draws.event(worlds)
        law = draws.belief(worlds, zeros=False).condition(report)
        nothing = Vacuous(worlds).condition(report)
        lower = law.probability if precise else nothing.lower
        upper = law.probability if precise else nothing.upper
        for event in _reports(sorted(report)):
            other = report - event
            if upper(event) != 1 or upper(event) + lower(other) != 1 or lower(event) != (not other):
                return f"({told(law)}), event {set(event)}"
        return None

    return case


CLAIMS = (
    Claim(
        "Gong and Meng (2020), Theorem 1.3",
        "For every prior about a record, the others held fixed as in the proof, a report changes "
        "the probability of its value by at most a factor e^epsilon.",
        "the paper",
        True,
        _theorem("fixed"),
        _theorem("any"),
    ),
    Claim(
        "Gong and Meng (2020), Theorem 1.3, independent records",
        "For every prior under which the records are independent, a report changes the "
        "probability of a record's value by at most a factor e^epsilon.",
        "ours: stronger",
        True,
        _theorem("independent"),
        _theorem("any"),
    ),
    Claim(
        "Gong and Meng (2020), Theorem 1.3, every prior about the database",
        "For every prior about the database, even if unknown records depend on this one, a "
        "report changes the probability of its value by at most a factor e^epsilon.",
        "the paper, read otherwise",
        False,
        _theorem("any"),
    ),
    Claim(
        "Gong and Meng (2020), after Theorem 2.1",
        "Given the invariant, a report changes the probability of a record's value by at most a "
        "factor e^((1 + gamma) epsilon), the others held fixed.",
        "the paper",
        True,
        _constrained(by_record=True),
        _constrained(by_record=False),
    ),
    Claim(
        "Gong and Meng (2020), after Theorem 2.1, other records unknown",
        "Given the invariant, a report changes the probability of a record's value by at most a "
        "factor e^((1 + gamma) epsilon), the others unknown, and independent but for the "
        "invariant.",
        "the paper, read otherwise",
        False,
        _constrained(by_record=False),
    ),
    Claim(
        "Gong and Meng (2020), Definition 1.4 and equation 1.7",
        "If a release is suppressed, the posterior equals the prior, by Dempster's rule and under "
        "every law that ignores the data.",
        "the paper",
        True,
        _suppressed(same=True),
        _suppressed(same=False),
    ),
    Claim(
        "Gong and Meng (2020), section 5.3, every rule",
        "The posterior equals the prior even if nothing is known of the release's law given each "
        "dataset.",
        "ours: stronger",
        False,
        _suppressed(same=False),
    ),
    Claim(
        "Gong and Meng (2020), equation 5.2",
        "The vacuous lower probability stays vacuous when it is conditioned.",
        "ours",
        True,
        _stays_vacuous(precise=False),
        _stays_vacuous(precise=True),
    ),
)
