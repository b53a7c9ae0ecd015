"""The values that releases fix decide whether their costs add up."""

from __future__ import annotations

import duckdb
import pytest

import congenial as cg
from congenial.data.counts import open_source
from congenial.ledger.debits import read_ledger, settle
from congenial.ledger.records import Dataset, as_text
from congenial.plan.plan import parse_plan
from congenial.releases.model import build_model
from congenial.releases.shared_facts import hash_of_shared_facts
from support.city import ZONES, plan_text
from support.ledgers import debit, make_ledger

OTHER = Dataset(None, "path:/adults.csv", "adults.csv")


@pytest.fixture
def path(tmp_path):
    """Return a ledger of two datasets, some of whose entries are finished."""
    made = make_ledger(tmp_path)
    for at in range(4):
        entry = debit(made, 0.25, dataset=OTHER if at == 2 else Dataset("name:a", "path:/a", "a"))
        if at % 2:
            settle(made, entry.entry)
    return made


@pytest.mark.parametrize(
    ("fixes", "adds_up"),
    [
        (["", ""], True),
        (["a", "", "a"], True),
        (["a", "b"], False),
        (["", "a", "", "b"], False),
        ([None], True),
        ([None, ""], False),
    ],
)
def test_sums_hold_if_one_release_fixes_everything_that_the_others_fix(tmp_path, fixes, adds_up):
    path = make_ledger(tmp_path)
    made = [debit(path, 0.25, fixes=one) for one in fixes]
    assert made[-1].adds_up == adds_up
    ledger = read_ledger(path)
    assert ledger.accounts[0].adds_up == adds_up
    assert ("may promise nothing" in as_text(ledger)) != adds_up


TREE = cg.Tree.from_paths([("City", borough, str(zone)) for zone, borough in ZONES.items()])
ROOT = 'publish_exactly = ["root"]'
BOROUGHS = 'publish_exactly = ["root", "borough"]'
DATA = 'source = "rows.csv"\nlookup = { source = "zones.csv", key = "zone_id", on = "zone" }\n'


@pytest.fixture
def hashed(tmp_path):
    """Return the hash of a plan with some sections, beside a lookup."""
    (tmp_path / "zones.csv").write_text("zone_id,borough\n1,Arden\n")
    return lambda **sections: hash_of_shared_facts(
        build_model(parse_plan(plan_text(**sections)), TREE), tmp_path
    )


def test_another_content_of_the_lookup_has_another_hash(hashed, tmp_path):
    plan = {"invariants": BOROUGHS, "privacy": 'neighbours = "substitute"\nepsilon = 1.0\n'}
    one = hashed(**plan)
    assert one == hashed(**plan)
    (tmp_path / "zones.csv").write_text("zone_id,borough\n1,Brook\n")
    assert one != hashed(**plan)


def test_fixing_only_the_number_of_records_gives_no_hash(hashed):
    assert hashed(invariants=ROOT) == ""
    # of some of the rows the number is not that of the dataset
    where = DATA + 'where = "hour < 12"\n'
    assert hashed(invariants=ROOT, data=where) != ""
    entering = 'neighbours = "add-remove"\nepsilon = 1.0\n'
    assert hashed(invariants="publish_exactly = []", privacy=entering) == ""


def test_other_counts_of_other_rows_have_another_hash(hashed):
    privacy = 'neighbours = "substitute"\nepsilon = 1.0\n'
    made = {"invariants": BOROUGHS, "privacy": privacy}
    zone = made | {"invariants": 'publish_exactly = ["root", "City/Arden/1"]'}
    where = made | {"data": DATA + 'where = "hour < 12"\n'}
    later = made | {"data": DATA + 'where = "hour < 13"\n'}
    types = made | {"data": DATA + 'types = { zone = "INTEGER" }\n'}
    assert len({hashed(**one) for one in (made, zone, where, later, types)}) == 5
    # noise, method and bounds publish no count
    other = {"privacy": privacy.replace("1.0", "2.0"), "method": 'name = "imaging"'}
    assert hashed(**made) == hashed(**made | other)
    assert hashed(**made) == hashed(**made | {"invariants": BOROUGHS + "\nnonnegative = true"})


def test_bounds_that_all_compared_datasets_satisfy_are_facts(hashed):
    most, least = (f'{ROOT}\nat_{which} = {{ "Arden" = 2 }}' for which in ("most", "least"))
    privacy = 'neighbours = "substitute"\nepsilon = 1.0\n'
    conditioned = {"method": 'name = "conditioning"', "privacy": privacy}
    hashes = {hashed(invariants=text, **conditioned) for text in (ROOT, most, least)}
    assert len(hashes) == 3
    # other methods take rows that break a bound
    imaged = conditioned | {"method": 'name = "imaging"'}
    assert {hashed(invariants=text, **imaged) for text in (ROOT, most, least)} == {""}


def test_exact_counts_of_other_tables_of_a_database_have_another_hash(tmp_path):
    def found(name):
        plan = parse_plan(f"""
            data = {{ source = "a.duckdb", table = "{name}", name = "rows" }}
            hierarchy = {{ root = "R", levels = [] }}
            table = {{ attributes = {{ a = ["0", "1"], b = ["0", "1"] }}, margins = ["a"] }}
            privacy = {{ neighbours = "substitute", epsilon = 1.0 }}
            invariants = {{ publish_exactly = ["root: a"] }}
            method = {{ name = "imaging" }}
        """)
        with open_source(plan, base=tmp_path) as source:
            return hash_of_shared_facts(build_model(plan, source.domain), tmp_path)

    with duckdb.connect(str(tmp_path / "a.duckdb")) as database:
        for name in ("one", "two"):
            database.execute(f"CREATE TABLE {name} AS SELECT '0' AS a, '1' AS b")
    assert found("one") == found("one") != found("two")
