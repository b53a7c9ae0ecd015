"""`audit(K, ...)`: hold a mechanism to the guarantee that it states."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
import numpy.typing as npt

from congenial.accounting.guarantee import Guarantee, Neighbours
from congenial.auditing.drawn import Shares, epsilon_bound, law_distance, shared_out
from congenial.auditing.exact import DATASETS, ENTRIES, can_enumerate, enumerated
from congenial.auditing.finding import Audit, Auditable, Finding, Pair, Values
from congenial.auditing.space import Space, moved_at_once, space_of
from congenial.errors import ArgumentError, UnsupportedError
from congenial.imaging.image import Imaged
from congenial.imaging.topdown import TopDown
from congenial.randomness import Randomness, resolve, seeded

Method = Literal["auto", "exact", "statistical"]
METHODS: tuple[Method, ...] = ("auto", "exact", "statistical")

# Draws of each dataset where none are asked for: each image is a projection of its own.
DRAWS, IMAGES, CONFIDENCE = 20_000, 6_000, 0.999
# Fewer draws of a dataset cannot tell anything.
_LEAST_DRAWS = 100


def audit(
    mechanism: Auditable,
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
    """Hold a mechanism to the guarantee that it states, by enumeration and by draws.

    Nothing confidential is needed and nothing is spent: datasets are made up.

    Parameters
    ----------
    mechanism : Auditable
        What `congenial.condition`, `image` and `mixture` make, or anything with `sample` and
        `guarantee`; see `congenial.auditing.finding.Auditable`.
    neighbours : {"substitute", "add-remove"}
    method : {"auto", "exact", "statistical"}
        "exact" enumerates the laws at all small datasets, "statistical" draws at the hardest pairs;
        "auto" does both, the first where it is possible.
    total : int
        Most records of an enumerated dataset; "auto" takes fewer where there are many entries.
    pairs : sequence of pair of array_like, shape (n,) each, optional
        Neighbours to compare instead, as values of all queries. Needed where the mechanism does not
        tell its queries.
    draws : int, optional
        Draws of each dataset; 20,000 where not given, 6,000 of images.
    confidence : float
        Draws refute a true claim with probability 1 - confidence at most.
    rng : Randomness, optional
        A seeded source by default, so that draws are simulations and the same again. With
        `secure()` they take the way of real releases.
    claim : Guarantee, optional
        What the mechanism is held to, instead of its own `guarantee(neighbours)`. Under
        "substitute" it may speak of a record that enters as well, where a rule leaves rows out.

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
    Passing proves the claim for what was enumerated and nothing beyond; draws can only refute. The
    likelihood ratio orders the releases where the law is known, which is the most powerful test
    (Neyman and Pearson 1933); other events are tried beside it, for a sampler may not follow its
    law. Draws are also held to the stated marginal laws and to the invariant.

    References
    ----------
    Ding, Wang, Wang, Zhang and Kifer (2018); Jagielski, Ullman and Oprea (2020), for bounds on
    epsilon from counts of an event.
    """
    size = (
        draws if draws is not None else IMAGES if isinstance(mechanism, Imaged | TopDown) else DRAWS
    )
    _check(method, total, size, confidence)
    guarantee = mechanism.guarantee(neighbours) if claim is None else claim
    space = space_of(mechanism)
    given = None if pairs is None else _checked_pairs(pairs, space)
    if space is not None and given is not None:
        at_once = moved_at_once(guarantee)
        _check_neighbours(given, space, neighbours, at_once, entering=claim is not None)
    findings: list[Finding] = []
    if method != "statistical":
        records = _affordable(mechanism, space, total, given, exact=method == "exact")
        if records is not None and space is not None:
            findings += enumerated(
                mechanism, space, guarantee, neighbours, total=records, pairs=given
            )
        elif method == "exact":
            raise UnsupportedError(
                "the law of this mechanism cannot be enumerated, since it is not known or its "
                "domain is too large; use method='statistical', or a smaller copy of it."
            )
    if method != "exact":
        compared = given
        if compared is None:
            compared = [] if space is None else space.hard_pairs(neighbours)
            if findings and findings[0].worst is not None:
                compared = [findings[0].worst, *compared]
        if not compared:
            raise ArgumentError(
                "no neighbouring datasets are known to compare; give pairs=[(x, other), ...]."
            )
        source = seeded(0) if rng is None else resolve(rng)
        findings += _drawn(mechanism, space, guarantee, compared, size, 1.0 - confidence, source)
    return Audit(guarantee, tuple(findings), confidence)


def _drawn(
    mechanism: Auditable,
    space: Space | None,
    guarantee: Guarantee,
    pairs: list[Pair],
    draws: int,
    error: float,
    rng: Randomness,
) -> list[Finding]:
    """Findings from draws at each pair: loss, law and invariant."""
    each = error / (3 * len(pairs))  # the loss once, the law at both datasets
    bounds, distances, broken = [], [], []
    for pair in pairs:
        drawn = [np.asarray(mechanism.sample(x, draws, rng)) for x in pair]
        sides: tuple[Shares, Shares] = (shared_out(drawn[0]), shared_out(drawn[1]))
        bounds.append(epsilon_bound(mechanism, space, pair, sides, guarantee, each))
        changed = np.flatnonzero(pair[0] != pair[1])
        if hasattr(mechanism, "marginal") and not guarantee.ideal_only:
            each_side = zip(pair, sides, strict=True)
            distances.append(
                max(law_distance(mechanism, x, changed, side, each) for x, side in each_side)
            )
        if space is not None:
            broken.append(
                max(
                    1.0 - float(space.satisfied(z, x).mean())
                    for x, z in zip(pair, drawn, strict=True)
                )
            )
    told = f"{draws:,} simulated draws of each dataset, confidence {1.0 - error:.6g}"

    def finding(check: str, values: list[float], stated: float, detail: str) -> Finding:
        worst = int(np.argmax(values))
        found = values[worst]
        return Finding(
            check, found <= stated, found, stated, len(pairs), draws, pairs[worst], detail
        )

    found = [
        finding(
            "loss, from draws",
            bounds,
            guarantee.epsilon,
            f"a lower bound on epsilon at delta {guarantee.delta:.2g}; {told}.",
        )
    ]
    if distances:
        found.append(
            finding(
                "law, from draws",
                distances,
                guarantee.sampler_error,
                f"a lower bound on the distance of draws from the stated marginal laws; {told}.",
            )
        )
    if broken:
        found.append(
            finding(
                "invariant, from draws",
                broken,
                0.0,
                "the share of draws that violate the invariant.",
            )
        )
    return found


def _affordable(
    mechanism: Auditable,
    space: Space | None,
    total: int,
    pairs: list[Pair] | None,
    *,
    exact: bool,
) -> int | None:
    """Most records up to `total` that can be enumerated, None where nothing can."""
    if space is None:
        return None
    if pairs is not None:
        return total if can_enumerate(mechanism, space, pairs[0][0]) else None
    if space.entries.size > ENTRIES:
        return None
    size = next((t for t in range(total, 0, -1) if space.fits(t, DATASETS)), 0)
    x = next(space.datasets(size), None)
    if x is None:  # which is told where nothing else was asked for
        return size if exact else None
    return size if can_enumerate(mechanism, space, x) else None


def _check(method: str, total: int, draws: int, confidence: float) -> None:
    if method not in METHODS:
        raise ArgumentError(f"method is {method!r}; give one of {', '.join(METHODS)}.")
    for name, value, least in (("total", total, 1), ("draws", draws, _LEAST_DRAWS)):
        whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
        if not whole or value < least:
            raise ArgumentError(f"{name} is {value!r}; give a whole number of at least {least}.")
    if not isinstance(confidence, float | np.floating) or not 0.0 < confidence < 1.0:
        raise ArgumentError(f"confidence is {confidence!r}; give a number between 0 and 1.")


def _checked_pairs(
    pairs: Sequence[tuple[npt.ArrayLike, npt.ArrayLike]], space: Space | None
) -> list[Pair]:
    """Return pairs of datasets as arrays.

    Raises
    ------
    ArgumentError
        If one is no pair of different vectors of the same length.
    """
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
    """Refuse pairs that a guarantee does not speak of.

    Raises
    ------
    ArgumentError
        If one does not satisfy the invariant, or differs in more than one record or a pin.
    """
    pinned = np.logical_and.reduce([need.pinned for need in space.needs])
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
