"""Plans with a table of people and one of homes over the same places, and rows for them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from congenial.plan.plan import Plan, parse_plan
from support.cross_tables import AREAS

Row = tuple[Any, ...]
SEX, AGE, STATUS = ("F", "M"), ("0-17", "18+"), ("in use", "empty")
COMPARED = 'as_many = ["people >= homes: status=in use"]'
INVARIANTS = f'publish_exactly = ["root: people: total"]\nnonnegative = true\n{COMPARED}'
HOMES = """rows = { source = "homes.csv", weight = "homes" }
attributes = { status = ["in use", "empty"] }
margins = ["total", "status"]"""
PEOPLE = """attributes = { sex = ["F", "M"], age = ["0-17", "18+"] }
margins = ["total", "sex by age"]"""


def text_of(
    *,
    people: str = PEOPLE,
    homes: str = HOMES,
    invariants: str = INVARIANTS,
    privacy: str = 'neighbours = "substitute"\nepsilon = 1.0',
    domain: str = "blocks.csv",
    data: str = 'source = "people.csv"\nweight = "people"',
    more: str = '[release]\npublish = ["table", "measurements"]',
) -> str:
    return f"""
[data]
{data}
[hierarchy]
root = "Town"
levels = ["area", "block"]
domain = "{domain}"
[tables.people]
{people}
[tables.homes]
{homes}
[privacy]
{privacy}
[invariants]
{invariants}
{more}
"""


def plan_of(**parts: str) -> Plan:
    return parse_plan(text_of(**parts))


def random_rows(seed: int) -> tuple[list[Row], list[Row]]:
    """Rows of people and of homes; somebody lives in every home in use."""
    rng = np.random.default_rng(seed)
    people, homes = [], []
    for area, blocks in AREAS.items():
        for block in blocks:
            used = int(rng.poisson(rng.gamma(0.5, 8.0)))
            homes += [(area, block, "in use", used), (area, block, "empty", int(rng.poisson(2.0)))]
            for _ in range(used):
                sex, age = SEX[rng.integers(2)], AGE[rng.integers(2)]
                people.append((area, block, sex, age, 1 + int(rng.poisson(1.2))))
    return people, homes


def write_rows(place: Path, people: Sequence[Row], homes: Sequence[Row]) -> None:
    for name, header, rows in (
        ("people", "area,block,sex,age,people", people),
        ("homes", "area,block,status,homes", homes),
    ):
        lines = [header, *(",".join(map(str, row)) for row in rows)]
        (place / f"{name}.csv").write_text("\n".join(lines) + "\n")
    blocks = [f"{area},{block}" for area, held in AREAS.items() for block in held]
    (place / "blocks.csv").write_text("\n".join(["area,block", *blocks]) + "\n")


def counted_by_hand(people: Sequence[Row], homes: Sequence[Row], path: Sequence[str]) -> int:
    """Count a query, named by its path, straight from the rows."""
    *places, what = path
    table, _, values = what.partition(": ")
    wanted = set(dict(part.split("=") for part in values.split(", ")).values()) if values else set()
    rows = people if table == "people" else homes
    return sum(row[-1] for row in rows if {*places[1:], *wanted} <= {*row[:-1]})
