"""Draws from verified tables: batches of draws, words fetched in order, threads."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Protocol

import numba
import numpy as np

from congenial.kernels.network import compositions, descend, differences
from congenial.kernels.network.messages import MERGE
from congenial.kernels.network.records import (
    KeptRows,
    OpenChoices,
    Program,
    WeighedTables,
)
from congenial.randomness import Bits, Randomness
from congenial.sum_network.direct import is_accepted, sums_split
from congenial.sum_network.network import Network
from congenial.sum_network.tables import DrawnTables, Tables
from congenial.types import BoolArray, FloatArray, IntArray

# Calls a function with the number of each part and its ends.
Share = Callable[[Callable[[int, int, int], None], list[int]], None]

# Most values of one batch of draws.
_VALUES_AT_ONCE = 1 << 22
# Most operations of a batch whose random words are in memory at once.
_WORDS_AT_ONCE = 1 << 17
# Number of draws whose compositions share one tape of words.
_TOGETHER = 64
# Least number of choices or composed parts for another thread.
_WORTH = 1 << 17
# Least number of choices from a class whose rows are cached; with fewer, sums seldom repeat.
_OFTEN = 32
# Entries of all rows that threads cache together, 64 MiB.
_ENTRIES = 1 << 23
# An operation after all others: no choice is left open.
_NONE = np.iinfo(np.int64).max


@dataclass(frozen=True)
class Chosen:
    """A value beyond windows, and its probability: weight * (1 - ratio) * ratio^steps."""

    value: int
    weight: Fraction
    ratio: Fraction = Fraction(0)
    steps: int = 0


class Opened(Protocol):
    """Choices that a kernel leaves open, and the last acceptance of draws from envelopes."""

    @property
    def lacking(self) -> FloatArray:
        """Mass that the tables of roots lack, shape (c,)."""

    def choose(self, op: int, c: int, s: int, word: int, rng: Randomness) -> Chosen | None:
        """Choose a root's value, or the left part of a sum s; None if the draw begins again."""

    def accepted(
        self, values: IntArray, doubt: FloatArray, rare: Rare, rng: Randomness
    ) -> BoolArray:
        """Return which draws are accepted; `rare` has those with choices beyond windows."""


# Choices beyond windows, by draw and operation; None for a draw that begins again.
Rare = dict[int, dict[int, Chosen] | None]


def sample(
    tables: DrawnTables,
    rows: int,
    rng: Randomness,
    *,
    first: int | None = None,
    threads: int | None = None,
    opened: Opened | None = None,
) -> IntArray:
    """Draw the variables `rows` times, independently.

    Words are fetched batch by batch and in order, those of all choices and then those of the
    compositions, whose number depends on the totals. So the draws depend on the words alone, not on
    the number of threads. By default that number is at most numba's, and smaller for little work.

    Tables that are envelopes need `opened`, see `exact.sample`.

    Returns ndarray of int64, shape (rows, n), in the coordinates of the forest; only the `first`
    variables if that is given.
    """
    network = tables.network
    n = network.n if first is None else first
    batch = _batch_of(network, rows)
    threads = _threads_of(network, batch, threads)
    kept = _caches(tables, rows, threads, opened)
    with _sharing(threads) as share:
        if rows == 1:  # a view: it may be long
            return _batch(kept, 1, rng, share)[:n].T
        out = np.empty((rows, n), dtype=np.int64)
        for begin in range(0, rows, batch):
            count = min(batch, rows - begin)
            out[begin : begin + count] = _batch(kept, count, rng, share)[:n].T
    return out


def attempt(
    tables: DrawnTables,
    rows: int,
    rng: Randomness,
    *,
    opened: Opened,
    first: int | None = None,
    roots: IntArray | None = None,
) -> tuple[BoolArray, IntArray]:
    """Try once to draw the variables, `rows` times; see `exact.attempt`."""
    network = tables.network
    n = network.n if first is None else first
    batch = _batch_of(network, rows)
    threads = _threads_of(network, batch, None)
    kept = _caches(tables, rows, threads, opened)
    accepted, drawn = np.zeros(rows, dtype=np.bool_), [np.empty((0, n), dtype=np.int64)]
    with _sharing(threads) as share:
        for begin in range(0, rows, batch):
            here = slice(begin, min(begin + batch, rows))
            values = np.zeros((network.places, accepted[here].size), dtype=np.int64)
            if roots is not None:
                values[0] = roots[here]
            accepted[here] = _choose(kept, rng, values, share)
            if not accepted[here].all():
                values = np.ascontiguousarray(values[:, accepted[here]])
            _finish(kept[0].tables, values, rng, share)
            drawn.append(values[:n].T)
    return accepted, drawn[1] if len(drawn) == 2 else np.concatenate(drawn)


def _batch_of(network: Network, rows: int) -> int:
    """Return the number of draws that are made at once."""
    return max(1, min(rows, _VALUES_AT_ONCE // max(network.slots, 1)))


def _threads_of(network: Network, batch: int, threads: int | None) -> int:
    if threads is None:
        worth = (network.choices + network.members.size) * batch // _WORTH
        threads = min(int(numba.config.NUMBA_NUM_THREADS), worth)
    return max(1, min(threads, batch))


def _caches(tables: DrawnTables, rows: int, threads: int, opened: Opened | None) -> list[_Kept]:
    most = rows // threads, _ENTRIES // threads
    return [_Kept(tables, *most, opened) for _ in range(threads)]


def draws_of_some(tables: Tables, nodes: IntArray) -> Tables | None:
    """Return tables whose program draws only some different variables, in the order given.

    A draw then takes the choices on the ways down to these variables, not those of all others.
    Returns None if some variables are composed, or added up from others.
    """
    network = tables.network
    op, first, second, third, cls = network.program
    if tables.freed is not None and tables.freed.follows[nodes].any():
        return None
    split, choices = op == descend.SPLIT, op < descend.COMPOSE
    follows = split | ((op == descend.LINK) & (third != 0))
    source = np.where(split, first, second)
    # places are used again, so a value is that of the last operation before it is read
    one, two = np.flatnonzero(choices & ~split), np.flatnonzero(split)
    setter = np.concatenate((one, two, two))
    turn = np.int64(op.size + 1)
    key = np.concatenate((first[one], second[two], third[two])) * turn + setter
    order = np.argsort(key, kind="stable")
    key, setter = np.append(key[order], np.iinfo(np.int64).max), setter[order]
    needed = np.zeros(op.size, dtype=np.bool_)
    front, before = nodes.astype(np.int64), np.full(nodes.size, op.size)
    while front.size:
        found = np.searchsorted(key, front * turn + before) - 1
        if (found < 0).any() or (key[found] // turn != front).any():
            return None
        at = np.unique(setter[found])
        at = at[~needed[at]]
        needed[at] = True
        before = at[follows[at]]
        front = source[before].astype(np.int64)
    at = np.flatnonzero(needed)
    split, chosen = split[at], op[at] != descend.LINK
    # a sum that is fixed at zero follows from no slot
    source = np.where(follows[at], source[at], first[at])
    filled = np.concatenate((first[at], source, second[at[split]], third[at[split]]))
    slots = np.concatenate((nodes, np.setdiff1d(filled, nodes)))
    place = np.empty(network.places, dtype=np.int32)
    place[slots] = np.arange(slots.size)
    uses = np.bincount(cls[at[chosen]], minlength=network.ctype.size)
    few = replace(
        network,
        op=op[at],
        first=place[first[at]],
        second=np.where(split, place[second[at]], place[source]),
        third=np.where(split, place[np.where(split, third[at], 0)], third[at]),
        cls=cls[at],
        uses=uses.astype(network.uses.dtype),
        n=nodes.size,
        slots=slots.size,
        places=slots.size,
        slot_class=network.slot_class[slots],
        choices=int(np.count_nonzero(chosen)),
        members=network.members[:0],
        moved=network.moved[:0],
        ends=network.ends[:0],
    )
    return replace(tables, network=few, freed=None)


def _batch(kept: list[_Kept], count: int, source: Randomness, share: Share) -> IntArray:
    """Draw all values that the program computes, shape (places, count)."""
    tables = kept[0].tables
    values = np.zeros((tables.network.places, count), dtype=np.int64)
    accepted = _choose(kept, source, values, share)
    while not accepted.all():
        refused = np.flatnonzero(~accepted)
        again = np.zeros((tables.network.places, refused.size), dtype=np.int64)
        accepted[refused] = _choose(kept[:1], source, again, _alone(refused.size))
        values[:, refused] = again
    _finish(tables, values, source, share)
    return values


def _finish(tables: DrawnTables, values: IntArray, source: Randomness, share: Share) -> None:
    """Compute the values that follow from the choices."""
    network = tables.network
    _split(network, values, source, share)
    _compose(network, values, source, share)
    if network.moved.size:
        values[network.moved] += network.ends[:, None]
    if tables.freed is not None:
        tables.freed.add_up(values)


def _alone(columns: int) -> Share:
    """Return a function that calls another for all columns."""
    return lambda call, _: call(0, 0, columns)


@contextmanager
def _sharing(threads: int) -> Iterator[Share]:
    """Return a function that calls another for every part of a list of edges, on threads."""
    with ThreadPoolExecutor(threads) if threads > 1 else nullcontext() as pool:
        spread = map if pool is None else pool.map

        def share(call: Callable[[int, int, int], None], edges: list[int]) -> None:
            # an interrupt arrives while waiting, and takes effect once running parts are done
            list(spread(call, range(len(edges) - 1), edges[:-1], edges[1:]))

        yield share


class _Kept:
    """Cumulative weights that one thread caches, and scratch to compute them."""

    def __init__(
        self, tables: DrawnTables, rows: int, most: int, opened: Opened | None = None
    ) -> None:
        network = tables.network
        width = tables.width
        uses = np.where(network.ctype == MERGE, network.uses, 0) * np.int64(max(rows, 1))
        entries = np.where(uses > 0, 2 * tables.near.reach + 1, 0) // descend.BLOCK + 1
        often = (uses >= _OFTEN) & (entries <= most // 4)
        self.begins = np.where(often, np.cumsum(np.where(often, width, 0)) - width, -1)
        self.place = np.zeros(int(width[often].sum()), dtype=np.int64)
        wanted = int((entries * np.minimum(width, uses))[often].sum())
        # a power of two, and at least as long as any row
        turn = 1 << (max(min(wanted, most // 2), 1) - 1).bit_length()
        room = int(entries.max(initial=1))
        self.given = np.array([turn], dtype=np.int64)
        self.rows = np.empty(turn + room, dtype=np.int64)
        self.weights = np.empty(descend.BLOCK * room, dtype=np.int64)
        self.tables, self.opened = tables, opened

    def draw(self, part: slice, words: Bits, left: _Left, begin: int, end: int) -> None:
        """Make the choices of part of the program in columns begin..end-1."""
        tables, network = self.tables, self.tables.network
        program = Program(*(column[part] for column in network.program))
        lacking = np.zeros(0) if self.opened is None else self.opened.lacking
        where = WeighedTables(tables.table, tables.factor, lacking)
        kept = KeptRows(self.begins, self.place, self.given, self.rows, self.weights)
        of = network.left, network.right, tables.windows, where, tables.near, kept
        descend.draw(program, *of, left.open, words, left.values, begin, end)


class _Left:
    """Values of some draws, and what their choices leave open."""

    def __init__(self, values: IntArray) -> None:
        columns = values.shape[1]
        self.values = values
        self.open = OpenChoices(np.full(columns, _NONE), np.zeros(columns))
        self.rare: Rare = {}


def _choose(kept: list[_Kept], source: Randomness, values: IntArray, share: Share) -> BoolArray:
    """Make all choices, a range of columns for each thread; return which draws are accepted.

    Words are fetched in parts. In a network that sends a message on, `values` has those of
    variable 0.
    """
    network, opened = kept[0].tables.network, kept[0].opened
    columns, op, parts, left = values.shape[1], network.op, len(kept), _Left(values)
    edges = [columns * part // parts for part in range(parts + 1)]
    step = max(1, _WORDS_AT_ONCE // columns)
    for start in range(network.begin, op.size, step):
        stretch = slice(start, min(start + step, op.size))
        choices = np.isin(op[stretch], (descend.ROOT, descend.SPLIT)).sum()
        words = source.bits(int(choices) * columns).reshape(-1, columns)

        def run(part: int, begin: int, end: int, at: slice = stretch, read: Bits = words) -> None:
            kept[part].draw(at, read, left, begin, end)

        share(run, edges)
        if opened is not None:
            for column in np.flatnonzero(left.open.at != _NONE).tolist():
                _settle(kept[0], opened, stretch, words, left, column, source)
    if opened is None:
        return np.ones(columns, dtype=np.bool_)
    return opened.accepted(values, left.open.doubt, left.rare, source)


def _settle(
    kept: _Kept,
    opened: Opened,
    stretch: slice,
    words: Bits,
    left: _Left,
    column: int,
    source: Randomness,
) -> None:
    """Make the choices of a draw that a stretch of the program leaves open, and those after it."""
    network, mine = kept.tables.network, left.values[:, column]
    rare = left.rare.setdefault(column, {})
    while rare is not None and left.open.at[column] != _NONE:
        at = stretch.start + int(left.open.at[column])
        left.open.at[column] = _NONE
        _take_back(network, mine, at, stretch.stop)
        before = network.op[stretch.start : at]
        row = int(np.isin(before, (descend.ROOT, descend.SPLIT)).sum())
        op, first, second, third, c = (int(each[at]) for each in network.program)
        s = int(mine[first])
        found = opened.choose(op, c, s, int(words[row, column]), source)
        if found is None:
            left.rare[column] = None
            return
        rare[at] = found
        if op == descend.ROOT:
            mine[first] = found.value
        else:
            mine[second], mine[third] = found.value, s - found.value
        rest = slice(at + 1, stretch.stop)
        kept.draw(rest, words[row + 1 :], left, column, column + 1)
        if left.open.at[column] != _NONE:
            left.open.at[column] += at + 1 - stretch.start


def _take_back(network: Network, values: IntArray, begin: int, stop: int) -> None:
    """Take back the operations begin..stop-1: places have their values before."""
    op, first, second, third, _ = network.program
    for i in range(stop - 1, begin - 1, -1):
        if op[i] == descend.SPLIT:
            values[first[i]] = values[second[i]] + values[third[i]]


def _split(network: Network, values: IntArray, source: Randomness, share: Share) -> None:
    """Make the splits that need no tables."""
    at, n, inverse = sums_split(network)
    if not at.size:
        return
    slots = [np.ascontiguousarray(column[at]) for column in network.program[1:4]]

    def count(begin: int, end: int) -> int:
        return 20 * at.size * (end - begin) + 60

    answers, questions = dict[int, list[bool]](), dict[int, IntArray]()

    def run(tape: Bits, begin: int, end: int) -> int:
        given = np.array(answers.get(begin, []), dtype=np.bool_)
        question = questions[begin] = np.zeros(differences.QUESTION, dtype=np.int64)
        into = tape, values, begin, end, given, question
        return int(differences.split(*slots, n, inverse, *into))

    def answer(begin: int) -> None:
        found = is_accepted(network, questions[begin], source)
        answers.setdefault(begin, []).append(found)

    _from_tapes(values.shape[1], count, run, source, share, answer)


def _compose(network: Network, values: IntArray, source: Randomness, share: Share) -> None:
    """Draw all compositions."""
    at = np.flatnonzero(network.op == descend.COMPOSE)
    if not at.size:
        return
    first, second, third, size = (np.ascontiguousarray(c[at]) for c in network.program[1:])

    def count(begin: int, end: int) -> int:
        return int(compositions.count_words(first, second, size, values, begin, end))

    members, begun = network.members, set[int]()

    def run(tape: Bits, begin: int, end: int) -> int:
        if begin in begun:  # with a longer tape
            values[members, begin:end] = 0
        begun.add(begin)
        args = (first, second, third, size, members, tape, values, begin, end)
        return int(compositions.compose(*args))

    _from_tapes(values.shape[1], count, run, source, share)


def _from_tapes(
    columns: int,
    count: Callable[[int, int], int],
    run: Callable[[Bits, int, int], int],
    source: Randomness,
    share: Share,
    answer: Callable[[int], None] | None = None,
) -> None:
    """Call `run` with a tape of words for every few columns; it returns the number of words read.

    `count` estimates the number of words that the columns begin..end-1 need. If a tape is too short
    all the same, which is rare, it is extended and read again from its start. If a decision is
    open, the number is negative, and `answer` is called before the tape is read again.
    """
    edges = [*range(0, columns, _TOGETHER), columns]
    length = np.zeros(len(edges) - 1, dtype=np.int64)
    read = np.zeros_like(length)

    def measure(part: int, begin: int, end: int) -> None:
        length[part] = count(begin, end)

    share(measure, edges)
    words = source.bits(int(length.sum()))
    tapes: list[Bits] = np.split(words, np.cumsum(length)[:-1])

    def read_on(part: int, begin: int, end: int) -> None:
        read[part] = run(tapes[part], begin, end)

    share(read_on, edges)
    for part in np.flatnonzero((read > length) | (read < 0)).tolist():
        while read[part] < 0 or read[part] > tapes[part].size:
            if read[part] < 0 and answer is not None:
                answer(edges[part])
                read_on(part, edges[part], edges[part + 1])
                continue
            more = source.bits(tapes[part].size // 8 + 64)
            tapes[part] = np.concatenate((tapes[part], more))
            tapes[part].setflags(write=False)  # read-only like all words: the same compiled kernel
            read_on(part, edges[part], edges[part + 1])
