"""Plans of several tables: rows to counts, the release, its check, and the claim by every pair."""

from __future__ import annotations

import csv
import itertools
import json

import duckdb
import numpy as np
import pandas as pd
import pytest

import congenial as cg
from congenial.accounting.amounts import budget
from congenial.data.counts import count
from congenial.errors import ArgumentError, DataError, LedgerError, PlanError
from congenial.ledger.debits import reserve
from congenial.ledger.ledger_file import init_ledger
from congenial.ledger.records import Dataset
from congenial.releases.model import build_model
from support.cross_tables import AREAS
from support.edited import change, failed
from support.two_tables import (
    COMPARED,
    HOMES,
    INVARIANTS,
    PEOPLE,
    STATUS,
    counted_by_hand,
    plan_of,
    random_rows,
    text_of,
    write_rows,
)

COUNTS = 2 * 8 + 8 * 4 + 8 * 2  # totals of both, and the values of each, at 8 places


def released(place, seed=1, **parts):
    write_rows(place, *random_rows(seed))
    cg.release(plan_of(**parts), place / "out", base=place, simulate=seed, with_truth=True)
    return cg.read_release(place / "out")


@pytest.mark.parametrize("seed", range(6))
def test_every_query_of_both_tables_is_counted(tmp_path, seed):
    rows = random_rows(seed)
    write_rows(tmp_path, *rows)
    found = count(plan_of(), base=tmp_path)
    assert len(found.domain) == COUNTS
    for v, path in enumerate(found.domain.paths):
        assert found.counts[v] == counted_by_hand(*rows, path), path


@pytest.mark.parametrize("method", ["topdown", "imaging"])
@pytest.mark.parametrize(
    "privacy",
    [
        'neighbours = "substitute"\nepsilon = 0.5',
        'neighbours = "substitute"\nepsilon = 1.0\ndelta = 1e-6\nnoise = "discrete-gaussian"',
    ],
)
def test_a_release_is_tidy_keeps_the_comparison_and_is_verified(tmp_path, privacy, method):
    found = released(
        tmp_path,
        privacy=privacy,
        more=f'[method]\nname = "{method}"\n[release]\npublish = ["table", "measurements"]',
    )
    assert all(check.passed for check in cg.verify(tmp_path / "out"))
    truth, rows = found.rows.column("truth"), random_rows(1)
    with (tmp_path / "out" / "release.csv").open(newline="") as file:
        lines = list(csv.DictReader(file))
    assert list(lines[0])[:10] == [
        *("level", "level_name", "root", "area", "block"),
        *("margin", "table", "sex", "age", "status"),
    ]
    for v, line in enumerate(lines):
        held = [f"{name}={line[name]}" for name in ("sex", "age", "status") if line[name]]
        places = [line[name] for name in ("root", "area", "block") if line[name]]
        path = (*places, f"{line['table']}: {', '.join(held)}" if held else line["table"])
        assert path == found.domain.path(v)
        assert truth[v] == counted_by_hand(*rows, path)
        assert int(line["value"]) == found.values[v]
    domain = found.domain
    used = domain.array(found.values, "status", "block", "homes")[:, 0]
    assert (domain.array(found.values, (), "block", "people") >= used).all()
    assert found.values[domain.find({}, "Town", "people")] == truth[0]


def test_add_remove_neighbours_and_no_exact_counts(tmp_path):
    released(
        tmp_path,
        privacy='neighbours = "add-remove"\nepsilon = 1.0',
        invariants=f"nonnegative = true\n{COMPARED}",
    )
    assert all(check.passed for check in cg.verify(tmp_path / "out"))


@pytest.mark.parametrize("neighbours", ["substitute", "add-remove"])
@pytest.mark.parametrize("seed", range(4))
def test_the_claim_is_the_loss_of_the_worst_pair_of_each_table(tmp_path, seed, neighbours):
    """A record moves within its table, or enters one; both tables spend the whole epsilon."""
    exact = ["root: people: total", "area: homes: total"][: (neighbours == "substitute") * 2]
    plan = plan_of(
        invariants=f"publish_exactly = {exact}\nnonnegative = true\n{COMPARED}",
        privacy=f'neighbours = "{neighbours}"\nepsilon = 0.7',
    )
    write_rows(tmp_path, *random_rows(seed))
    model = build_model(plan, count(plan, base=tmp_path).domain)
    cost, pinned = 1.0 / model.mechanism.scales, model.resolved.pinned
    cells = [set(column[column >= 0].tolist()) for column in model.domain.chain.T]
    people = model.domain.tables[0].possible.sum()
    for own in (cells[:people], cells[people:]):
        moves = [one ^ other for one, other in itertools.combinations(own, 2)]
        moves = own if neighbours == "add-remove" else moves
        losses = [sum(cost[v] for v in m) for m in moves if not any(pinned[v] for v in m)]
        assert max(losses) == pytest.approx(0.7, rel=1e-9)


def test_the_certificate_says_whose_records_and_which_comparison(tmp_path):
    found = released(tmp_path)
    stated = json.loads((tmp_path / "out" / "certificate.json").read_text())
    assert stated["domain"]["tables"] == [
        {"table": "people", "weight": "people"},
        {"table": "homes", "weight": "homes"},
    ]
    assert stated["domain"]["weight"] is None
    assert {"kind": "as-many", "listed": ["people >= homes: status=in use"]} in stated["invariants"]
    shares = {one["level"]: one["share_of_budget"] for one in stated["noise"]["levels"]}
    for name in ("people", "homes"):
        of = [share for level, share in shares.items() if level.split(": ")[1] == name]
        assert sum(of) == pytest.approx(1.0)
    assert found.certificate.domain.tables[1].table == "homes"


def test_altered_certificates_are_found(tmp_path):
    released(tmp_path)
    out = tmp_path / "out"
    assert failed(out) == []
    stated = (out / "certificate.json").read_text()
    for act, check in (
        (lambda c: c["domain"]["tables"].pop(), "domain"),
        (lambda c: c["domain"]["tables"][1].update(weight=None), "domain"),
        (lambda c: c["invariants"].pop(), "invariants"),
        (lambda c: c["plan"]["invariants"].update(as_many=[]), "plan hash"),
    ):
        change(out, act)
        assert check in failed(out)
        (out / "certificate.json").write_text(stated)


def test_a_comparison_that_the_counts_break_fails_the_check_of_bounds(tmp_path):
    """A release without the comparison, in a certificate that states it."""
    for seed in range(40):
        place = tmp_path / str(seed)
        place.mkdir()
        found = released(
            place,
            seed,
            invariants="nonnegative = true",
            privacy='neighbours = "substitute"\nepsilon = 0.2',
        )
        domain = found.domain
        used = domain.array(found.values, "status", "block", "homes")[:, 0]
        if (domain.array(found.values, (), "block", "people") < used).any():
            break
    change(
        place / "out",
        lambda c: c["plan"]["invariants"].update(as_many=["people >= homes: status=in use"]),
    )
    assert "bounds" in failed(place / "out")


def test_explain_compare_and_audit_take_several_tables(tmp_path):
    write_rows(tmp_path, *random_rows(2))
    plan = plan_of()
    found = cg.explain(plan, base=tmp_path)
    assert [f.level.name for f in found.forecasts] == list(plan.level_names)
    assert "block: homes: status" in plan.level_names
    assert all(f.release_error is not None for f in found.forecasts)


def test_frames_are_given_by_table(tmp_path):
    people, homes = random_rows(3)
    write_rows(tmp_path, people, homes)
    frames = {
        "people": pd.DataFrame(people, columns=["area", "block", "sex", "age", "people"]),
        "homes": pd.DataFrame(homes, columns=["area", "block", "status", "homes"]),
    }
    by_frame = count(plan_of(), base=tmp_path, frame=frames)
    assert (by_frame.counts == count(plan_of(), base=tmp_path).counts).all()
    with pytest.raises(ArgumentError, match="'people' and 'homes'"):
        count(plan_of(), base=tmp_path, frame=frames["people"])


def test_one_debit_is_for_the_rows_of_all_tables(tmp_path):
    write_rows(tmp_path, *random_rows(4))
    init_ledger(tmp_path / "budget.sqlite", budget=budget("1", "1e-6"), neighbours="substitute")
    privacy = 'neighbours = "substitute"\nepsilon = 0.6\nledger = "budget.sqlite"'
    with pytest.raises(PlanError, match="name is missing"):
        plan_of(privacy=privacy)
    plan = plan_of(
        privacy=privacy, data='source = "people.csv"\nweight = "people"\nname = "census"'
    )
    made = cg.release(plan, tmp_path / "out", base=tmp_path)
    assert made.debit is not None
    assert all(check.passed for check in cg.verify(tmp_path / "out"))
    with pytest.raises(cg.CongenialError, match="remain"):
        cg.release(plan, tmp_path / "again", base=tmp_path)
    assert not (tmp_path / "again").exists()


def test_rows_counted_with_others_have_no_second_budget(tmp_path):
    write_rows(tmp_path, *random_rows(4))
    privacy = 'neighbours = "substitute"\nepsilon = 0.6\nledger = "budget.sqlite"'
    joint = plan_of(privacy=privacy, data='source = "people.csv"\nweight = "people"\nname = "all"')
    alone = cg.parse_plan(f"""
        data = {{ source = "homes.csv", weight = "homes" }}
        hierarchy = {{ root = "Town", levels = ["area", "block"], domain = "blocks.csv" }}
        [privacy]
        {privacy}
    """)
    ledger = {"budget": budget("1", "1e-6"), "neighbours": "substitute"}
    init_ledger(tmp_path / "budget.sqlite", **ledger)
    cg.release(joint, tmp_path / "joint", base=tmp_path)
    with pytest.raises(LedgerError, match=r"data\.name is missing"):
        cg.release(alone, tmp_path / "alone", base=tmp_path)
    # the other way round, the plan of both spends what the homes have left
    (tmp_path / "budget.sqlite").unlink()
    init_ledger(tmp_path / "budget.sqlite", **ledger)
    cg.release(alone, tmp_path / "alone", base=tmp_path)
    with pytest.raises(cg.CongenialError, match="remain"):
        cg.release(joint, tmp_path / "again", base=tmp_path)


def test_rows_with_two_budgets_are_not_counted_together(tmp_path):
    path = tmp_path / "budget.sqlite"
    init_ledger(path, budget=budget("1", "1e-6"), neighbours="substitute")
    cost = budget("0.1", "0")
    for place in ("path:/people", "path:/homes"):
        rows = Dataset(None, place, place)
        reserve(path, rows, release="a", cost=cost, neighbours="substitute")
    both = Dataset("name:all", "path:/people", "all", ("path:/homes",))
    with pytest.raises(LedgerError, match=r"2 budgets .* a plan of its own"):
        reserve(path, both, release="b", cost=cost, neighbours="substitute")


@pytest.mark.parametrize(
    ("table", "row", "named"),
    [
        ("people", ("North", "N1", "X9", "18+", 1), "'sex'"),
        ("homes", ("North", "N1", "X9", 1), "'status'"),
        ("homes", ("North", "S1", "empty", 1), "'area' and 'block'"),
    ],
)
def test_rows_that_do_not_fit_are_refused_without_being_shown(tmp_path, table, row, named):
    people, homes = random_rows(5)
    (people if table == "people" else homes).append(row)
    write_rows(tmp_path, people, homes)
    with pytest.raises(DataError) as caught:
        cg.release(plan_of(), tmp_path / "out", base=tmp_path, simulate=1)
    assert named in str(caught.value)
    assert "X9" not in str(caught.value)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ({"homes": HOMES.replace("homes.csv", "people.csv")}, ["tables.homes.rows", "in both"]),
        ({"homes": HOMES.replace('weight = "homes"', 'where = "a = 1"')}, ["rows.where", "view"]),
        ({"homes": HOMES.replace("homes.csv", "./people.csv")}, ["tables.homes.rows", "in both"]),
        (
            {"homes": HOMES.replace('weight = "homes"', 'name = "flats"')},
            ["rows.name", "data.name"],
        ),
        ({"domain": "data"}, ["hierarchy.domain", "public file"]),
        ({"invariants": 'as_many = ["people"]'}, ["invariants.as_many", "two counts"]),
        ({"invariants": 'as_many = ["people >= flats"]'}, ["'flats'", "'people' or 'homes'"]),
        ({"invariants": 'as_many = ["people >= homes: status=gone"]'}, ["'gone'", "in use"]),
        ({"invariants": 'as_many = ["people >= homes: sex=F"]'}, ["as_many", "margins at 'block'"]),
        ({"invariants": 'as_many = ["people >= people: sex=F, age=18+"]'}, ["with itself"]),
        ({"invariants": INVARIANTS, "people": PEOPLE.replace('"total", ', "")}, ["as_many"]),
        ({"more": '[method]\nname = "posterior"'}, ["method.name", "several tables"]),
        (
            {
                "privacy": 'neighbours = "substitute"\nepsilon = 1.0\n'
                'split = { "block: people: sex by age" = 1.0 }'
            },
            ["split", "'homes'", "each table"],
        ),
        (
            {"more": "[table]\nattributes = { sex = ['F'] }\nmargins = ['total']"},
            ["beside the section"],
        ),
        ({"invariants": 'publish_exactly = ["block: homes: status"]'}, ["the deepest level"]),
    ],
)
def test_wrong_plans_are_answered_in_a_sentence(parts, words):
    with pytest.raises(PlanError) as caught:
        plan_of(**parts)
    text = str(caught.value)
    assert "\n" not in text
    assert all(word in text for word in words), text


@pytest.mark.parametrize("name", ["table", "total", "root", "a: b", "a >= b"])
def test_names_of_tables_are_unlike_what_queries_say(name):
    with pytest.raises(PlanError, match="has the name"):
        cg.parse_plan(
            text_of().replace("[tables.homes]", f'[tables."{name}"]').replace(COMPARED, "")
        )


def same_rows(tmp_path, source, more=""):
    text = f'rows = {{ source = "{source}", weight = "people"{more} }}'
    homes = HOMES.replace(HOMES.split("\n")[0], text)
    return homes.replace("status", "age").replace('"in use", "empty"', '"0-17", "18+"')


@pytest.mark.parametrize("source", ["{}/people.csv", "link.csv", "peop*.csv"])
def test_the_same_file_under_two_names_is_refused(tmp_path, source):
    write_rows(tmp_path, *random_rows(1))
    (tmp_path / "link.csv").symlink_to(tmp_path / "people.csv")
    plan = plan_of(
        homes=same_rows(tmp_path, source.format(tmp_path)), invariants="nonnegative = true"
    )
    with pytest.raises(DataError, match=r"tables\.homes\.rows are those of tables\.people"):
        cg.release(plan, tmp_path / "out", base=tmp_path, simulate=1)
    assert not (tmp_path / "out").exists()


def test_the_same_table_and_the_same_frame_are_refused(tmp_path):
    write_rows(tmp_path, *random_rows(1))
    with duckdb.connect(str(tmp_path / "a.duckdb")) as database:
        for name in ("people", "homes"):
            place = tmp_path / f"{name}.csv"
            database.execute(f"CREATE TABLE {name} AS SELECT * FROM '{place}'")
    data = 'source = "a.duckdb"\ntable = "people"\nweight = "people"'
    again = same_rows(tmp_path, "a.duckdb", ', table = "main.people"')
    with pytest.raises(DataError, match="a record would count in both"):
        count(plan_of(data=data, homes=again, invariants="nonnegative = true"), base=tmp_path)
    apart = HOMES.replace('"homes.csv"', '"a.duckdb", table = "main.homes"')
    found = count(plan_of(data=data, homes=apart), base=tmp_path)
    assert (found.counts == count(plan_of(), base=tmp_path).counts).all()
    frame = pd.read_csv(tmp_path / "people.csv")
    plan = plan_of(homes=same_rows(tmp_path, "other.csv"), invariants="nonnegative = true")
    with pytest.raises(DataError, match="a record would count in both"):
        count(plan, base=tmp_path, frame={"people": frame, "homes": frame})


def test_a_table_whose_counts_are_all_exact_spends_nothing(tmp_path):
    exact = ", ".join(
        f'"Town/{area}/{block}: homes: status={status}"'
        for area, held in AREAS.items()
        for block in held
        for status in STATUS
    )
    found = released(tmp_path, invariants=f"nonnegative = true\npublish_exactly = [{exact}]")
    assert all(check.passed for check in cg.verify(tmp_path / "out"))
    shares = [level.share_of_budget for level in found.certificate.noise.levels]
    assert sum(shares) == pytest.approx(1.0)


def test_a_record_counts_twice_nowhere(tmp_path):
    """Two tables without rows of their own would count the rows of `data` twice."""
    with pytest.raises(PlanError, match="in both"):
        plan_of(homes=HOMES.split("\n", 1)[1])
    assert np.array_equal(plan_of().parts[0].attributes["sex"], ("F", "M"))
