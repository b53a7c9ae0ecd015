"""Plans with a table of attributes over places, and rows for them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from congenial.domain.tree import Tree
from congenial.plan.plan import Plan, parse_plan

SEX, AGE = ("F", "M"), ("0-17", "18-64", "65+")
STATUS = ("single", "married")
AREAS = {"North": ("N1", "N2"), "South": ("S1", "S2", "S3")}
# A child is not married.
IMPOSSIBLE = '[ { age = "0-17", status = "married" } ]'
MARGINS = '["total", "sex", "voting", "sex by age"]'
VOTING = '{ of = "age", values = { minor = ["0-17"], adult = ["18-64", "65+"] } }'
TOWN = Tree.from_paths([("Town", area, block) for area, held in AREAS.items() for block in held])
Row = tuple[Any, ...]


def text_of(
    *,
    margins: str = MARGINS,
    invariants: str = 'publish_exactly = ["root: total"]\nnonnegative = true',
    privacy: str = 'neighbours = "substitute"\nepsilon = 1.0',
    impossible: str = IMPOSSIBLE,
    more: str = "",
) -> str:
    return f"""
[data]
source = "people.csv"
weight = "people"
[hierarchy]
root = "Town"
levels = ["area", "block"]
domain = "blocks.csv"
[table]
attributes = {{ sex = {list(SEX)}, age = {list(AGE)}, status = {list(STATUS)} }}
groups.voting = {VOTING}
margins = {margins}
impossible = {impossible}
[privacy]
{privacy}
[invariants]
{invariants}
{more}
"""


def plan_of(**parts: str) -> Plan:
    return parse_plan(text_of(**parts))


def random_rows(seed: int, size: int = 120) -> list[Row]:
    """Rows of area, block, sex, age, status and how many people, none of them impossible."""
    rng = np.random.default_rng(seed)
    blocks = [(area, block) for area, held in AREAS.items() for block in held]
    rows = []
    for _ in range(size):
        area, block = blocks[rng.integers(len(blocks))]
        age = AGE[rng.integers(3)]
        status = "single" if age == "0-17" else STATUS[rng.integers(2)]
        rows.append((area, block, SEX[rng.integers(2)], age, status, int(rng.geometric(0.3)) - 1))
    return rows


def write_rows(place: Path, rows: Sequence[Row]) -> None:
    header = ("area", "block", "sex", "age", "status", "people")
    lines = [header, *rows]
    text = "\n".join(",".join(map(str, line)) for line in lines)
    (place / "people.csv").write_text(text + "\n")
    places = [f"{area},{block}" for area, held in AREAS.items() for block in held]
    (place / "blocks.csv").write_text("\n".join(["area,block", *places]) + "\n")


def counted_by_hand(rows: Sequence[Row], path: Sequence[str]) -> int:
    """Count the people of a query, named by its path, straight from the rows."""
    places = [part for part in path if "=" not in part][1:]
    wanted = dict(pair.split("=") for part in path if "=" in part for pair in part.split(", "))
    total = 0
    for area, block, sex, age, status, people in rows:
        voting = "minor" if age == "0-17" else "adult"
        held = {"sex": sex, "age": age, "status": status, "voting": voting}
        inside = [area, block][: len(places)] == places
        if inside and all(held[name] == value for name, value in wanted.items()):
            total += people
    return total
