"""`audit(K, ...)`: test a mechanism against the guarantee that it states."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from congenial.accounting.guarantee import Guarantee, Neighbours
from congenial.accounting.mechanism import Mechanism
from congenial.auditing.budget import MOST_WORK, to_compute, to_draw
from congenial.auditing.computed import computed, may_compute
from congenial.auditing.enumerated import DATASETS, ENTRIES, can_enumerate, enumerated
from congenial.auditing.finding import Audit, Finding, Notify, Pair, ignore
from congenial.auditing.pairs import chosen_pairs, random_pairs, untouched
from congenial.auditing.simulation import screened, simulated
from congenial.auditing.space import Space, moved_at_once, space_of
from congenial.auditing.tilted import may_tilt, tilted
from congenial.errors import ArgumentError, UnsupportedError
from congenial.imaging.noisy import Moved
from congenial.randomness import Randomness, resolve, seeded
from congenial.types import Values

Method = Literal["auto", "exact", "statistical"]
Stage = Literal["enumerate", "compute", "draw"]
_STAGES: dict[Method, tuple[Stage, ...]] = {
    "auto": ("enumerate", "compute", "draw"),
    "exact": ("enumerate", "compute"),
    "statistical": ("draw",),
}

# Default draws of each dataset, fewer for images, each of which takes a projection; confidence.
DRAWS, IMAGES, CONFIDENCE = 50_000, 6_000, 0.999
# Fewest draws of a dataset that can refute a claim.
_LEAST_DRAWS = 100
# Values of the draws of one dataset: most by default, and most that are accepted.
_VALUES, _MOST_VALUES = 10_000_000, 250_000_000
# Fraction of the error probability (of refuting a true claim) for the check of delta.
_TILTED = 0.25
# Most random moves that are tried for a pair that the invariant allows.
_TRIES = 8


@dataclass(frozen=True)
class Effort:
    """Number of draws of each dataset, the confidence of a refutation, and the random source."""

    draws: int
    confidence: float
    source: Randomness
    notify: Notify = ignore  # Called with the name of each step as it begins.


def audit(
    mechanism: Mechanism,
    *,
    neighbours: Neighbours,
    method: Method = "auto",
    total: int = 3,
    pairs: Sequence[tuple[npt.ArrayLike, npt.ArrayLike]] | None = None,
    draws: int | None = None,
    confidence: float = CONFIDENCE,
    rng: Randomness | None = None,
    claim: Guarantee | None = None,
) -> Audit:
    """Test whether a mechanism keeps the guarantee that it states, by enumeration and by draws.

    The datasets are made up, so nothing confidential is needed and nothing is spent. For a plan,
    use `congenial.audit_plan`.

    Parameters
    ----------
    mechanism : Mechanism
        A result of `congenial.condition`, `image` or `mixture`, or any object with `sample` and
        `guarantee`; see `congenial.accounting.mechanism.Mechanism`.
    neighbours : {"substitute", "add-remove"}
    method : {"auto", "exact", "statistical"}
        "exact" enumerates the laws at all small datasets and computes losses from the law at pairs
        of any size. "statistical" draws. "auto" does all that is possible.
    total : int
        Most records of an enumerated dataset; "auto" takes fewer if there are many entries.
    pairs : sequence of pair of array_like, shape (n,) each, optional
        Neighbours to compare, as values of all queries. Needed if the mechanism's queries are
        unknown.
    draws : int, optional
        Draws of each dataset; by default 50,000, or 6,000 of images, and fewer for more than some
        hundred queries.
    confidence : float
        Draws refute a true claim with probability 1 - confidence at most.
    rng : Randomness, optional
        A seeded source by default, so that draws are reproducible simulations. With `secure()`
        draws are made as for real releases.
    claim : Guarantee, optional
        The claim to test instead of the mechanism's own `guarantee(neighbours)`. Under
        "substitute" it may also cover a record that enters, as with a row filter.

    Returns
    -------
    Audit

    Raises
    ------
    ArgumentError
        If an argument is not valid, or there are no pairs to compare.
    PrivacyError
        If the mechanism states no guarantee.
    UnsupportedError
        If "exact" is asked for and the laws cannot be enumerated.

    Notes
    -----
    An audit that passes proves the claim for the enumerated and computed pairs only; draws can only
    refute. Losses are computed for datasets with the shapes of worst pairs under bounds, and for
    random ones (`congenial.auditing.pairs`). Under Laplace noise the loss of such a pair is exact.
    Under Gaussian noise the divergences of integer orders are exact and are compared with rho, and
    draws give a lower bound on delta at the claim's epsilon (`congenial.auditing.tilted`). Draws
    first test every entry, then neighbours that differ at the entries with the largest losses.
    If the law is known, events are thresholds of the likelihood ratio, the most powerful test
    (Neyman and Pearson 1933); for long releases the ratio of the noise alone is used. Other events
    are tested too, because a sampler may not follow its law. Draws are also compared with the
    stated marginal laws and with the invariant.

    References
    ----------
    Ding, Wang, Wang, Zhang and Kifer (2018); Jagielski, Ullman and Oprea (2020), for bounds on
    epsilon from counts of an event.
    """
    space = space_of(mechanism)
    size = checked_draws(draws, mechanism, space)
    if method not in _STAGES:
        raise ArgumentError(f"method is {method!r}; give one of {', '.join(_STAGES)}.")
    _check_whole("total", total, 1)
    check_confidence(confidence)
    if claim is None and not hasattr(mechanism, "guarantee"):
        raise ArgumentError(
            f"`mechanism` is a {type(mechanism).__name__}, which states no guarantee; give a "
            "result of congenial.condition or image, or for a plan call congenial.audit_plan."
        )
    guarantee = mechanism.guarantee(neighbours) if claim is None else claim
    given = None if pairs is None else _checked_pairs(pairs, space)
    if space is not None and given is not None:
        at_once = moved_at_once(guarantee)
        _check_neighbours(given, space, neighbours, at_once, entering=claim is not None)
    effort = Effort(size, confidence, seeded(0) if rng is None else resolve(rng))
    compared = mechanism, space, guarantee, neighbours
    found = hold(*compared, stages=_STAGES[method], total=total, given=given, effort=effort)
    if not found.findings:
        raise UnsupportedError(
            "the law of this mechanism is not known, or its domain is too large to enumerate and "
            "no neighbours are known to compare; use method='statistical', or a smaller copy of it."
        )
    return found


def hold(
    mechanism: Mechanism,
    space: Space | None,
    guarantee: Guarantee,
    neighbours: Neighbours,
    *,
    stages: Sequence[Stage],
    total: int = 3,
    given: list[Pair] | None = None,
    further: Sequence[Pair] = (),
    effort: Effort,
) -> Audit:
    """Test a mechanism against a claim by some stages; the arguments are those of `audit`."""
    draws, confidence, source = effort.draws, effort.confidence, effort.source
    findings: list[Finding] = []
    say = effort.notify
    if "enumerate" in stages and space is not None:
        say("enumerating releases of small datasets")
        most = _affordable(mechanism, space, total, given, exact="draw" not in stages)
        if most is not None:
            findings += enumerated(mechanism, space, guarantee, neighbours, total=most, pairs=given)
    work = MOST_WORK
    hardest = [finding.worst for finding in findings[:1] if finding.worst is not None]
    if "compute" in stages and space is not None:
        compared, left_out = given, ""
        if compared is None:
            compared = [*hardest, *further]
            if may_compute(mechanism, space, guarantee):
                say("making up datasets")
                compared += chosen_pairs(space, neighbours, source)
                affordable = to_compute(mechanism, compared, work)
                compared, left_out, work = affordable.pairs, affordable.text, affordable.work
        worst = computed(mechanism, space, guarantee, compared, say, left_out=left_out)
        findings += worst
        hardest += [finding.worst for finding in worst if finding.worst is not None]
    if "draw" in stages:
        say("choosing datasets to draw at")
        screen, left_out = None, ""
        compared = given
        if compared is None:
            compared = [*hardest, *further]
            if space is not None:
                compared += space.hard_pairs(neighbours)
                if untouched(space, compared).any():
                    compared += itertools.islice(random_pairs(space, neighbours, source, _TRIES), 1)
                    screen = screened(mechanism, space, neighbours, draws, source)
                    compared += [] if screen is None else screen.hardest
            affordable = to_draw(mechanism, compared, draws, work)
            compared, left_out = affordable.pairs, affordable.text
        if not compared:
            raise ArgumentError(
                "no neighbouring datasets are known to compare; give pairs=[(x, other), ...]."
            )
        error = 1.0 - confidence
        if space is not None and may_tilt(mechanism, space, guarantee):
            findings += tilted(
                mechanism, space, guarantee, compared, draws, _TILTED * error, source
            )
            error *= 1.0 - _TILTED
        asked = mechanism, space, guarantee, compared, draws, error, source
        findings += simulated(*asked, screen, say, left_out)
    return Audit(guarantee, tuple(findings), confidence)


def _affordable(
    mechanism: Mechanism, space: Space, total: int, pairs: list[Pair] | None, *, exact: bool
) -> int | None:
    """Most records up to `total` that can be enumerated, None if none can."""
    if pairs is not None:
        both = np.array([x for pair in pairs for x in pair])
        return total if can_enumerate(mechanism, space, both) else None
    if space.entries.size > ENTRIES:
        return None
    size = next((t for t in range(total, 0, -1) if space.fits(t, DATASETS)), 0)
    if next(space.datasets(size), None) is None:  # `enumerated` refuses, if nothing else is asked
        return size if exact else None
    for records in range(size, 0, -1):
        datasets = np.array([*space.datasets(records)])
        if len(datasets) > 1 and can_enumerate(mechanism, space, datasets):
            return records
    return None


def checked_draws(draws: int | None, mechanism: Mechanism, space: Space | None) -> int:
    """Return the number of draws of each dataset; the default is smaller for long releases."""
    n = 1 if space is None else space.mechanism.n
    if _LEAST_DRAWS * n > _MOST_VALUES:
        raise ArgumentError(
            f"the mechanism has {n:,} counts, and {_LEAST_DRAWS} releases of them take "
            f"{_LEAST_DRAWS * n * 8 / 2**30:,.0f} GiB of memory; audit one of at most "
            f"{_MOST_VALUES // _LEAST_DRAWS:,} counts with the same noise."
        )
    if draws is None:
        most = IMAGES if isinstance(mechanism, Moved) else DRAWS
        return max(_LEAST_DRAWS, min(most, _VALUES // n))
    _check_whole("draws", draws, _LEAST_DRAWS)
    if draws * n > _MOST_VALUES:
        raise ArgumentError(
            f"draws is {draws:,}, and {draws:,} releases of {n:,} counts take "
            f"{draws * n * 8 / 2**30:,.0f} GiB of memory; give at most {_MOST_VALUES // n:,}."
        )
    return int(draws)


def _check_whole(name: str, value: int, least: int) -> None:
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not whole or value < least:
        raise ArgumentError(f"{name} is {value!r}; give a whole number of at least {least}.")


def check_confidence(confidence: float) -> None:
    """Refuse a confidence that is not between 0 and 1."""
    if not isinstance(confidence, float | np.floating) or not 0.0 < confidence < 1.0:
        raise ArgumentError(f"confidence is {confidence!r}; give a number between 0 and 1.")


def _checked_pairs(
    pairs: Sequence[tuple[npt.ArrayLike, npt.ArrayLike]], space: Space | None
) -> list[Pair]:
    """Return pairs of datasets as arrays."""
    found = []
    for at, pair in enumerate(pairs):
        arrays: list[Values] = [np.asarray(x) for x in pair]
        n = arrays[0].size if space is None else space.mechanism.n
        fits = len(arrays) == 2 and all(a.shape == (n,) and a.dtype.kind in "if" for a in arrays)
        if not fits or (arrays[0] == arrays[1]).all():
            raise ArgumentError(
                f"pairs[{at}] is no pair of different datasets; give two vectors of {n} values."
            )
        found.append((arrays[0], arrays[1]))
    return found


def _check_neighbours(
    pairs: list[Pair], space: Space, neighbours: Neighbours, at_once: int, *, entering: bool
) -> None:
    """Refuse pairs that a guarantee does not cover."""
    pinned = space.hull.pinned
    some = "one record" if at_once == 1 else f"at most {at_once} records"
    for at, (one, other) in enumerate(pairs):
        size = float(np.abs((other - one)[space.entries]).sum())
        moved = space.replaced(one, other) <= at_once and neighbours == "substitute"
        entered = size == 1.0 and (entering or neighbours == "add-remove")
        # a dataset is the sums of its own entries
        whole = all(np.array_equal(space.queries(x[space.entries]), x) for x in (one, other))
        agree = (one[pinned] == other[pinned]).all() and all(map(space.allows, (one, other)))
        if not ((moved or entered) and whole and agree):
            raise ArgumentError(
                f"pairs[{at}] is not covered by a guarantee for {neighbours!r}; give datasets that "
                f"satisfy the invariant, agree on what is published exactly and differ in {some}."
            )
