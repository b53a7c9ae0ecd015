"""A release in parts has the files and the claims of a release drawn at once."""

from __future__ import annotations

import inspect
import json
import re

import numpy as np
import pytest

import congenial as cg
from congenial.accounting.amounts import amount_of
from congenial.data.counts import open_source
from congenial.errors import DataError, PlanError
from congenial.ledger.debits import read_ledger
from congenial.ledger.ledger_file import init_ledger
from congenial.releases import directory as files
from congenial.releases.making import part_files
from congenial.releases.making.part_files import RowsHere
from congenial.releases.making.part_law import CutNode
from congenial.releases.making.part_source import PartSource
from congenial.releases.making.spark_parts import RowsInSpark
from congenial.verification.verdict import verify
from support.city import make_city
from support.part_worlds import make_world
from support.parts import PARTED, keys_of, make, refused, stated_in, table_of


@pytest.mark.parametrize("seed", range(24))
def test_random_releases_have_the_rows_and_claims_of_those_made_at_once(seed, tmp_path):
    level = make_world(tmp_path, np.random.default_rng([seed, 2026]))
    problems = [refused(tmp_path, "whole", seed), refused(tmp_path, "parts", seed, parts=level)]
    if any(problems):
        # of nodes from the rows, an exact one may have one part; a path may look like a longer one
        assert problems[0] == problems[1] or re.search(
            "has a single child|/.* no path", problems[1]
        )
        return
    assert keys_of(tmp_path / "parts") == keys_of(tmp_path / "whole")
    whole, parts = (table_of(tmp_path / name) for name in ("whole", "parts"))
    assert [row["truth"] for row in parts] == [row["truth"] for row in whole]
    assert stated_in(tmp_path / "parts") == stated_in(tmp_path / "whole")
    assert [check for check in verify(tmp_path / "parts") if not check.passed] == []


@pytest.mark.parametrize("method", ["topdown", "conditioning"])
@pytest.mark.parametrize("seed", range(8))
def test_parts_that_are_counted_together_have_the_counts_of_each_one(
    seed, method, tmp_path, monkeypatch
):
    level = make_world(tmp_path, np.random.default_rng([seed, 2031]), method=method)
    opened = []

    def counting(*args, within=(), **options):
        opened.append(len(within))
        return open_source(*args, within=within, **options)

    monkeypatch.setattr(part_files, "open_source", counting)
    made = {}
    for most in (0, 20, 10**6):
        monkeypatch.setattr(part_files, "_TOGETHER", most)
        problem = refused(tmp_path, f"by-{most}", seed, parts=level)
        if not problem:
            made[most] = max(opened), (tmp_path / f"by-{most}" / files.CSV).read_bytes()
        opened.clear()
    if made:
        assert made[0] == (1, made[10**6][1])
        assert made[20][1] == made[0][1]
        assert made[0][0] <= made[20][0] <= made[10**6][0]
        places = table_of(tmp_path / "by-0")
        assert made[10**6][0] == sum(row["level_name"] == level for row in places)


def test_groups_of_parts_are_small_or_one_part(monkeypatch):
    nodes = [CutNode((str(k),), k, False, 0.0, np.inf) for k in range(7)]
    monkeypatch.setattr(part_files, "_TOGETHER", 10)
    groups = part_files.in_groups(nodes, [4, 6, 1, 30, 0, 10, 1])
    assert [[node.records for node in group] for group in groups] == [[0, 1], [2], [3], [4, 5], [6]]
    assert list(part_files.in_groups([], [])) == []


def test_a_part_that_is_gone_is_a_change():
    tree = cg.Tree.from_paths(["r/a/1", "r/a/2", "r/b/1"])
    with pytest.raises(DataError, match="the rows changed"):
        list(part_files.parts_of(tree, tree.roll_up([1, 2, 3]), 1, 3))
    parts = list(part_files.parts_of(tree, tree.roll_up([1, 2, 3]), 1, 2))
    assert [list(part.names) for part, _ in parts] == [["r", "a", "1", "2"], ["r", "b", "1"]]
    assert [part.parents.tolist() for part, _ in parts] == [[-1, 0, 1, 1], [-1, 0, 1]]
    assert [counts.tolist() for _, counts in parts] == [[3, 3, 1, 2], [3, 3, 3]]


def test_rows_that_change_between_two_parts_are_refused_and_stay_debited(tmp_path, monkeypatch):
    monkeypatch.setattr(part_files, "_TOGETHER", 0)
    make_city(
        tmp_path,
        **PARTED,
        privacy='neighbours = "substitute"\nepsilon = 1.0\nledger = "budget.ledger"',
    )
    init_ledger(tmp_path / "budget.ledger", budget=amount_of(3.0, 0.1), neighbours="substitute")

    def change(step):
        if step.startswith("part 2"):
            (tmp_path / "rows.csv").write_text("hour,zone\n1,1\n")

    with pytest.raises(DataError, match="the rows changed") as caught:
        make(tmp_path, parts="borough", notify=change)
    assert not re.search("[0-9]", str(caught.value))
    assert not (tmp_path / "out").exists()
    [account] = read_ledger(tmp_path / "budget.ledger").accounts
    assert [debit.state for debit in account.entries] == ["reserved"]


def test_noise_with_a_numerical_error_is_refused(tmp_path):
    make_city(
        tmp_path,
        **PARTED,
        privacy='neighbours = "substitute"\nepsilon = 1e-4\ndelta = 1e-6\n'
        'noise = "discrete-gaussian"',
    )
    with pytest.raises(PlanError, match="give a larger epsilon, or leave parts out"):
        make(tmp_path, parts="borough")


def test_a_frame_is_counted_part_by_part(tmp_path):
    pandas = pytest.importorskip("pandas")
    make_city(tmp_path, **PARTED)
    frame = pandas.DataFrame({"zone": [1, 1, 4, 6, 6, 6]})
    make(tmp_path, parts="borough", frame=frame, simulate=1, with_truth=True)
    truth = {row["zone"]: row["truth"] for row in table_of(tmp_path / "out") if row["zone"]}
    assert truth == {"1": "2", "2": "0", "3": "0", "4": "1", "5": "0", "6": "3"}


@pytest.mark.parametrize("source", [RowsHere, RowsInSpark])
def test_a_source_has_the_methods_of_all_sources(source):
    asked = [name for name in vars(PartSource) if not name.startswith("_")]
    assert {"messages", "measure", "shapes", "write"} < set(asked)
    for name in asked:
        expected = getattr(PartSource, name)
        if name != "keyed":
            found = inspect.signature(getattr(source, name)).parameters
            assert list(found) == list(inspect.signature(expected).parameters)
    assert isinstance(source.keyed, bool | property)


@pytest.mark.parametrize("method", ["topdown", "imaging", "posterior", "conditioning"])
@pytest.mark.parametrize(
    ("rows", "exact", "message"),
    [
        # without a's people, those of b are the same in all neighbouring datasets
        (["a,a1", "a,a2", "b,b1", "b,b2"], ["a"], "a node has no measurement"),
        # all people are in a and in a0, so that only the deepest counts change
        (["a,a0,a1", "a,a0,a2"], ["root"], "a node has a single child, and the counts of both"),
    ],
)
def test_cut_nodes_whose_counts_cannot_change_are_refused(method, rows, exact, message, tmp_path):
    levels = ["l1", "l2", "l3"][: rows[0].count(",") + 1]
    text = "\n".join([",".join(levels), *rows * 9])
    (tmp_path / "rows.csv").write_text(text)
    (tmp_path / "plan.toml").write_text(f"""
        data = {{ source = "rows.csv" }}
        hierarchy = {{ root = "all", levels = {json.dumps(levels)}, domain = "data" }}
        privacy = {{ neighbours = "substitute", epsilon = 1.0 }}
        invariants = {{ nonnegative = true, publish_exactly = {json.dumps(exact)} }}
        method = {{ name = "{method}" }}
    """)
    with pytest.raises(PlanError, match=message):
        make(tmp_path, parts="l1")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("method", ["topdown", "imaging", "posterior"])
def test_filtered_rows_in_a_chain_of_places_have_no_parts_there(method, tmp_path):
    """A record enters or leaves all counts; it moves between the deepest ones alone."""
    (tmp_path / "rows.csv").write_text("l1,l2,l3,flag\n" + "a,b,c,y\na,b,d,y\n" * 9)
    (tmp_path / "places.csv").write_text("l1,l2,l3\na,b,c\na,b,d\n")
    (tmp_path / "plan.toml").write_text(f"""
        data = {{ source = "rows.csv", where = "flag = 'y'" }}
        hierarchy = {{ root = "all", levels = ["l1", "l2", "l3"], domain = "places.csv" }}
        privacy = {{ neighbours = "substitute", epsilon = 16.0 }}
        invariants = {{ nonnegative = true }}
        method = {{ name = "{method}" }}
        release = {{ publish = ["table", "measurements"] }}
    """)
    with pytest.raises(PlanError, match="no record can move to another node"):
        make(tmp_path, parts="l1")
    make(tmp_path, parts="l2")
    assert all(check.passed for check in cg.verify(tmp_path / "out"))
