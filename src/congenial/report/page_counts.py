"""The counts that the page about a release shows, of a release that is in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from congenial.domain.workload import Workload
from congenial.preview.comparison.expected import NotSimulated, SimulatedErrors
from congenial.releases.reading import Release
from congenial.report.shown_counts import (
    Labels,
    LevelFacts,
    NodeLabels,
    QueryLabels,
    ShownCounts,
    cut_at_zero,
    level_facts,
)
from congenial.report.side_files import Depths, SideFiles, depths_of, side_files
from congenial.types import IntArray

# Of the simulated draws, so that the same release gives the same page.
SEED = 20_230_301
# Counts of side files that are sorted at a time.
AT_ONCE = 1_000_000


@dataclass(frozen=True, eq=False)
class PageCounts:
    """The counts of a release, as far as its page shows them."""

    depths: Depths
    listed: ShownCounts
    labels: Labels
    levels: tuple[LevelFacts, ...]  # One for each level, coarse to fine.
    beside: SideFiles | None  # None if the page lists all counts.
    errors: SimulatedErrors | NotSimulated  # Of each level.


def counts_at_once(
    release: Release, errors: SimulatedErrors | NotSimulated, folder: Path
) -> PageCounts:
    """Return what the page shows of a release in memory; write its side files to a folder.

    `errors` are those of each count.
    """
    domain, exact = release.domain, release.model.determined
    level, depth = domain.level, len(release.model.levels)
    measured = None if release.measured is None else release.measured.numbers("measurement")
    number = np.arange(len(domain))
    every = ShownCounts(number, level, exact, release.rows, measured)
    nodes = np.bincount(level, minlength=depth)
    where = depths_of(nodes.tolist())
    labels = labels_of(release, where)
    beside = None
    if where.listed < depth - 1:
        rest = number[(level > where.listed) & (level <= where.beside)]
        beside = side_files(map(every.take, in_pieces(rest)), labels, folder)
    facts = []
    for at in range(depth):
        here = number[level == at]
        ends = (release.rows.numbers(name).take(here) for name in ("value", "lower", "upper"))
        facts.append(level_facts(exact[here], *ends, cut=cut_at_zero(release.certificate)))
    if not isinstance(errors, NotSimulated):
        totals = np.zeros(depth, dtype=np.int64)
        np.add.at(totals, level, errors.totals)
        errors = SimulatedErrors(errors.draws, totals)
    listed = every.take(number[level <= where.listed])
    return PageCounts(where, listed, labels, tuple(facts), beside, errors)


def in_pieces(rows: IntArray) -> Iterator[IntArray]:
    """Divide the rows of side files into pieces, each of which is read and sorted at once."""
    return (rows[begin : begin + AT_ONCE] for begin in range(0, rows.size, AT_ONCE))


def labels_of(release: Release, where: Depths) -> Labels:
    """Return the names of the counts of a release in memory."""
    domain, names = release.domain, release.plan.place_names
    if isinstance(domain, Workload):
        return QueryLabels(domain)
    level = domain.level

    def different(depth: int, at: int) -> int:
        return np.unique(release.rows.texts(names[at]).codes[level == depth]).size

    return NodeLabels(names, called(where, np.bincount(level).tolist(), different))


def called(
    where: Depths, nodes: Sequence[int], different: Callable[[int, int], int]
) -> dict[int, int]:
    """Return the level by whose names the counts of each level in side files are searched for.

    `nodes` is the number of nodes of each level. `different` returns the number of different names
    at one level, the second, in the paths of the nodes of another.
    """
    found = {}
    for depth in range(where.listed + 1, where.beside + 1):
        apart = (at for at in range(depth, 0, -1) if 2 * different(depth, at) > nodes[at])
        found[depth] = next(apart, depth)
    return found
