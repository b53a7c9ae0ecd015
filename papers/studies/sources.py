"""The public data of the studies, shipped with the package; their sources stand beside them."""

from __future__ import annotations

import csv
import gzip
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

import numpy as np

from congenial.domain.tree import Tree
from congenial.types import IntArray

# Zones beyond are no places: "unknown" and "outside the city".
_LAST_ZONE = 263
AGES = 23
# Data of the examples, which stand beside the studies.
_EXAMPLES = Path(__file__).parents[2] / "examples"


@dataclass(frozen=True, eq=False)
class Counties:
    """Sex by age tables of counties.

    Attributes
    ----------
    codes : tuple of str
        FIPS codes.
    names : tuple of str
        Empty where the file has none.
    cells : ndarray of int64, shape (counties, 46)
        Ages from the youngest, females first and then males, as the papers number them.
    """

    codes: tuple[str, ...]
    names: tuple[str, ...]
    cells: IntArray


def taxi() -> tuple[Tree, IntArray]:
    """Trips of February 2022: the city, six boroughs and 263 zones, 270 nodes.

    Returns
    -------
    tree : Tree
    x : ndarray of int64, shape (270,)
    """
    rows = _zones()
    tree = Tree.from_paths([("New York City", row["borough"], row["zone_id"]) for row in rows])
    trips = {row["zone_id"]: int(row["trips"]) for row in rows}
    leaves = np.array([trips[tree.names[int(v)]] for v in tree.leaves], dtype=np.int64)
    return tree, np.asarray(tree.roll_up(leaves), dtype=np.int64)


def taxi_hours() -> tuple[Tree, IntArray]:
    """Trips of February 2022 by hour of the day: the city, boroughs, zones and 6,312 zone-hours.

    Returns
    -------
    tree : Tree
    x : ndarray of int64, shape (6582,)
    """
    trips: defaultdict[tuple[str, str], int] = defaultdict(int)
    days = _EXAMPLES / "taxi" / "zone_hour_counts_2022_02.csv.gz"
    for row in csv.DictReader(_lines(days)):
        trips[row["zone_id"], row["hour"]] += int(row["trips"])
    zones = [(row["borough"], row["zone_id"]) for row in _zones()]
    paths = [("New York City", *zone, f"h{hour:02}") for zone in zones for hour in range(24)]
    leaves = [trips[zone, str(hour)] for _, zone in zones for hour in range(24)]
    return _rolled_up(paths, np.array(leaves, dtype=np.int64))


def blocks(county: str | None = None, *, cells: bool = False) -> tuple[Tree, IntArray]:
    """People of Washington in 2010: state, counties, tracts, block groups and 195,574 blocks.

    Parameters
    ----------
    county : str, optional
        FIPS code, such as "53067"; only this one then, which is the root.
    cells : bool
        With 16 cells of race and ethnicity by voting age below every block.

    Returns
    -------
    tree : Tree
    x : ndarray of int64, shape (201855,)
        Of the whole state; with cells of shape (3331039,).
    """
    cuts = (2, 5, 11, 12, 15) if county is None else (5, 11, 12, 15)
    head, *rows = csv.reader(_lines(_EXAMPLES / "washington" / "wa_2010_blocks_race_vap.csv.gz"))
    paths: list[tuple[str, ...]] = []
    leaves: list[int] = []
    for code, people, *split in rows:
        if county is not None and not code.startswith(county):
            continue
        block = tuple(code[:cut] for cut in cuts)
        if cells:
            paths += [(*block, name) for name in head[2:]]
            leaves += map(int, split)
        else:
            paths.append(block)
            leaves.append(int(people))
    return _rolled_up(paths, np.array(leaves, dtype=np.int64))


def all_counties() -> tuple[Tree, IntArray]:
    """Table P12 of every county in 2010: the country, states, counties and 144,578 cells.

    Returns
    -------
    tree : Tree
    x : ndarray of int64, shape (147773,)
    """
    found = counties()
    cells = [f"{sex}{age}" for sex in "fm" for age in range(AGES)]
    paths = [("US", code[:2], code, cell) for code in found.codes for cell in cells]
    return _rolled_up(paths, found.cells.ravel())


def _rolled_up(paths: Sequence[tuple[str, ...]], leaves: IntArray) -> tuple[Tree, IntArray]:
    """Return the tree of leaves given by their paths, in its order, and the counts of its nodes."""
    tree = Tree.from_paths(paths)
    return tree, np.asarray(tree.roll_up(leaves), dtype=np.int64)


def counties() -> Counties:
    """Table P12 of every county, 2010 Census, as published then."""
    return _counties("p12_county_2010.csv.gz")


def california_topdown() -> Counties:
    """Table P12 of California's counties as the Census Bureau's TopDown released it in 2022."""
    return _counties("p12_california_topdown_2022.csv.gz")


def _counties(name: str) -> Counties:
    rows = _read(name)
    columns = [c for c in rows[0] if c.startswith("f_")] + [c for c in rows[0] if c[:2] == "m_"]
    cells = np.array([[int(row[c]) for c in columns] for row in rows], dtype=np.int64)
    return Counties(
        tuple(row["county_fips"] for row in rows),
        tuple(row.get("county", "") for row in rows),
        cells,
    )


def _zones() -> list[dict[str, str]]:
    return [row for row in _read("taxi_zones_2022_02.csv") if int(row["zone_id"]) <= _LAST_ZONE]


def _read(name: str) -> list[dict[str, str]]:
    return list(csv.DictReader(_lines(Path(str(files("papers"))) / "data" / name)))


def _lines(path: Path) -> list[str]:
    data = path.read_bytes()
    return (gzip.decompress(data) if path.suffix == ".gz" else data).decode("utf-8").splitlines()
