"""The guarantee of a release, as it follows from the noise and the invariants."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from fractions import Fraction

import numpy as np

from congenial.accounting.loss.gaussian_loss import gaussian_epsilon
from congenial.accounting.loss.inequalities import (
    NONE,
    PROVED,
    TRIVIAL,
    WHOLE,
    Pairs,
    bounded_loss,
    bounded_pairs,
)
from congenial.accounting.loss.together import Together, moving_together, together_in_union
from congenial.accounting.loss.zero_concentrated import zcdp_epsilon
from congenial.accounting.neighbours.compared import Compared, compared_by_all, in_records
from congenial.accounting.neighbours.counting import Counted
from congenial.accounting.neighbours.joint_moves import (
    MOST_RECORDS,
    JointMoves,
    check_neighbours,
    forced_moves,
)
from congenial.accounting.neighbours.leeway import may_cross, with_implied
from congenial.accounting.neighbours.nested import nested_sums
from congenial.accounting.neighbours.scope import covered, crossing, shared, unprotected
from congenial.accounting.neighbours.single_moves import (
    Neighbours,
    WorstMove,
    changed_entries,
    costs_through,
    one_sided_costs,
    worst_move,
)
from congenial.errors import PrivacyError
from congenial.invariants.resolved import ResolvedInvariant, hull
from congenial.kernels.numerics import laws
from congenial.noise.additive import Additive
from congenial.types import BoolArray, FloatArray
from congenial.wording import html_facts, rounded_up

__all__ = [
    "Guarantee",
    "Neighbours",
    "conditioned_guarantee",
    "conditioned_pairs",
    "imaged_guarantee",
    "mixed_guarantee",
    "union_guarantee",
    "with_sampler_error",
]

# Sources of gamma besides those of conditioning.
POST_PROCESSED = "computing with noisy counts costs no privacy"
TWO_BINS = "imaging of two bins: post-processing (Gong and Meng, Theorem A.1)"
# The delta at which a zCDP guarantee is stated by default.
ZCDP_DELTA = 1e-6
# Largest meaningful epsilon: at 20, odds of one to a million can become 485 to one.
MEANINGFUL = 20.0
# Largest epsilon whose exponential is written out.
_LARGEST = 700.0
# Laws whose loss under bounds is proved; for others the trivial factor is charged.
_SOURCES = {laws.LAPLACE: PROVED, laws.GAUSSIAN: WHOLE}
# Relative difference from the trivial bound below which a bound is called trivial.
ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class Moves:
    """Changes between the neighbouring datasets of one guarantee."""

    # The pair with the largest loss before bounds; None if several records move at once.
    worst: WorstMove | None
    changes: BoolArray  # shape (n,): Entries that some pair changes.
    pairs: Pairs | None  # The loss that bounds add for each pair; None if bounds add none.


@dataclass(frozen=True, repr=False)
class Guarantee:
    """A differential privacy guarantee and everything it depends on.

    Attributes
    ----------
    epsilon, delta : float
        The probability of any event changes by at most a factor exp(epsilon), plus delta, between
        neighbouring datasets.
    neighbours : {"substitute", "add-remove"}
    gamma : float
        Conditioning on inequalities multiplies the loss by 1 + gamma (Gong and Meng, Theorem 2.1).
    gamma_source : str
        The proof or theorem behind gamma.
    base_epsilon : float
        Loss of the worst neighbouring pair before gamma.
    rho : float or None
        The zCDP parameter, for Gaussian noise.
    unprotected : tuple of str
        Facts published outside the guarantee: exactly, or with noise although they are the same in
        all neighbouring datasets.
    covered : str
        The datasets that the guarantee compares.
    sampler_error : float
        Total variation between a draw and its law; delta includes it.
    ideal_only : bool
        Whether the claim holds for real-number noise only, not for floating-point draws.
    records : int
        Number of records that change; more than 1 for a group, or if `at_once`.
    at_once : bool
        Whether the counts published exactly let no record change alone. The guarantee is then for
        datasets that differ in up to `records` records, replaced together; `records` is the least
        number with which every free count can change.
    whole_orders : bool
        Whether rho holds at the Rényi orders 2, 3, … only, as under bounds.
    compared : Compared or None
        The datasets that the guarantee compares; `compose` needs to know which of them several
        guarantees share. None if they are not known.
    moves : Moves or None
        The changes between neighbouring datasets, from which the guarantee is stated in full.
    """

    epsilon: float
    delta: float
    neighbours: Neighbours
    gamma: float
    gamma_source: str
    base_epsilon: float
    rho: float | None
    unprotected: tuple[str, ...]
    covered: str
    sampler_error: float
    ideal_only: bool = False
    records: int = 1
    at_once: bool = False
    whole_orders: bool = False
    compared: Compared | None = field(default=None, compare=False, repr=False)
    moves: Moves | None = field(default=None, compare=False, repr=False)

    @property
    def sentence(self) -> str:
        """The guarantee as a sentence."""
        what = "one record" if self.records == 1 else f"{self.records} records, one after another,"
        if self.at_once:
            what = (
                f"{self.records} records at once, the fewest that keep what is published exactly,"
            )
        change = (
            f"replacing {what} by {'another' if self.records == 1 else 'others'}"
            if self.neighbours == "substitute"
            else f"adding or removing {what}".removesuffix(",")
        )
        plus = f", plus {rounded_up(self.delta, 2)}" if self.delta else ""
        text = (
            f"{self.short}-differentially private: {change} changes the probability of any event "
            f"by at most a factor of {self._factor}{plus}, among {self.covered}."
        )
        if self.unprotected:
            text += f" Not protected: {'; '.join(self.unprotected)}."
        text += self.vacuous and f" {self.vacuous}"
        if self.ideal_only:
            text += (
                " This holds for real-number noise only; its floating-point draws are for studies."
            )
        return text

    @property
    def short(self) -> str:
        """Epsilon, with delta unless delta is 0."""
        epsilon = rounded_up(self.epsilon, 6)
        return f"({epsilon}, {rounded_up(self.delta, 2)})" if self.delta else epsilon

    @property
    def _factor(self) -> str:
        """The exponential of epsilon, rounded up, such that it is not 1."""
        if self.epsilon > _LARGEST:
            return f"exp({rounded_up(self.epsilon, 6)})"
        factor = Decimal(self.epsilon).exp()
        small = (factor - 1).adjusted() if factor > 1 else 0
        return rounded_up(factor, 3 if small >= -1 else 2 - small)

    @property
    def vacuous(self) -> str:
        """Why a guarantee promises nothing; empty if it promises something."""
        if self.delta >= 1.0:
            return "A delta of 1 allows any release, so this promises nothing."
        if self.epsilon > MEANINGFUL:
            return (
                f"A factor above exp({MEANINGFUL:g}), half a billion, lets a reader be certain of "
                "a record, so this promises nothing."
            )
        return ""

    def __str__(self) -> str:
        """Return the sentence."""
        return self.sentence

    def __repr__(self) -> str:
        rho = "" if self.rho is None else f", rho={rounded_up(self.rho, 6)}"
        return (
            f"Guarantee(epsilon={rounded_up(self.epsilon, 6)}, "
            f"delta={rounded_up(self.delta, 2)}{rho}, "
            f"neighbours={self.neighbours!r})"
        )

    def _repr_html_(self) -> str:
        facts: dict[str, object] = {
            "epsilon": rounded_up(self.epsilon, 6),
            "delta": rounded_up(self.delta, 2),
            **({} if self.rho is None else {"rho (zCDP)": rounded_up(self.rho, 6)}),
            "neighbours": self.neighbours,
            "records that change": self.records,
            "epsilon before bounds": rounded_up(self.base_epsilon, 6),
            "gamma": f"{self.gamma:.6g} ({self.gamma_source})",
            "not protected": "; ".join(self.unprotected) or "nothing is published exactly",
        }
        return html_facts("Guarantee", facts, (self.sentence,))


def with_sampler_error(epsilon: float, delta: float, error: float) -> float:
    """Add (1 + e^epsilon) * error to delta."""
    return min(1.0, delta + (1.0 + math.exp(min(epsilon, 700.0))) * error)


def conditioned_guarantee(
    mechanism: Additive,
    resolved: ResolvedInvariant,
    neighbours: Neighbours,
    *,
    sampler_error: float,
    one_sided: bool = False,
    delta: float = ZCDP_DELTA,
) -> Guarantee:
    """Guarantee of conditioning a mechanism on an invariant.

    Pure noise under equalities costs nothing extra (Two Views, Lemma 3.3). The cost of bounds is
    proved in `proofs/inequalities.md`; other inequalities at most double the loss (Gong and Meng,
    Theorem 2.1 with gamma = 1). For Gaussian noise under nested bounds, zCDP is proved at integer
    Rényi orders only (`proofs/gaussian-bounds.md`); bounds cost nothing else.

    If sums let no record move alone, neighbours move several records together (`joint_moves`,
    which raises PrivacyError if it cannot decide which).
    """
    source = NONE
    if resolved.has_inequalities:
        source = _SOURCES.get(mechanism.noise.kind, TRIVIAL)
    if source == TRIVIAL and mechanism.noise.measure == "zcdp":
        raise PrivacyError(
            f"no bound is proved for {mechanism.noise.name} noise conditioned on bounds; use "
            "DiscreteLaplace, or congenial.image."
        )
    if source == WHOLE and mechanism.noise.discrete and not nested_sums(resolved):
        raise PrivacyError(
            f"no bound is proved for {mechanism.noise.name} noise conditioned on bounds if linear "
            "conditions are not sums of cells, or cross each other or the tree; use "
            "DiscreteLaplace, or sums of which any two are disjoint or one contains the other."
        )
    return _guarantee(mechanism, resolved, neighbours, source, sampler_error, one_sided, delta)


def union_guarantee(
    mechanism: Additive, alternatives: Sequence[ResolvedInvariant], neighbours: Neighbours
) -> Guarantee:
    """Guarantee of conditioning a mechanism on a disjoint union, without the sampler's error.

    The release reveals which alternative holds, and neighbours may satisfy different ones. So the
    union is less private than its parts (against Two Views, Theorem 3.5, part 2). It is one public
    set, which at most doubles the loss (Gong and Meng, Theorem 2.1). If all counts follow from one
    of them, any public set costs less (`proofs/inequalities.md`, one line). Neighbours agree on the
    entries that all alternatives determine together. If no neighbours satisfy different
    alternatives, they also agree on the entries that each alternative determines.
    """
    if mechanism.noise.measure == "zcdp":
        raise PrivacyError(
            f"no bound is proved for {mechanism.noise.name} noise conditioned on a union; use "
            "DiscreteLaplace, or condition on one alternative."
        )
    whole = replace(hull(alternatives), pinned=alternatives[0].pinned)
    counted = mechanism.counted or whole.counted
    grid, change = mechanism.granularity, mechanism.per_record
    several = MOST_RECORDS if whole.equalities[1].size or crossing(whole, counted) else 1
    apart = not may_cross(alternatives, counted, grid=grid, change=several * change)
    if apart:
        found = [
            with_implied(resolved, counted, grid=grid, change=change) for resolved in alternatives
        ]
        check_neighbours(found, counted, neighbours)
        whole = replace(whole, pinned=hull(found).pinned)
    stated = _guarantee(mechanism, whole, neighbours, TRIVIAL, 0.0)
    if grid == change and together_in_union(alternatives).one_line:
        base = stated.base_epsilon
        loss = float(bounded_loss(base, base))
        gamma = loss / base - 1.0 if base > 0.0 else 0.0
        stated = replace(stated, epsilon=loss, gamma=gamma, gamma_source=PROVED)
    text = f"datasets that satisfy {'the same' if apart else 'an'} alternative of the invariant"
    if "agree" in stated.covered:
        text += " and agree on everything that is published exactly"
    return replace(stated, covered=text)


def imaged_guarantee(
    mechanism: Additive,
    resolved: ResolvedInvariant,
    neighbours: Neighbours,
    *,
    sampler_error: float,
    one_sided: bool = False,
    delta: float = ZCDP_DELTA,
) -> Guarantee:
    """Guarantee of projecting a mechanism's output onto an invariant.

    Neighbouring datasets agree on the exact counts, so the projection is post-processing (Two
    Views, Lemma 3.7). They need not satisfy the invariant's bounds. The arguments are those of
    `conditioned_guarantee`.
    """
    return _guarantee(
        mechanism,
        resolved.exact_part,
        neighbours,
        POST_PROCESSED,
        sampler_error,
        one_sided,
        delta,
    )


def conditioned_pairs(
    mechanism: Additive,
    resolved: ResolvedInvariant,
    neighbours: Neighbours,
    *,
    one_sided: bool = False,
) -> Pairs:
    """Cost of bounds for pure noise, for every pair of neighbours; `conditioned_guarantee`."""
    change, counted = mechanism.per_record, mechanism.counted or resolved.counted
    together = moving_together(resolved)
    resolved = with_implied(resolved, counted, grid=mechanism.granularity, change=change)
    # a pinned query never changes between neighbours, whatever its noise
    cost = np.where(resolved.pinned, 0.0, change / mechanism.scales)
    joint = None if one_sided else forced_moves(cost, resolved, counted, neighbours)
    return _pairs(mechanism, cost, resolved, together, neighbours, joint, one_sided=one_sided)


def _pairs(
    mechanism: Additive,
    cost: FloatArray,
    resolved: ResolvedInvariant,
    together: Together,
    neighbours: Neighbours,
    joint: JointMoves | None,
    *,
    one_sided: bool,
) -> Pairs:
    counted = mechanism.counted or resolved.counted
    change, grid = mechanism.per_record, mechanism.granularity
    if joint is None:
        through = costs_through(cost, resolved, counted, neighbours, one_sided=one_sided)
    else:
        through = np.where(joint.changes, joint.cost, -np.inf)
        if joint.largest > 1:
            # if changes differ in size, a bound may stop a change after one step of the grid
            cost, change = cost * grid / change, grid
    return bounded_pairs(cost, through, resolved, together, change=change, grid=grid)


def _rounding_up(counted: Counted, records: int) -> float:
    """Return a factor above the rounding of a summed cost, so that no stated loss is too small.

    Each of at most twice as many costs as there are levels or blocks, for each record, is off by a
    unit of rounding; so is each addition, and what follows takes a dozen units at most.
    """
    depth = 1 if counted is None else counted.depth
    return 1.0 + (4 * records * depth + 16) * 2.0**-53


def _by_levels(
    mechanism: Additive, pinned: BoolArray, counted: Counted, neighbours: Neighbours
) -> float:
    """Return a bound on a record's loss under pure noise, in fractions, rounded up once.

    A record that moves changes at most two counts of a level or block. Where all of these have one
    scale, this bound is the loss itself.
    """
    if counted is None:
        return math.inf
    level, measured = counted.level, ~pinned & np.isfinite(mechanism.scales)
    least = np.full(int(level.max()) + 1, np.inf)
    np.minimum.at(least, level[measured], mechanism.scales[measured])
    change = Fraction(mechanism.per_record) * (2 if neighbours == "substitute" else 1)
    total = sum((change / Fraction(s) for s in least[np.isfinite(least)].tolist()), Fraction(0))
    near = float(total)
    return near if near >= total else math.nextafter(near, math.inf)


def _guarantee(
    mechanism: Additive,
    resolved: ResolvedInvariant,
    neighbours: Neighbours,
    source: str,
    sampler_error: float,
    one_sided: bool = False,
    delta: float = ZCDP_DELTA,
) -> Guarantee:
    noise, change = mechanism.noise, mechanism.per_record
    if change < noise.granularity:
        raise PrivacyError(
            "one record changes a count by less than the granularity of the noise, so neighbouring "
            "datasets are not on the noise's grid; use a granularity of at most a record's change "
            "(1 by default)."
        )
    counted = mechanism.counted or resolved.counted
    given = resolved
    resolved = with_implied(resolved, counted, grid=mechanism.granularity, change=change)
    cost, power = change / mechanism.scales, 1
    if noise.measure == "zcdp":
        cost, power = 0.5 * cost**2, 2
    cost = np.where(resolved.pinned, 0.0, cost)
    joint = None if one_sided else forced_moves(cost, resolved, counted, neighbours, power=power)
    if joint is None:
        move = worst_move(cost, resolved, counted, neighbours)
        worst = move.cost
        changes = changed_entries(resolved, counted, neighbours, one_sided=one_sided)
    else:
        move, worst, changes = None, joint.cost, joint.changes
    if one_sided:
        worst = max(worst, float(one_sided_costs(cost, resolved, counted).max()))
    upwards = _rounding_up(counted, 1 if joint is None else joint.records)
    alone = joint is None and noise.measure == "pure"
    most = _by_levels(mechanism, resolved.pinned, counted, neighbours) if alone else math.inf
    worst = min(worst * upwards, most)
    rho: float | None = None
    pairs = None
    whole = source == WHOLE and noise.discrete
    if noise.measure == "pure":
        base, delta = worst, 0.0
        epsilon = (1.0 + (source == TRIVIAL)) * base
        if source == PROVED:
            together = moving_together(given)
            pairs = _pairs(
                mechanism, cost, resolved, together, neighbours, joint, one_sided=one_sided
            )
            base = max(base, min(pairs.worst * upwards, most))
            epsilon = max(base, pairs.loss() * upwards)
            if epsilon >= 2.0 * base * (1.0 - ROUNDING):
                source, epsilon = TRIVIAL, 2.0 * base
    else:
        rho = worst
        base = zcdp_epsilon(rho, delta)
        epsilon = zcdp_epsilon(rho, delta, whole_orders=whole)
        if not noise.discrete and source != WHOLE and rho > 0.0 and delta < 1.0:
            # real Gaussian noise, given equalities or projected: `proofs/equalities.md`
            exact = gaussian_epsilon(sigma=1.0, delta=delta, sensitivity=math.sqrt(2.0 * rho))
            base = epsilon = min(epsilon, exact)
    gamma = 1.0 if source == TRIVIAL else epsilon / base - 1.0 if base > 0.0 else 0.0
    if whole:  # close to 0, where machines round differently
        gamma = round(gamma, 9)
    error = 0.0 if not noise.discrete else sampler_error
    agree, bounded = shared(resolved)
    entries = mechanism.workload or resolved.workload or counted
    return Guarantee(
        epsilon=epsilon,
        delta=with_sampler_error(epsilon, delta, error),
        neighbours=neighbours,
        gamma=gamma,
        gamma_source=source,
        base_epsilon=base,
        rho=rho,
        unprotected=unprotected(mechanism, resolved, neighbours, changes),
        covered=covered(agree=agree, bounded=bounded),
        sampler_error=error,
        ideal_only=not noise.discrete,
        records=1 if joint is None else joint.records,
        at_once=joint is not None,
        whole_orders=whole,
        compared=in_records(resolved, entries, neighbours, change=change, grid=noise.granularity),
        moves=Moves(move, changes, pairs),
    )


def mixed_guarantee(parts: Sequence[Guarantee], weights: Sequence[float]) -> Guarantee:
    """Guarantee of one of several mechanisms, chosen with public weights.

    A mixture's likelihood is a mean of its parts' likelihoods. So its loss is at most the largest
    loss of a part, and its delta at most the mean delta.
    """
    first = parts[0]
    if len({(part.neighbours, part.covered, part.unprotected) for part in parts}) > 1:
        raise PrivacyError(
            "the mixed mechanisms publish different entries exactly, so they share no guarantee; "
            "mix mechanisms under the same invariant."
        )
    worst = max(parts, key=lambda part: part.epsilon)
    each = [part.compared for part in parts]
    return replace(
        worst,
        delta=min(1.0, math.fsum(w * p.delta for w, p in zip(weights, parts, strict=True))),
        rho=None,
        whole_orders=False,
        compared=compared_by_all(each, first.neighbours, at_once=first.at_once),
        sampler_error=max(part.sampler_error for part in parts),
        ideal_only=any(part.ideal_only for part in parts),
    )
