"""Neighbouring datasets at any size: the shapes of worst pairs, and random ones over all cells.

Under bounds the worst pair is seldom the one with the largest loss of the noise alone. In the worst
pair one cell goes from 1 to 0, the cells around it are empty and all others are crowded. The extent
of the empty part differs.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from hashlib import blake2b

import numpy as np

from congenial.accounting.guarantee import Neighbours
from congenial.auditing.finding import Pair
from congenial.auditing.space import CROWD, Space
from congenial.errors import PrivacyError
from congenial.randomness import Randomness
from congenial.types import BoolArray, IntArray

# Most pairs of one mechanism, and most values in all their datasets.
_LEAST_PAIRS, _MOST_PAIRS, _VALUES = 24, 256, 4_000_000
# Beyond this number of queries, datasets have few different counts, so their laws are faster.
_MANY = 20_000
# Least size of a large count, in noise scales; bounds at 0 do not matter there.
_SCALES = 60.0
# Largest crowd, so that sums of crowds are exact in doubles.
_WHOLE = 2.0**50
# Records of a small dataset.
_FEW = 3


def chosen_pairs(space: Space, neighbours: Neighbours, source: Randomness) -> list[Pair]:
    """Return some dozens of neighbours: by the costliest move, by random moves, and random ones.

    Empty if no pair is known.
    """
    try:
        gains = space.dearest(neighbours)
    except PrivacyError:
        return []
    n = space.mechanism.n
    most = max(_LEAST_PAIRS, min(_MOST_PAIRS, _VALUES // n))
    found = space.hard_pairs(neighbours)
    gaining, losing = np.flatnonzero(gains > 0), np.flatnonzero(gains < 0)
    if np.abs(gains).max() == 1 and gaining.size == 1 and losing.size <= 1:
        origin = int(losing[0]) if losing.size else int(gaining[0])
        destination = int(gaining[0]) if losing.size else None
        found += itertools.islice(shaped_pairs(space, origin, destination), most // 2)
    kinds = None if n <= _MANY else 2
    found += random_pairs(space, neighbours, source, max(_LEAST_PAIRS, most) // 2, kinds=kinds)
    for one, other in random_moves(space, neighbours, source):
        if len(found) >= most:
            break
        found += itertools.islice(shaped_pairs(space, one, other), most - len(found))
    return found


def shaped_pairs(space: Space, origin: int, destination: int | None) -> Iterator[Pair]:
    """Yield pairs in which a record moves between cells, with empty or full cells around each."""
    low, high = _ends(space)
    shapes = [(low, high)]
    if any(np.isfinite(resolved.hi[space.entries]).any() for resolved in space.alternatives):
        shapes.append((high, low))
    ends = [(origin, destination)]
    if destination is not None:
        ends.append((destination, origin))
    seen: set[bytes] = set()
    for (inner, outer), (one, other) in itertools.product(shapes, ends):
        around = _regions(space, one)[::-1]
        beside = [np.zeros_like(around[0])] if other is None else _regions(space, other)
        for first, second, end in itertools.product(around, beside, (outer, inner)):
            base = np.where(first | second, inner, outer)
            # a full cell must have room for the record
            base[one] = min(inner[one], high[one] - 1)
            if other is not None:
                base[other] = min(end[other], high[other] - 1)
            yield from _moved(space, base, one, other, seen)


def random_pairs(
    space: Space, neighbours: Neighbours, source: Randomness, most: int, *, kinds: int | None = None
) -> Iterator[Pair]:
    """Yield pairs that move a record from every cell in turn, in random order, to random cells."""
    seen: set[bytes] = set()
    rounds = (random_moves(space, neighbours, source) for _ in range(most))
    moves = itertools.islice(itertools.chain.from_iterable(rounds), most)
    for at, (one, other) in enumerate(moves):
        base = _random_counts(space, source, at, kinds)
        yield from _moved(space, base, one, other, seen)


def random_moves(
    space: Space, neighbours: Neighbours, source: Randomness
) -> Iterator[tuple[int, int | None]]:
    """Yield moves of one record that keep all fixed sums, in random order, until all cells moved.

    Cells whose records cannot move to another cell are left out.
    """
    size = space.entries.size
    order = np.argsort(source.bits(size), kind="stable")
    if neighbours == "add-remove":
        yield from ((int(cell), None) for cell in order)
        return
    groups = space.interchangeable[order]
    in_groups = np.argsort(groups, kind="stable")
    cells, groups = order[in_groups], groups[in_groups]
    starts = np.flatnonzero(np.diff(groups, prepend=-1))
    sizes = np.diff(np.append(starts, size))
    moves: list[tuple[int, int]] = []
    for start, count in zip(starts.tolist(), sizes.tolist(), strict=True):
        members = cells[start : start + count]
        if count > 1:
            moves += zip(members[::2].tolist(), np.roll(members, -1)[::2].tolist(), strict=True)
    for at in np.argsort(source.bits(len(moves)), kind="stable"):
        yield moves[at]


def everyone_moves(space: Space, neighbours: Neighbours, source: Randomness) -> Pair | None:
    """Return two datasets that differ by a record in every cell; they are not neighbours."""
    change = np.zeros(space.entries.size, dtype=np.int64)
    for one, other in random_moves(space, neighbours, source):
        if change[one] == 0 and (other is None or change[other] == 0):
            change[one] = -1
            if other is not None:
                change[other] = 1
    low, high = _ends(space)
    base = np.minimum(low + 1, high)
    base = np.where(base + change > high, base - 1, base)
    pair = space.queries(base), space.queries(base + change)
    return pair if change.any() and all(space.allows(x) for x in pair) else None


def untouched(space: Space, pairs: Sequence[Pair]) -> BoolArray:
    """Whether each entry can change between neighbours but changes in no pair, shape (n,)."""
    out = ~space.determined
    for one, other in pairs:
        out &= one == other
    return np.asarray(out)


def pairs_at(
    space: Space, neighbours: Neighbours, entry: int, source: Randomness
) -> Iterator[Pair]:
    """Yield pairs of neighbours between which an entry changes, in random datasets."""
    seen: set[bytes] = set()
    within = (space.counting.chain == entry).any(axis=0)
    for at, (one, other) in enumerate(random_moves(space, neighbours, source)):
        if within[one] != (other is not None and within[other]):
            yield from _moved(space, _random_counts(space, source, at, None), one, other, seen)


def _ends(space: Space) -> tuple[IntArray, IntArray]:
    """Smallest and crowded counts of each cell, shape (k,) each."""
    cells = space.entries
    least, most = space.hull.lo[cells], space.hull.hi[cells]
    scales = space.mechanism.scales
    widest = float(scales[np.isfinite(scales)].max(initial=1.0))
    crowd = min(max(float(CROWD), _SCALES * widest), _WHOLE / cells.size)
    low = np.clip(np.ceil(least), 0.0, None)
    high = np.maximum(np.minimum(np.floor(most), low + np.ceil(crowd)), low)
    return low.astype(np.int64), high.astype(np.int64)


def _regions(space: Space, cell: int) -> list[BoolArray]:
    """Growing sets of cells around one cell, from that cell alone to all cells."""
    chain = space.counting.chain
    alone = np.arange(space.entries.size) == cell
    found = [alone, np.ones_like(alone)]
    found += [(chain == entry).any(axis=0) for entry in chain[:, cell].tolist() if entry >= 0]
    found.sort(key=lambda region: int(region.sum()))
    return [a for a, b in zip(found, [None, *found], strict=False) if not np.array_equal(a, b)]


def _random_counts(space: Space, source: Randomness, at: int, kinds: int | None) -> IntArray:
    """Counts of four kinds, in turn: few records, sparse, small, crowded in places."""
    low, high = _ends(space)
    size = low.size
    words = source.bits(2 * size + _FEW)
    first, second = words[:size], words[size : 2 * size]
    style = at % 4
    if style == 0:
        more = np.bincount((words[2 * size :] % np.uint64(size)).astype(np.int64), minlength=size)
    elif style == 1:
        more = (first % np.uint64(8) == 0).astype(np.int64)
    elif style == 2:
        spread = np.uint64(30 if kinds is None else min(30, kinds))
        more = (first % spread).astype(np.int64)
    else:
        crowded = first % np.uint64(2) == 0
        few = (second % np.uint64(3 if kinds is None else 1)).astype(np.int64)
        more = np.where(crowded, high - low, few)
    return np.asarray(np.minimum(low + more, high))


def _within(space: Space, base: IntArray) -> IntArray:
    """Change counts of cells so that the bounds of their sums hold with room for one record.

    One pass from the finest sums up suffices for most bounds; `Space.allows` checks the result.
    """
    lo, hi = space.hull.lo, np.floor(space.hull.hi)
    bounded = (lo > 0.0) | np.isfinite(hi)
    bounded[space.entries] = False
    if not bounded.any():
        return base
    out, n = base.astype(np.float64), space.mechanism.n
    for entries in space.counting.chain[::-1]:
        cells = np.flatnonzero(entries >= 0)
        at = entries[cells]
        cells_of = np.maximum(np.bincount(at, minlength=n), 1)
        short = np.maximum(lo - np.bincount(at, out[cells], n), 0.0)
        out[cells] += np.ceil(short / cells_of)[at]
        found = np.maximum(np.bincount(at, out[cells], n), 1.0)
        out[cells] = np.floor(out[cells] * np.clip((hi - 1.0) / found, 0.0, 1.0)[at])
    return out.astype(np.int64)


def _moved(
    space: Space, base: IntArray, one: int, other: int | None, seen: set[bytes]
) -> Iterator[Pair]:
    """Yield the dataset with one record more in either cell, if the invariant allows both."""
    base = _within(space, base)
    sides = [base.copy(), base.copy()]
    sides[0][one] += 1
    if other is not None:
        sides[1][other] += 1
    pair = space.queries(sides[0]), space.queries(sides[1])
    key = b"".join(sorted(blake2b(x.tobytes()).digest() for x in pair))
    if key not in seen and all(space.allows(x) for x in pair):
        seen.add(key)
        yield pair
