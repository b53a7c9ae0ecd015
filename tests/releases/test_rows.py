"""Releases of tables: rows to counts, files and back, and the guarantee by every pair."""

from __future__ import annotations

import csv
import itertools
import json

import numpy as np
import pytest

import congenial as cg
from congenial.data.counts import count
from congenial.errors import DataError, ReleaseError, UnsupportedError
from congenial.releases.directory import PARQUET, read_table
from congenial.releases.model import build_model
from congenial.releases.rows import workload_of
from support.cross_tables import (
    MARGINS,
    counted_by_hand,
    plan_of,
    random_rows,
    text_of,
    write_rows,
)

MEASURED = '[release]\npublish = ["table", "measurements"]'
NESTED = '{ root = ["total"], area = ["total", "sex"], block = ["sex"] }'


@pytest.mark.parametrize("seed", range(8))
def test_every_query_is_counted(tmp_path, seed):
    rows = random_rows(seed)
    write_rows(tmp_path, rows)
    counted = count(plan_of(), base=tmp_path)
    workload = counted.domain
    # four margins at 8 places, and 10 possible cells in each of 5 blocks
    assert len(workload) == 8 * (1 + 2 + 2 + 6) + 5 * 10
    for v in range(len(workload)):
        assert counted.counts[v] == counted_by_hand(rows, workload.path(v)), workload.path(v)


@pytest.mark.parametrize(
    ("row", "named"),
    [
        (("North", "N1", "X9", "65+", "single", 1), "'sex'"),
        (("North", "N1", "F", "", "single", 1), "'age'"),
        (("North", "N1", "F", "0-17", "married", 1), "table.impossible"),
        (("North", "S1", "F", "65+", "single", 1), "'area' and 'block'"),
    ],
)
def test_rows_outside_the_table_are_refused_without_being_shown(tmp_path, row, named):
    write_rows(tmp_path, [*random_rows(0), row])
    with pytest.raises(DataError) as caught:
        cg.release(plan_of(), tmp_path / "out", base=tmp_path, simulate=1)
    assert named in str(caught.value)
    assert "X9" not in str(caught.value)
    assert not (tmp_path / "out").exists()


def released(tmp_path, **parts):
    write_rows(tmp_path, random_rows(1))
    plan = plan_of(**{"more": MEASURED, **parts})
    cg.release(plan, tmp_path / "out", base=tmp_path, simulate=4, with_truth=True)
    return cg.read_release(tmp_path / "out")


def lines_of(place):
    with (place / "release.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize(
    "parts",
    [
        {},
        {"more": MEASURED + '\n[method]\nname = "imaging"'},
        {"margins": NESTED},
        {"invariants": 'publish_exactly = ["area: total", "root: sex"]\nnonnegative = true'},
        {"privacy": 'neighbours = "add-remove"\nepsilon = 0.5', "invariants": "nonnegative = true"},
        {
            "privacy": 'neighbours = "substitute"\nepsilon = 1.0\nnoise = "discrete-gaussian"\n'
            "delta = 1e-6"
        },
        {"margins": NESTED, "invariants": "", "more": ""},
        {
            "margins": '{ root = ["total", "sex"], area = ["total"], block = ["sex"] }',
            "invariants": 'publish_exactly = ["root: total"]',
            "privacy": 'neighbours = "substitute"\nepsilon = 8.0',
            "more": '[method]\nname = "conditioning"',
        },
    ],
    ids=[
        "topdown",
        "imaging",
        "posterior",
        "exact",
        "add-remove",
        "gaussian",
        "conditioning",
        "cut",
    ],
)
def test_a_release_is_tidy_keeps_its_invariants_and_is_verified(tmp_path, parts):
    found = released(tmp_path, **parts)
    assert all(check.passed for check in cg.verify(tmp_path / "out"))
    truth, rows = found.rows.column("truth"), random_rows(1)
    lines = lines_of(tmp_path / "out")
    assert len(lines) == len(found.domain)
    for v, line in enumerate(lines):
        # a row says all about its count: place, margin, and the value of each attribute in it
        places = [line[name] for name in ("root", "area", "block") if line[name]]
        held = {name: line[name] for name in ("sex", "age", "status", "voting") if line[name]}
        names = [] if line["margin"] == "total" else line["margin"].split(" by ")
        assert set(names) == set(held)
        path = (*places, *([", ".join(f"{n}={held[n]}" for n in names)] if names else []))
        assert path == found.domain.path(v)
        assert truth[v] == counted_by_hand(rows, path)
        assert int(line["value"]) == found.values[v]
    exact = found.model.resolved.pinned
    assert (np.array(truth)[exact] == found.values[exact]).all()
    assert found.plan.method.name == "conditioning" or (found.values >= 0).all()
    ends = [np.array(found.rows.column(c), dtype=float) for c in ("lower", "upper")]
    known = ~np.isnan(ends[0])
    assert (ends[0][known] <= found.values[known]).all()
    assert (found.values[known] <= ends[1][known]).all()


def test_a_table_needs_no_places(tmp_path):
    text = text_of(margins='["total", "sex", "age"]', more=MEASURED)
    text = text.replace('["area", "block"]', "[]").replace('domain = "blocks.csv"\n', "")
    write_rows(tmp_path, random_rows(3))
    cg.release(cg.parse_plan(text), tmp_path / "out", base=tmp_path, simulate=1, with_truth=True)
    assert all(check.passed for check in cg.verify(tmp_path / "out"))
    found = cg.read_release(tmp_path / "out")
    assert len(found.domain) == 1 + 2 + 3 + 10
    for v, truth in enumerate(found.rows.column("truth")):
        assert truth == counted_by_hand(random_rows(3), found.domain.path(v))


def test_a_changed_count_or_row_is_found(tmp_path):
    found = released(tmp_path)
    assert isinstance(found.measurements.y, np.ndarray)
    with pytest.raises(UnsupportedError, match="of a table"):
        _ = found.tree
    table = read_table(tmp_path / "out")
    rows = np.arange(len(table))
    for wrong in (rows[:-1], rows[1:], [1, 0, *rows[2:]], [0, *rows[:-1]]):
        with pytest.raises(ReleaseError, match=PARQUET):
            workload_of(table.take(np.array(wrong)), found.plan, PARQUET)
    again = workload_of(table, found.plan, PARQUET)
    assert again.names == found.domain.names


def test_no_made_up_table_of_readings_passes_for_another(tmp_path):
    released(tmp_path)
    file = tmp_path / "out" / "certificate.json"
    certificate = json.loads(file.read_text())
    certificate["plan"]["table"]["margins"] = ["total"]
    file.write_text(json.dumps(certificate))
    assert not all(check.passed for check in cg.verify(tmp_path / "out"))


@pytest.mark.parametrize("neighbours", ["substitute", "add-remove"])
@pytest.mark.parametrize("seed", range(6))
def test_the_claim_is_the_loss_of_the_worst_pair(tmp_path, seed, neighbours):
    """Every pair of cells that a record may move between, against the guarantee."""
    rng = np.random.default_rng(seed)
    exact = ["root: total", "area: total", "root: sex", "block: voting"]
    chosen = [name for name in exact if rng.random() < 0.5] if neighbours == "substitute" else []
    invariants = f"publish_exactly = {chosen}\nnonnegative = true" if chosen else ""
    plan = plan_of(
        invariants=invariants,
        privacy=f'neighbours = "{neighbours}"\nepsilon = 0.7',
        margins=MARGINS,
        more='[method]\nname = "topdown"',
    )
    write_rows(tmp_path, random_rows(seed))
    model = build_model(plan, count(plan, base=tmp_path).domain)
    chain, pinned = model.domain.chain, model.resolved.pinned
    cost = 1.0 / model.mechanism.scales
    cells = [set(column[column >= 0].tolist()) for column in chain.T]
    pairs = [one ^ other for one, other in itertools.combinations(cells, 2)]
    if neighbours == "add-remove":
        pairs = cells
    allowed = [moved for moved in pairs if not any(pinned[v] for v in moved)]
    losses = [sum(cost[v] for v in moved) for moved in allowed]
    assert max(losses) == pytest.approx(0.7, rel=1e-9)


def test_explain_shows_every_query(tmp_path):
    write_rows(tmp_path, random_rows(2))
    found = cg.explain(plan_of(), base=tmp_path)
    assert [f.level.name for f in found.forecasts] == list(plan_of().level_names)
    assert found.forecasts[0].level.exact == 1
    assert all(f.release_error is not None for f in found.forecasts)
