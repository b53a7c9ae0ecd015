"""The trees and counts that the rows work on."""

from __future__ import annotations

import csv
import gzip
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

import numpy as np

import congenial as cg
from congenial.types import IntArray
from papers.studies.sources import AGES, counties

EXAMPLES = Path(__file__).parents[1] / "examples"
ZONES = EXAMPLES / "taxi" / "taxi_zone_lookup.csv"
TRIPS = EXAMPLES / "taxi" / "zone_hour_counts_2022_02.csv.gz"
BLOCKS = EXAMPLES / "washington" / "wa_2010_blocks_race_vap.csv.gz"
SEED, RACES = 20, 8


def grown(fans: Sequence[int]) -> cg.Tree:
    """Return a tree whose nodes at depth d all have ``fans[d]`` children."""
    parents, start, width = [np.array([-1])], 0, 1
    for fan in fans:
        parents.append(start + np.repeat(np.arange(width), fan))
        start += width
        width *= fan
    return cg.Tree.from_parents(np.concatenate(parents))


def uneven(*widths: int) -> cg.Tree:
    """Return a tree of so many nodes a level below the root, dealt to those above at random."""
    source = np.random.default_rng(SEED)
    parents, start, above = [np.array([-1])], 0, 1
    for width in widths:
        parents.append(
            start + np.sort(np.append(np.arange(above), source.integers(0, above, width - above)))
        )
        start += above
        above = width
    return cg.Tree.from_parents(np.concatenate(parents))


def poisson(tree: cg.Tree, mean: float = 3.0) -> IntArray:
    """Return counts of all nodes, with Poisson leaves."""
    leaves = np.random.default_rng(SEED).poisson(mean, tree.leaves.size)
    return _rolled(tree, leaves)


def taxi() -> tuple[cg.Tree, IntArray]:
    """Return city, 6 boroughs and 263 zones (270 nodes) with their trips."""
    with ZONES.open(encoding="utf-8", newline="") as file:
        zones = [row for row in csv.DictReader(file) if int(row["LocationID"]) <= 263]
    trips = dict.fromkeys((int(row["LocationID"]) for row in zones), 0)
    for zone, count in _packed(TRIPS, "zone_id", "trips"):
        if int(zone) in trips:
            trips[int(zone)] += int(count)
    tree = cg.Tree.from_paths(("New York City", row["Borough"], row["LocationID"]) for row in zones)
    leaves = [trips[int(tree.names[leaf])] for leaf in tree.leaves]
    return tree, _rolled(tree, np.array(leaves))


def washington(blocks: int | None = None) -> tuple[cg.Tree, IntArray]:
    """Return state, counties, tracts, block groups and blocks with their people.

    Parameters
    ----------
    blocks : int, optional
        Only so many of the blocks, the first in the file.
    """
    people: dict[str, int] = {}
    for code, count in _packed(BLOCKS, "geoid", "pop"):
        people[code] = int(count)
        if len(people) == blocks:
            break
    cuts = (2, 5, 11, 12, 15)
    tree = cg.Tree.from_paths(tuple(code[:cut] for cut in cuts) for code in people)
    return tree, _rolled(tree, np.array([people[tree.names[leaf]] for leaf in tree.leaves]))


def washington_cells(blocks: int | None = None, *, races: bool = False) -> tuple[cg.Tree, IntArray]:
    """Return Washington's blocks with 16 cells each, eight races by voting age, and their people.

    Parameters
    ----------
    blocks : int, optional
        Only so many of the blocks, the first in the file.
    races : bool
        Whether each block's races are a level of their own, above the ages.
    """
    codes, cells = [], []
    with gzip.open(BLOCKS, "rt", encoding="ascii", newline="") as file:
        rows = csv.reader(file)
        next(rows)
        for row in islice(rows, blocks):
            codes.append(row[0])
            cells.append(row[2:])
    counts = np.array(cells, dtype=np.int64)
    # levels from the top down, each node's number that of its first block
    above, parents, start = np.full(len(codes), -1), [], 0
    for cut in (2, 5, 11, 12, 15):
        _, first, number = np.unique(
            [code[:cut] for code in codes], return_index=True, return_inverse=True
        )
        parents.append(above[first])
        above, start = start + number, start + first.size
    if races:
        parents.append(np.repeat(above, RACES))
        above = start + np.arange(RACES * len(codes))
    parents.append(np.repeat(above, counts.size // above.size))
    tree = cg.Tree.from_parents(np.concatenate(parents))
    return tree, _rolled(tree, counts.ravel())


def p12(states: int | None = None) -> tuple[cg.Table, IntArray]:
    """Return table P12, sex by 23 ages, at every county of the United States with its counts.

    Parameters
    ----------
    states : int, optional
        Only the counties of so many states, the first in the file.
    """
    found = counties()
    order = dict.fromkeys(code[:2] for code in found.codes)
    kept = set(list(order)[:states])
    at = [i for i, code in enumerate(found.codes) if code[:2] in kept]
    ages = tuple(map(str, range(AGES)))
    table = cg.Table(
        {"sex": ("F", "M"), "age": ages},
        {"voting_age": ("age", {"minor": ages[:4], "adult": ages[4:]})},
        cg.Tree.from_paths([("US", found.codes[i][:2], found.codes[i]) for i in at]),
        levels=("nation", "state", "county"),
        name="P12",
    )
    return table, found.cells[at].reshape(table.shape)


def _rolled(tree: cg.Tree, leaves: IntArray) -> IntArray:
    return tree.roll_up(leaves).astype(np.int64)


def _packed(path: Path, *columns: str) -> Iterator[tuple[str, ...]]:
    """Yield columns of a gzip-compressed CSV file, row by row."""
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        rows = csv.reader(file)
        header = next(rows)
        at = [header.index(name) for name in columns]
        for row in rows:
            yield tuple(row[i] for i in at)
