"""Counts that are staged by part are the counts of the rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from congenial.data.counts import count, open_source
from congenial.data.staged_counts import (
    Staging,
    check_summary,
    no_rows,
    open_tallied,
    read_staged,
)
from congenial.errors import DataError
from congenial.plan.plan import parse_plan

PLAN = """
[data]
source = "rows.csv"
{data}
[hierarchy]
root = "all"
levels = ["district", "block", "door"]
domain = "{domain}"
names_repeat = true
[privacy]
neighbours = "substitute"
epsilon = 1.0
"""


def staged(place, plan, frame, depth, size):
    """Stage the counts of a lazy frame as an engine does; return the summaries and their folder."""
    with open_source(plan, base=place, frame=frame) as rows:
        groups = replace(rows.groups, frame=None, rows=None)
        found = rows.groups.rows.to_native().collect().to_arrow()
        known, shown = tuple(rows.known), rows.shown
    staging = Staging(plan, place, known, shown, groups, depth, place / "counts")
    staging.folder.mkdir(exist_ok=True)
    tables = []
    for begin in range(0, max(found.num_rows, 1), size):  # as many workers
        batches = found.slice(begin, size).to_batches()
        tables += staging.tallied(batches)
    tally = pa.concat_tables(tables)
    out = []
    for keys in tally.select(staging.keys).group_by(staging.keys).aggregate([]).to_pylist():
        mask = np.ones(tally.num_rows, dtype=bool)
        for name, value in keys.items():
            column = tally[name]
            same = pc.is_null(column) if value is None else pc.equal(column, value)
            mask &= same.fill_null(False).to_numpy()
        out.append(staging.stored(tally.filter(pa.array(mask))))
    return pa.concat_tables(out), staging


def world(place, rng):
    """Write a domain; return rows of it with names that have to be cleaned, and a plan."""
    doors = [(f"d{i}", f"b{j}", f"{k}") for i in range(3) for j in range(3) for k in range(4)]
    lines = [",".join(door) for door in doors]
    (place / "doors.csv").write_text("\n".join(["district,block,door", *lines]) + "\n")
    at = rng.integers(0, len(doors) - 12, size=int(rng.integers(1, 200))).tolist()
    rows = {name: [doors[i][c] for i in at] for c, name in enumerate(("district", "block"))}
    rows["door"] = [float(doors[i][2]) for i in at]
    rows["age"] = rng.integers(0, 99, size=len(at)).tolist()
    rows["people"] = rng.integers(0, 5, size=len(at)).tolist()
    data = "".join(
        text * int(rng.integers(2))
        for text in ("where = \"age >= 18 AND lower(district) <> 'd1'\"\n", 'weight = "people"\n')
    )
    domain = "doors.csv" if rng.integers(2) else "data"
    return rows, parse_plan(PLAN.format(data=data, domain=domain))


@pytest.mark.parametrize("seed", range(25))
def test_staged_counts_are_those_of_the_rows(seed, tmp_path):
    rng = np.random.default_rng(seed)
    rows, plan = world(tmp_path, rng)
    frame, depth = pl.LazyFrame(rows), int(rng.integers(1, 3))
    try:
        whole = count(plan, base=tmp_path, frame=frame)
    except DataError:
        pytest.skip("every row is left out")
    summary, staging = staged(tmp_path, plan, frame, depth, int(rng.integers(1, 60)))
    check_summary(plan, tmp_path, "the frame", summary)
    expected = {whole.domain.path(v): int(whole.counts[v]) for v in range(len(whole.domain))}
    files, found = {}, {}
    for row in summary.to_pylist():
        if row["kept"]:
            files[tuple(row[key] for key in staging.keys)] = row["file"], row["children"]
    level = whole.domain.level
    for v in np.flatnonzero(level == depth).tolist():
        path = whole.domain.path(v)[1:]
        file, children = files.get(path, (None, 0))
        if plan.hierarchy.domain == "data":
            assert children == (whole.domain.parents == v).sum()

        def tally(file=file):
            return no_rows(plan) if file is None else read_staged(staging.folder / file)

        with open_tallied(plan, tmp_path, tally, within=[path]) as part:
            domain, counts = part.domain, part.counted.counts
        for u in range(depth, len(domain)):
            found[domain.path(u)] = int(counts[u])
    assert found == {path: n for path, n in expected.items() if len(path) > depth}


def test_rows_that_cannot_be_counted_are_found_by_the_summaries(tmp_path):
    world(tmp_path, np.random.default_rng(0))
    plan = parse_plan(PLAN.format(data='weight = "people"\n', domain="doors.csv"))
    good = {"district": "d0", "block": "b0", "door": 1.0, "age": 1, "people": 1}
    for wrong, told in (
        ({"door": None}, "without a value in 'door'"),
        ({"district": None}, "without a value in 'district'"),
        ({"people": -1}, r"\(data.weight\) is no whole number"),
        ({"people": 2**51 - 1}, "adds up to more than"),
    ):
        frame = pl.LazyFrame([good, good | wrong, good | {"people": 2}])
        summary, _ = staged(tmp_path, plan, frame, 1, 10)
        with pytest.raises(DataError, match=told):
            check_summary(plan, tmp_path, "the frame", summary)


def test_files_of_counts_are_private_and_an_attempt_that_is_repeated_has_its_own(tmp_path):
    rows, plan = world(tmp_path, np.random.default_rng(3))
    for _ in range(2):
        summary, staging = staged(tmp_path, plan, pl.LazyFrame(rows), 1, 50)
    names = {row["file"] for row in summary.to_pylist()}
    found = list(staging.folder.iterdir())
    assert len(found) == 2 * len(names)
    assert {path.stat().st_mode & 0o777 for path in found} == {0o600}
