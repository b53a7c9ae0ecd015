"""Audit by draws: losses at pairs, marginal laws and invariants, over the whole tree."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from operator import itemgetter

import numpy as np

from congenial.accounting.guarantee import Guarantee, Neighbours
from congenial.accounting.mechanism import Mechanism
from congenial.auditing.binomial import probability_bounds
from congenial.auditing.drawn import (
    MOST_ALONE,
    Shares,
    entry_bounds,
    epsilon_bound,
    law_distance,
    shared_out,
)
from congenial.auditing.finding import Finding, Notify, Pair, announced, ignore
from congenial.auditing.pairs import everyone_moves, pairs_at
from congenial.auditing.space import Space
from congenial.errors import ArgumentError, NumericalError, UnsupportedError
from congenial.imaging.solvers.cell_descent import CellDescent
from congenial.imaging.top_down import TopDown
from congenial.imaging.update import Imaged
from congenial.inference.best_table import MOST_WORK, BestTable, most_work
from congenial.randomness import Randomness
from congenial.types import IntArray, Values
from congenial.wording import many

# Most entries that a screen tests, most whose laws are tested, and most values of such laws, which
# bounds the time in large trees.
_SCREENED, _LAWS, _OF_ALL = 512, 400, 2_000_000
# Number of entries with the largest bounds in a screen, whose pairs are then compared.
_HARDEST = 3
# Most best tables and most images of the measurements drawn at one dataset, most values of these,
# and most products of one pass over all best tables of an audit.
_TABLES, _IMAGES, _TABLE_VALUES, _TABLE_WORK = 4, 64, 400_000, 2e10


@dataclass
class _Seen:
    """The numbers found by each check, each with its pair."""

    losses: list[tuple[float, Pair]] = field(default_factory=list)
    laws: list[tuple[float, Pair]] = field(default_factory=list)
    broken: list[tuple[float, Pair]] = field(default_factory=list)
    tables: int = 0  # Number of releases of each dataset that are compared with the invariant.
    refused: int = 0
    reason: str = ""


@dataclass(frozen=True)
class Screen:
    """Draws at two datasets that differ in every cell."""

    pair: Pair
    sides: tuple[Shares, Shares]
    # Neighbours that differ in the entries with the largest bound on epsilon.
    hardest: tuple[Pair, ...]


def screened(
    mechanism: Mechanism, space: Space, neighbours: Neighbours, draws: int, rng: Randomness
) -> Screen | None:
    """Find the entries with the largest losses; None if nothing can be drawn.

    Each entry is tested alone, between two datasets that differ in all cells. Fresh draws compare
    the pairs for the worst entries later.
    """
    pair = everyone_moves(space, neighbours, rng)
    if pair is None:
        return None
    try:
        drawn = [_of_one(mechanism, x, draws, rng) for x in pair]
    except (NumericalError, UnsupportedError):
        return None
    sides = shared_out(drawn[0]), shared_out(drawn[1])
    change = np.abs(pair[1] - pair[0])
    entries = _some(np.flatnonzero(change > 0), _SCREENED, rng)
    bounds = entry_bounds(pair, entries, sides) / change[entries]
    hardest = entries[np.argsort(-bounds, kind="stable")[:_HARDEST]]
    found = [itertools.islice(pairs_at(space, neighbours, int(v), rng), 1) for v in hardest]
    return Screen(pair, sides, tuple(itertools.chain.from_iterable(found)))


def simulated(
    mechanism: Mechanism,
    space: Space | None,
    guarantee: Guarantee,
    pairs: Sequence[Pair],
    draws: int,
    error: float,
    rng: Randomness,
    screen: Screen | None = None,
    notify: Notify = ignore,
    left_out: str = "",
) -> list[Finding]:
    """Findings from draws at each pair: loss, law and invariant.

    `left_out` ends the text of the loss, and says which pairs are not among them.
    """
    each = error / (3 * len(pairs) + 1)  # loss, law at both datasets, screen
    lawful = hasattr(mechanism, "marginal") and not guarantee.ideal_only
    seen = _Seen()
    tabled = _pairs_with_tables(mechanism, len(pairs))
    for pair in announced(pairs, notify, "drawing at pair"):
        drawn = _drawn(mechanism, pair, draws, rng, seen)
        if drawn is None:
            continue
        sides = shared_out(drawn[0]), shared_out(drawn[1])
        bound = epsilon_bound(mechanism, space, pair, sides, guarantee, each)
        seen.losses.append((bound, pair))
        if lawful:
            entries = np.flatnonzero(pair[0] != pair[1])[:MOST_ALONE]
            both = zip(pair, sides, strict=True)
            distance = max(law_distance(mechanism, x, entries, side, each) for x, side in both)
            seen.laws.append((distance, pair))
        if space is not None and len(seen.broken) < tabled:
            tables = [_tables(mechanism, z, rng) for z in drawn]
            kept = [space.satisfied(z, x).mean() for x, z in zip(pair, tables, strict=True)]
            seen.broken.append((1.0 - float(min(kept)), pair))
            seen.tables = len(tables[0])
    if not seen.losses:
        raise ArgumentError(
            f"no release could be drawn at any of {len(pairs)} pairs of made-up datasets, since "
            f"{seen.reason.rstrip('.')}; give pairs=[(x, other), ...] like the data."
        )
    if lawful and screen is not None and space is not None:
        free = np.flatnonzero(~space.hull.pinned)
        entries = _some(free, min(_LAWS, max(8, _OF_ALL // space.mechanism.n)), rng)
        distance = law_distance(mechanism, screen.pair[0], entries, screen.sides[0], each)
        seen.laws.append((distance, screen.pair))
    what = (
        f"simulated measurements (tables are made from them{'' if tabled else ', slowly'})"
        if _slow(mechanism) is not None
        else "simulated draws"
    )
    text = f"from {draws:,} {what} of each dataset, at confidence {1.0 - error:.6g}"
    return _findings(seen, guarantee, draws, each, text, left_out)


def _drawn(
    mechanism: Mechanism, pair: Pair, draws: int, rng: Randomness, seen: _Seen
) -> list[Values] | None:
    """Draw at both datasets; None, with the reason in `seen`, if one or both are refused."""
    drawn = []
    for x in pair:
        try:
            drawn.append(_of_one(mechanism, x, draws, rng))
        except (NumericalError, UnsupportedError) as cause:
            seen.reason = str(cause)
    if len(drawn) == 2:
        return drawn
    if drawn:  # one refusal distinguishes the two datasets
        seen.losses.append((math.inf, pair))
    seen.refused += not drawn
    return None


def _slow(mechanism: Mechanism) -> Imaged | TopDown | BestTable | None:
    """Return a mechanism whose tables take long to make of measurements; None for others.

    A table is computed from its measurements alone, so its loss is at most theirs.
    """
    if isinstance(mechanism, Imaged):
        return None if mechanism.projector.forest else mechanism
    if isinstance(mechanism, TopDown):
        return mechanism if isinstance(mechanism.descent, CellDescent) else None
    return mechanism if isinstance(mechanism, BestTable) else None


def _of_one(mechanism: Mechanism, x: Values, draws: int, rng: Randomness) -> Values:
    """Draw releases at one dataset, or their measurements if tables take long."""
    slow = _slow(mechanism)
    return np.asarray(
        mechanism.sample(x, draws, rng) if slow is None else slow.measure(x, draws, rng)
    )


def _tables(mechanism: Mechanism, drawn: Values, rng: Randomness) -> Values:
    """Return releases; of measurements, the tables of the first few."""
    slow = _slow(mechanism)
    if slow is None:
        return drawn
    return np.array([slow.apply(y, rng) for y in drawn[: _tables_each(slow)]])


def _tables_each(mechanism: Imaged | TopDown | BestTable) -> int:
    most = _TABLES if isinstance(mechanism, BestTable) else _IMAGES
    return max(1, min(most, _TABLE_VALUES // mechanism.resolved.n))


def _pairs_with_tables(mechanism: Mechanism, pairs: int) -> int:
    """Number of pairs whose releases are checked: all, unless tables take very long."""
    if not isinstance(mechanism, BestTable):
        return pairs
    products = most_work(mechanism.mechanism)
    if products > MOST_WORK:  # the closest table is released, which is fast
        return pairs
    return min(pairs, int(_TABLE_WORK / (2 * _tables_each(mechanism) * products)))


def _findings(
    seen: _Seen, guarantee: Guarantee, draws: int, each: float, origin: str, left_out: str
) -> list[Finding]:
    trials = draws - 2 * (draws // 4)
    least = probability_bounds(trials, trials, 0.5 * each)[0]
    most = probability_bounds(0, trials, 0.5 * each)[1]
    loss = (
        f"a lower bound on epsilon at delta {guarantee.delta:.2g}, {origin}; this number of draws "
        f"cannot show more than {math.log(least / most):.3g}"
    )
    if seen.refused:
        pairs = many(seen.refused, "further pair")
        loss += f"; at {pairs} both datasets were refused: {seen.reason}"
    if any(math.isinf(bound) for bound, _ in seen.losses):
        loss += f"; inf means that only one dataset of a pair is refused: {seen.reason}"
    loss += left_out
    law = f"a lower bound on the distance of draws from the stated distributions, {origin}"
    broken = (
        f"the share of {'tables' if seen.tables < draws else 'draws'} that violate the invariant"
    )
    checks = [
        ("loss", seen.losses, guarantee.epsilon, draws, loss),
        ("law", seen.laws, guarantee.sampler_error, draws, law),
        ("invariant", seen.broken, 0.0, seen.tables, broken),
    ]
    out = []
    for name, values, stated, outputs, text in checks:
        if values:
            found, pair = max(values, key=itemgetter(0))
            check, passed = f"{name}, from draws", found <= stated
            sentence = f"{text.rstrip('.')}."
            out.append(Finding(check, passed, found, stated, len(values), outputs, pair, sentence))
    return out


def _some(entries: IntArray, most: int, rng: Randomness) -> IntArray:
    """Up to `most` of some entries, at random."""
    if entries.size <= most:
        return entries
    order = np.argsort(rng.bits(entries.size), kind="stable")
    return np.asarray(np.sort(entries[order[:most]]))
