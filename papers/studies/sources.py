"""The public data of the studies, shipped with the package; their sources stand beside them."""

from __future__ import annotations

import csv
import gzip
from dataclasses import dataclass
from importlib.resources import files

import numpy as np

from congenial.domain.tree import Tree
from congenial.types import IntArray

# Zones beyond are no places: "unknown" and "outside the city".
_LAST_ZONE = 263
AGES = 23


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
    rows = [row for row in _read("taxi_zones_2022_02.csv") if int(row["zone_id"]) <= _LAST_ZONE]
    tree = Tree.from_paths([("New York City", row["borough"], row["zone_id"]) for row in rows])
    trips = {row["zone_id"]: int(row["trips"]) for row in rows}
    leaves = np.array([trips[tree.names[int(v)]] for v in tree.leaves], dtype=np.int64)
    return tree, np.asarray(tree.roll_up(leaves), dtype=np.int64)


def blocks(county: str | None = None) -> tuple[Tree, IntArray]:
    """People of Washington in 2010: state, counties, tracts, block groups and 195,574 blocks.

    Parameters
    ----------
    county : str, optional
        FIPS code, such as "53067"; only this one then, which is the root.

    Returns
    -------
    tree : Tree
    x : ndarray of int64, shape (201855,)
    """
    rows = [
        row
        for row in _read("washington_blocks_2010.csv.gz")
        if county is None or row["block_group"].startswith(county)
    ]
    people = {
        row["block_group"] + block: int(count)
        for row in rows
        for block, count in zip(row["blocks"].split(), row["people"].split(), strict=True)
    }
    cuts = (2, 5, 11, 12, 15) if county is None else (5, 11, 12, 15)
    tree = Tree.from_paths([tuple(code[:cut] for cut in cuts) for code in people])
    leaves = np.array([people[tree.names[int(v)]] for v in tree.leaves], dtype=np.int64)
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


def _read(name: str) -> list[dict[str, str]]:
    data = (files("papers") / "data" / name).read_bytes()
    text = (gzip.decompress(data) if name.endswith(".gz") else data).decode("utf-8")
    return list(csv.DictReader(text.splitlines()))
