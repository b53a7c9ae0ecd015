"""The counts that the page about a release shows, read part by part.

They are those of a release in memory, to the last digit. So simulated draws use the words that a
draw of all counts at once would use: first those of the noise, row by row; then those by which ties
are broken, a share of a word for each count, level by level.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import reduce
from operator import add
from pathlib import Path
from typing import cast

import numpy as np

from congenial.domain.tree import Tree
from congenial.imaging.solvers.descent import joined, shares, words_for
from congenial.imaging.top_down import TopDown
from congenial.preview.comparison.expected import (
    UNLUCKY,
    NotSimulated,
    SimulatedErrors,
    draws_for,
    not_simulated,
)
from congenial.randomness import Bits, Randomness, given, seeded, seeded_words
from congenial.releases import directory as files
from congenial.releases.model import Model
from congenial.releases.part_models import below_model
from congenial.report.page_counts import SEED, PageCounts, called, in_pieces
from congenial.report.shown_counts import (
    LevelFacts,
    NodeLabels,
    ShownCounts,
    cut_at_zero,
    level_facts,
)
from congenial.report.side_files import depths_of, side_files
from congenial.types import BoolArray, IntArray
from congenial.verification.parts import ReadInParts

# Rows whose words are made at a time.
_WORDS = 1 << 20


def counts_by_parts(place: Path, read: ReadInParts, folder: Path) -> PageCounts:
    """Return what the page shows of a release; write its side files to a folder."""
    plan, nodes = read.top.plan, [level.nodes for level in read.certificate.domain.levels]
    where, names = depths_of(nodes), plan.place_names
    with ExitStack() as stack:
        table = stack.enter_context(files.open_table(place))
        measured = None
        if plan.release.measurements:
            measured = stack.enter_context(files.open_table(place, files.MEASUREMENTS))
        counts = _Counts(read, table, measured)

        def different(level: int, at: int) -> int:
            """Return the number of different names that the paths of a level have at another."""
            return np.unique(table.selected(f"level = {level}").hashes(names[at])).size

        labels = NodeLabels(names, called(where, nodes, different))
        facts = reduce(_added, map(counts.facts, *zip(*read.spans, strict=True)))
        listed = counts.shown(0, table.rows, f"level <= {where.listed}")
        beside = None
        if where.listed < len(nodes) - 1:
            within = f"level > {where.listed} AND level <= {where.beside}"
            rows = in_pieces(table.selected(within).row_numbers())
            pieces = (counts.shown(int(at[0]), int(at[-1]) + 1, within) for at in rows)
            beside = side_files(pieces, labels, folder)
        errors = errors_by_parts(table, read, nodes)
    return PageCounts(where, listed, labels, tuple(facts), beside, errors)


def _added(one: list[LevelFacts], other: list[LevelFacts]) -> list[LevelFacts]:
    return list(map(add, one, other))


@dataclass(frozen=True, eq=False)
class _Counts:
    """The counts of a release, of which some are read at a time."""

    read: ReadInParts
    table: files.OpenTable
    measured: files.OpenTable | None  # None if the release publishes no measurements.

    def _exact(self, number: IntArray) -> BoolArray:
        """Whether the count of each row is exact; those below the cut never are."""
        return np.isin(number, self.read.numbers[self.read.top.determined])

    def facts(self, begin: int, end: int) -> list[LevelFacts]:
        """Return facts about the counts of each level, of the rows from one to before another."""
        columns = (self.table.numbers(c, begin, end) for c in ("level", "value", "lower", "upper"))
        level, *own = columns
        exact = self._exact(np.arange(begin, end))
        here = [level.values == depth for depth in range(len(self.read.top.plan.place_names))]
        cut = cut_at_zero(self.read.certificate)
        ends = ((column.take(at) for column in own) for at in here)
        return [level_facts(exact[at], *of, cut=cut) for at, of in zip(here, ends, strict=True)]

    def shown(self, begin: int, end: int, where: str) -> ShownCounts:
        """Return the counts of some rows that meet an SQL condition."""
        own, measured = self.table.selected(where), None
        number, rows = own.row_numbers(begin, end), own.read(begin, end)
        level = np.asarray(rows.numbers("level").values, dtype=np.int64)
        if self.measured is not None:
            measured = self.measured.selected(where).numbers("measurement", begin, end)
        return ShownCounts(number, level, self._exact(number), rows, measured)


def errors_by_parts(
    table: files.OpenTable, read: ReadInParts, nodes: Sequence[int]
) -> SimulatedErrors | NotSimulated:
    """Add up the errors of each level over simulated releases, drawn part by part.

    `nodes` is the number of counts of each level.
    """
    over, depth = read.top, len(nodes) - len(read.scales)
    if over.plan.method.name == "conditioning":
        return NotSimulated("the table was conditioned in parts, and simulations need all of it")
    top = cast(Tree, over.domain)
    words = _Words(nodes, over.mechanism.noise.words_per_entry, draws_for(table.rows))
    values = _integers(table.selected(f"level <= {depth}"), "value", 0, table.rows)
    before, totals = np.zeros((2, len(nodes)), dtype=np.int64)
    try:
        drawn = _moved(
            over, _noisy(over, values, words.noise(read.numbers)), words, top.level, before
        )
        _add_errors(totals, top.level, drawn - values)
        for begin, end in read.spans:
            level = _integers(table, "level", begin, end)
            at = np.flatnonzero(level >= depth)
            if not at.size:
                continue
            forest, level = _forest(level[at]), level[at]
            model = below_model(over.plan, read.scales, forest, forest.roots)
            values = _integers(table, "value", begin, end)[at]
            noisy = _noisy(model, values, words.noise(begin + at))
            first, last = np.searchsorted(read.numbers, (begin, end))
            noisy[:, forest.roots] = drawn[:, first:last][:, top.level[first:last] == depth]
            found = _moved(model, noisy, words, level, before)
            _add_errors(totals, level, np.where(forest.parents < 0, 0, found - values))
            before += np.bincount(level, minlength=len(nodes))
    except UNLUCKY as error:
        return not_simulated(error)
    return SimulatedErrors(words.draws, totals)


def _integers(table: files.OpenTable, name: str, begin: int, end: int) -> IntArray:
    return np.asarray(table.numbers(name, begin, end).values, dtype=np.int64)


def _forest(level: IntArray) -> Tree:
    """Return the forest of rows in depth-first order, by their levels; the first is a root."""
    parents = np.full(level.size, -1, dtype=np.int64)
    for depth in range(int(level[0]) + 1, int(level.max()) + 1):
        above, here = (np.flatnonzero(level == d) for d in (depth - 1, depth))
        parents[here] = above[np.searchsorted(above, here) - 1]
    return Tree.from_parents(parents)


def _noisy(model: Model, values: IntArray, words: Bits) -> IntArray:
    """Add noise to counts that are not exact, shape (draws, n)."""
    mechanism = model.mechanism
    noise = mechanism.noise.draw(words, mechanism.scales, seeded(SEED + 1).bits)
    noisy = np.where(np.isfinite(mechanism.scales), values + noise, 0)
    return np.where(model.resolved.pinned, values, noisy)


def _moved(
    model: Model, noisy: IntArray, words: _Words, level: IntArray, before: IntArray
) -> IntArray:
    """Return releases made of noisy counts; `before` counts of each level come before these."""
    engine = TopDown(model.mechanism, model.resolved)
    counts = np.bincount(level, minlength=before.size)
    return np.array([engine.move(y, words.ties(r, before, counts)) for r, y in enumerate(noisy)])


def _add_errors(totals: IntArray, level: IntArray, errors: IntArray) -> None:
    np.add.at(totals, level, np.abs(errors).sum(axis=0))


@dataclass(frozen=True)
class _Words:
    """The words of seeded draws of all counts at once."""

    nodes: Sequence[int]  # Number of counts of each level.
    each: int  # Words of a count's noise.
    draws: int

    @property
    def _noise(self) -> int:
        """Number of words of the noise of one draw."""
        return self.each * sum(self.nodes)

    def noise(self, at: IntArray) -> Bits:
        """Return the words of the noise of some rows, ascending; shape (draws, words)."""
        out = np.empty((self.draws, at.size, self.each), dtype=np.uint64)
        for begin in range(int(at[0]), int(at[-1]) + 1, _WORDS):
            end = min(begin + _WORDS, int(at[-1]) + 1)
            here = slice(*np.searchsorted(at, (begin, end)))
            for draw in range(self.draws):
                first, count = draw * self._noise + self.each * begin, self.each * (end - begin)
                words = seeded_words(SEED, first, count).reshape(-1, self.each)
                out[draw, here] = words[at[here] - begin]
        out.setflags(write=False)
        return out.reshape(self.draws, -1)

    def ties(self, draw: int, before: IntArray, counts: IntArray) -> Randomness:
        """Return the words of ties of the next counts of each level, in one draw."""
        begin = self.draws * self._noise + draw * words_for(sum(self.nodes))
        first = np.cumsum([0, *self.nodes[:-1]]) + before
        spans = zip(first.tolist(), counts.tolist(), strict=True)

        def read(word: int, count: int) -> Bits:
            return seeded_words(SEED, begin + word, count)

        return given(joined(np.concatenate([shares(read, *span) for span in spans])))
