"""Random rows and plans, for tests that count the same rows in two engines."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from congenial.data.counts import count
from congenial.errors import CongenialError
from congenial.plan.plan import Plan, parse_plan

BLOCKS = [(block, f"place {block // 3}", block % 5) for block in range(1, 25)]
# Parts of row filters: those of the first list an engine may evaluate.
SIMPLE = (
    "age >= 18",
    "NOT (age BETWEEN 5 AND 40)",
    "age IN (3, 4, 5, 90, 1000) OR sex = 'f'",
    "age NOT IN (3, 4, 5)",
    "40 > age",
    "age <> -1",
    "age IS NOT NULL",
    "sex IS NULL OR sex <> 'm'",
    "sex IN ('f', 'x')",
    "sex > 'f'",
    "day < DATE '2020-03-01'",
    "day >= '2020-01-15' OR age = 7",
    "flag",
    "NOT flag OR age > 60",
    "flag = false",
    "score > 0.25",
    "score <= 1",
    "NOT score = 0.5",
    "score IN (0.5, 1)",
)
HARD = (
    "lower(sex) = 'f'",
    "age % 2 = 0",
    "age > 20.5",
    "sex LIKE 'm%'",
    "ln(age) > 2",
    "kind = 2",
    "kind IS NULL OR kind < 3",
    "kind = 1 OR age > 30",
    "age IS NOT DISTINCT FROM 3",
    "age = NULL OR sex = 'f'",
    "score > age",
    "day > DATE '2020-01-10' + 5",
)
WEIGHTS = {
    "whole": pa.int32(),
    "double": pa.float64(),
    "decimal": pa.decimal128(20, 2),
    "text": pa.string(),
}


@dataclass(frozen=True)
class Case:
    """Rows and a plan for them, whose public files are in a folder."""

    plan: Plan
    rows: pa.Table


def draw_case(rng: np.random.Generator, place: Path, size: int = 300) -> Case:
    """Draw rows and a plan; about a fifth of the cases cannot be counted."""
    dirty = rng.random() < 0.3  # whether rows may be refused
    texts = bool(rng.integers(2))  # whether the key is a text
    rows = _rows(rng, size, texts=texts, dirty=dirty)
    keys = [f"b{block}" if texts else block for block, _, _ in BLOCKS]
    _write(
        place / "blocks.csv",
        "id,place,kind",
        zip(keys, *list(zip(*BLOCKS, strict=True))[1:], strict=True),
    )
    _write(place / "pairs.csv", "sex,age", ((s, a) for s in "fm" for a in range(100)))
    chosen = rng.integers(4)
    levels, domain = (
        (["place"], "lookup"),
        (["place", "block"], "lookup"),
        (["sex", "age"], "pairs.csv"),
        (["place", "sex"], "data"),
    )[chosen]
    where = [str(one) for one in rng.choice(SIMPLE, rng.integers(3), replace=False)]
    if rng.random() < 0.4:
        where.append(str(rng.choice([one for one in HARD if chosen != 2 or "kind" not in one])))
    if not dirty:
        where += ["age IS NOT NULL", "sex IS NOT NULL"]
    lookup = 'lookup = { source = "blocks.csv", key = "id", on = "block" }' if chosen != 2 else ""
    weight = str(rng.choice(["", *WEIGHTS]))
    table = '[table]\nattributes = { sex = ["f", "m"] }\nmargins = ["total", "sex"]\n'
    types = rng.choice(["", 'types = { age = "INTEGER" }', 'types = { score = "DOUBLE" }'])
    condition = " AND ".join(f"({one})" for one in where) or "true"
    plan = parse_plan(
        f'[data]\nsource = "rows.parquet"\nwhere = """{condition}"""\n'
        f"{lookup}\n{types}\n"
        + (f'weight = "{weight}"\n' if weight else "")
        + f'[hierarchy]\nroot = "all"\nlevels = {levels}\ndomain = "{domain}"\n'
        + "names_repeat = true\n"
        + (table if chosen < 2 and rng.random() < 0.5 else "")
        + '[privacy]\nneighbours = "substitute"\nepsilon = 1.0\n'
    )
    return Case(plan, rows)


def outcome(case: Case, place: Path, frame: Any) -> tuple[Any, ...]:
    """Return the counts of a frame, or the message that refuses it."""
    try:
        found = count(case.plan, base=place, frame=frame)
    except CongenialError as error:
        return (type(error).__name__, str(error))
    return (found.domain.names, found.counts.tolist(), found.excluded)


def _write(file: Path, header: str, rows: Any) -> None:
    file.write_text("\n".join([header, *(",".join(map(str, row)) for row in rows)]) + "\n")


def _rows(rng: np.random.Generator, size: int, *, texts: bool, dirty: bool) -> pa.Table:
    def holes(values: list[Any], part: float) -> list[Any]:
        return [None if rng.random() < part else value for value in values]

    blocks = [int(block) for block in rng.integers(1, 26 if dirty else 25, size)]
    keys = [f"b{block}" for block in blocks] if texts else blocks
    weights = [float(w) for w in rng.integers(0, 4, size)]
    if dirty and rng.random() < 0.5:
        weights[int(rng.integers(size))] = float(rng.choice([-1.0, 0.5, 2.0**60]))
    first = date(2020, 1, 1)
    ages = rng.choice([pa.int8(), pa.int32(), pa.int64()])
    columns = {
        "block": pa.array(holes(keys, 0.002 * dirty), pa.string() if texts else pa.int64()),
        "age": pa.array(holes([int(a) for a in rng.integers(0, 100, size)], 0.02), ages),
        "sex": pa.array(holes([str(s) for s in rng.choice(["f", "m"], size)], 0.02), pa.string()),
        "day": pa.array(
            holes([first + timedelta(int(d)) for d in rng.integers(0, 99, size)], 0.05)
        ),
        "flag": pa.array(holes([bool(f) for f in rng.integers(0, 2, size)], 0.05)),
        "score": pa.array(
            holes(rng.choice([0.0, 0.25, 0.5, 1.0, 2.0, np.nan], size).tolist(), 0.05)
        ),
        "whole": pa.array([int(w) for w in np.clip(weights, -1, 2**31 - 1)], WEIGHTS["whole"]),
        "double": pa.array(weights, WEIGHTS["double"]),
        "decimal": pa.array(
            [Decimal(int(2 * min(w, 1e9))) / 2 for w in weights], WEIGHTS["decimal"]
        ),
        "text": pa.array([f"{w:g}" for w in weights], WEIGHTS["text"]),
    }
    return pa.table(columns)
