"""Releases and their debits: before the noise, once, and stated in the certificate."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from datetime import datetime, timedelta

import msgspec
import pytest

import congenial.releases.making.make_release
from congenial.accounting.amounts import amount_of
from congenial.cli import command_line as cli
from congenial.conditioning.laws.forest_sampler import Conditioned
from congenial.errors import (
    BudgetError,
    LedgerError,
    PlanError,
    ReleaseError,
)
from congenial.ledger.debits import read_ledger
from congenial.ledger.lookup import beside
from congenial.ledger.records import RESERVED, SPENT
from congenial.plan.plan import read_plan
from congenial.preview.explanation import as_text, explain
from congenial.releases import directory as files
from congenial.releases.certificate import check_debit, read_certificate
from congenial.releases.making.make_release import release
from congenial.verification.verdict import verify
from support.city import SECTIONS, TRIPS, listing, make_city
from support.ledgers import execute, make_ledger, reseal
from support.rows import refusal

PRIVACY = SECTIONS["privacy"] + '\nledger = "ledger"\n'


def city(place, **options):
    """Make the small city with a ledger for three releases."""
    make_ledger(place, **options)
    return make_city(place, privacy=PRIVACY)


def make(place, out="out", **options):
    return release(read_plan(place / "plan.toml"), place / out, base=place, **options)


def entries(place):
    return [
        entry for account in read_ledger(place / "ledger").accounts for entry in account.entries
    ]


def test_a_release_is_debited_once_and_says_so(tmp_path, capsys):
    city(tmp_path)
    made = make(tmp_path)
    [entry] = entries(tmp_path)
    claim = made.certificate.guarantee
    assert (entry.state, entry.release, entry.entry) == (SPENT, "out", made.debit.entry)
    assert entry.cost == made.debit.cost == amount_of(claim.epsilon, claim.delta)
    assert made.settled
    stated = json.loads((made.directory / files.CERTIFICATE).read_text())["ledger"]
    assert stated["entry"] == entry.entry
    assert (stated["epsilon"], stated["delta"]) == (entry.cost.epsilon_text, entry.cost.delta_text)
    checks = {check.name: check for check in verify(made.directory)}
    assert all(check.passed for check in checks.values())
    assert entry.entry in checks["ledger"].text
    # whose rows they are stays in the ledger
    [account] = read_ledger(tmp_path / "ledger").accounts
    assert account.fingerprint[:8] not in (made.directory / files.CERTIFICATE).read_text()
    assert cli.run(["release", str(tmp_path / "plan.toml"), "--out", str(tmp_path / "two")]) == 0
    told = capsys.readouterr().out
    assert f"'rows.csv' (dataset {account.fingerprint[:8]}); epsilon 1 and" in told


CROSSED = """
[data]
source = "rows.csv"
[hierarchy]
root = "all"
levels = {levels}
domain = "cells.csv"
names_repeat = true
[privacy]
neighbours = "substitute"
epsilon = 0.5
ledger = "ledger"
[invariants]
publish_exactly = {exact}
"""


def crossed(place, levels, exact):
    plan = place / "crossed.toml"
    plan.write_text(CROSSED.format(levels=json.dumps(levels), exact=json.dumps(exact)))
    return plan


def test_releases_without_shared_neighbours_are_reported(tmp_path, capsys):
    make_ledger(tmp_path)
    cells = "".join(f"{r},{c}\n" for r in "ab" for c in "xy")
    for name in ("rows.csv", "cells.csv"):
        (tmp_path / name).write_text(f"row,column\n{cells}")
    rows, columns = ["row", "column"], ["column", "row"]
    told = []
    for out, levels, exact in (
        ("rows", rows, ["root", "row"]),
        ("total", columns, ["root"]),
        ("rows-again", rows, ["root", "row"]),
        ("columns", columns, ["root", "column"]),
    ):
        plan = crossed(tmp_path, levels, exact)
        arguments = ["release", str(plan), "--out", str(tmp_path / out), "--json"]
        assert cli.run(arguments) == 0
        done = capsys.readouterr()
        adds_up = json.loads(done.out)["result"]["debit"]["adds_up"]
        assert ("Warning: The releases of 'rows.csv' publish different" in done.err) != adds_up
        told.append(adds_up)
    # rows and columns are never exact in neighbouring datasets: four records move at once
    assert told == [True, True, True, False]
    assert cli.run(["ledger", "show", str(tmp_path / "ledger")]) == 0
    assert "the sum of their epsilons may promise nothing" in capsys.readouterr().out


def test_over_budget_nothing_is_drawn_or_written(tmp_path, monkeypatch):
    city(tmp_path, epsilon="2")
    make(tmp_path, "one")
    # replacing a release is another release
    make(tmp_path, "one", overwrite=True)
    before, kept = listing(tmp_path), (tmp_path / "one" / files.CSV).read_bytes()
    monkeypatch.setattr(Conditioned, "sample", lambda *_, **__: pytest.fail("noise was drawn"))
    told = refusal(lambda: make(tmp_path, "one", overwrite=True), BudgetError)
    assert "requested epsilon 1 and" in told
    assert "remaining epsilon 0 and" in told
    assert "missing epsilon 1 and delta 0" in told
    assert listing(tmp_path) == before
    assert (tmp_path / "one" / files.CSV).read_bytes() == kept
    assert [entry.state for entry in entries(tmp_path)] == [SPENT, SPENT]


def test_other_plans_for_the_same_rows_spend_the_same_budget(tmp_path):
    plan = city(tmp_path, epsilon="2")
    make(tmp_path, "one")
    (tmp_path / "elsewhere").mkdir()
    rule = 'where = "hour < 12"\ntypes = { hour = "INTEGER" }'
    text = plan.read_text().replace("[hierarchy]", f"{rule}\n[hierarchy]")
    text = text.replace("split = { borough = 0.4, zone = 0.6 }\n", "").replace('"l', '"../l')
    text = text.replace('"../lookup"', '"lookup"').replace("rows.csv", "../rows.csv")
    text = text.replace('"zones.csv"', '"../zones.csv"')
    (tmp_path / "elsewhere" / "plan.toml").write_text(text)
    place = tmp_path / "elsewhere"
    second = release(read_plan(place / "plan.toml"), place / "two", base=place)
    assert not second.debit.first
    refusal(lambda: make(tmp_path, "three"), BudgetError)


def test_a_simulation_debits_nothing_and_says_so(tmp_path, capsys):
    plan = city(tmp_path)
    before = (tmp_path / "ledger").read_bytes()
    out = str(tmp_path / "out")
    assert cli.run(["release", str(plan), "--out", out, "--simulate", "1"]) == 0
    assert "a simulation spends nothing" in capsys.readouterr().out
    assert (tmp_path / "ledger").read_bytes() == before
    assert all(check.passed for check in verify(out))
    assert read_certificate(tmp_path / "out" / files.CERTIFICATE).ledger is None


@pytest.mark.parametrize(
    "stage",
    [
        "making.make_release.build_model",
        "making.make_release._counted",
        "atomic_directory._check_target",
    ],
)
def test_a_failure_before_the_debit_costs_nothing(tmp_path, monkeypatch, stage):
    city(tmp_path)
    monkeypatch.setattr(f"congenial.releases.{stage}", fail)
    with pytest.raises(ReleaseError, match="planted"):
        make(tmp_path)
    assert entries(tmp_path) == []


@pytest.mark.parametrize(
    "stage",
    [
        "making.make_release.checked_draws",
        "making.make_release.certify",
        "atomic_directory._settle",
        "atomic_directory._put",
    ],
)
def test_a_failure_after_the_debit_stays_debited(tmp_path, monkeypatch, stage):
    city(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(f"congenial.releases.{stage}", fail)
        with pytest.raises(ReleaseError, match="planted"):
            make(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(Conditioned, "sample", fail)
        with pytest.raises(ReleaseError, match="planted"):
            make(tmp_path)
    assert [entry.state for entry in entries(tmp_path)] == [RESERVED, RESERVED]
    assert not (tmp_path / "out").exists()
    make(tmp_path)
    assert [entry.state for entry in entries(tmp_path)] == [RESERVED, RESERVED, SPENT]
    refusal(lambda: make(tmp_path, "two"), BudgetError)


def fail(*_, **__):
    raise ReleaseError("planted")


def test_the_debit_is_committed_when_noise_is_drawn(tmp_path, monkeypatch):
    city(tmp_path)
    sample, seen = Conditioned.sample, []

    def watched(self, *arguments, **options):
        with closing(sqlite3.connect(tmp_path / "ledger")) as other:
            seen.extend(other.execute("SELECT state FROM entries").fetchall())
        return sample(self, *arguments, **options)

    monkeypatch.setattr(Conditioned, "sample", watched)
    make(tmp_path)
    assert seen == [(RESERVED,)]


def test_a_ledger_that_fails_last_does_not_undo_a_release(tmp_path, monkeypatch, capsys):
    plan = city(tmp_path)

    def broken(path, entry):
        raise LedgerError(f"the ledger {path} is locked; wait.")

    monkeypatch.setattr(congenial.releases.making.make_release, "settle", broken)
    assert cli.run(["release", str(plan), "--out", str(tmp_path / "out")]) == 0
    [entry] = entries(tmp_path)
    assert (
        f"{entry.entry} as spent. The entry stays unfinished, and an unfinished entry counts as "
        "spent" in capsys.readouterr().err
    )
    assert entry.state == RESERVED
    assert all(check.passed for check in verify(tmp_path / "out"))


def test_a_missing_ledger_is_reported_before_counting(tmp_path, monkeypatch):
    make_city(tmp_path, privacy=PRIVACY)
    before = listing(tmp_path)
    monkeypatch.setattr(
        congenial.releases.making.make_release,
        "open_source",
        lambda *_, **__: pytest.fail("counted"),
    )
    told = refusal(lambda: make(tmp_path), LedgerError)
    assert "congenial ledger init" in told
    assert listing(tmp_path) == before


def test_a_ledger_for_other_neighbours_is_refused(tmp_path):
    city(tmp_path, neighbours="add-remove")
    assert "do not add up" in refusal(lambda: make(tmp_path), LedgerError)


@pytest.mark.parametrize(
    ("sections", "told"),
    [
        ({"privacy": SECTIONS["privacy"] + "ledger = 3"}, "privacy.ledger is 3; give text"),
        ({"privacy": SECTIONS["privacy"] + "ledger = ''"}, "privacy.ledger is empty"),
        ({"data": SECTIONS["data"] + "name = ['x']"}, "data.name is ['x']; give text"),
        ({"data": SECTIONS["data"] + "name = ' '"}, "data.name is empty"),
        (
            {"data": SECTIONS["data"].replace("rows.csv", "r*.csv"), "privacy": PRIVACY},
            "data.name is missing, and 'r*.csv' is a pattern",
        ),
    ],
)
def test_a_plan_with_an_invalid_ledger_is_refused(tmp_path, sections, told):
    make_city(tmp_path, **sections)
    assert told in refusal(lambda: make(tmp_path), PlanError)


def test_a_pattern_with_a_name_is_released(tmp_path):
    make_ledger(tmp_path)
    data = SECTIONS["data"].replace("rows.csv", "r*.csv") + '\nname = "trips"'
    make_city(tmp_path, data=data, privacy=PRIVACY)
    assert make(tmp_path).debit.label == "trips"


def test_explain_states_the_cost_and_the_remaining_budget(tmp_path, capsys):
    city(tmp_path, epsilon="1.5")
    plan = read_plan(tmp_path / "plan.toml")
    before = (tmp_path / "ledger").read_bytes()
    text = as_text(explain(plan, tmp_path))
    assert "A release costs epsilon 1 and delta 0" in text
    assert "epsilon 1.5 and delta 1e-6 remain" in text
    assert "then epsilon 0.5 and delta 1e-6" in text
    assert (tmp_path / "ledger").read_bytes() == before
    make(tmp_path)
    found = explain(plan, tmp_path)
    assert found.remaining.epsilon_text == "0.5"
    assert "A release would be refused: it costs epsilon 1 and" in as_text(found)
    refused = refusal(lambda: make(tmp_path, "again"), BudgetError)
    assert f"remaining {found.remaining}" in refused
    assert cli.run(["explain", str(tmp_path / "plan.toml"), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)["result"]
    assert told["remaining"]["epsilon"] == "0.5"
    (tmp_path / "ledger").unlink()
    found = explain(plan, tmp_path)
    assert found.remaining is None
    assert "A release would be refused: there is no ledger" in as_text(found)


def test_the_certificate_names_no_directory(tmp_path):
    make_ledger(tmp_path)
    make_city(tmp_path, privacy=SECTIONS["privacy"] + f'\nledger = "{tmp_path}/ledger"\n')
    made = make(tmp_path)
    assert str(tmp_path) not in (made.directory / files.CERTIFICATE).read_text()
    assert all(check.passed for check in verify(made.directory))


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"epsilon": "0.5"}, "another debit"),
        ({"delta": "1e-9"}, "another debit"),
        ({"delta": "many"}, "another debit"),
        ({"entry": "1"}, "not 32 hexadecimal digits"),
    ],
)
def test_a_debit_that_does_not_fit_the_claim_is_found(tmp_path, change, told):
    city(tmp_path)
    certificate = make(tmp_path).certificate
    assert check_debit(certificate)[0]
    wrong = msgspec.structs.replace(
        certificate, ledger=msgspec.structs.replace(certificate.ledger, **change)
    )
    passed, found = check_debit(wrong)
    assert not passed
    assert told in found


def checked(directory, **options):
    [check] = [c for c in verify(directory, **options) if c.name == "ledger"]
    return check.passed, check.text


def test_verify_looks_up_the_entry_where_the_ledger_is(tmp_path, capsys):
    city(tmp_path)
    made = make(tmp_path)
    [entry] = entries(tmp_path)
    before = (tmp_path / "ledger").read_bytes()
    passed, told = checked(made.directory)
    assert passed
    assert told.endswith("the ledger ledger lists the entry as spent")
    # elsewhere only where it is named
    (tmp_path / "ledger").rename(tmp_path / "moved")
    passed, told = checked(made.directory)
    assert passed
    assert told.endswith("not looked up, as the plan's ledger is not here")
    assert checked(made.directory, ledger=tmp_path / "moved")[1].endswith(
        "lists the entry as spent"
    )
    asked = ["verify", str(made.directory), "--ledger", str(tmp_path / "moved")]
    assert cli.run(asked) == 0
    assert "lists the entry as spent" in capsys.readouterr().out
    assert (tmp_path / "moved").read_bytes() == before
    # never finished, and counted all the same
    execute(tmp_path / "moved", f"UPDATE entries SET state = '{RESERVED}'")
    reseal(tmp_path / "moved")
    passed, told = checked(made.directory, ledger=tmp_path / "moved")
    assert passed
    assert told.endswith("lists the entry as unfinished, counted as spent")
    # a release comes after its debit, and not long after
    for days, near in ((-6, True), (-8, False), (0.01, True), (1, False)):
        then = datetime.fromisoformat(entry.made) + timedelta(days=days)
        execute(tmp_path / "moved", f"UPDATE entries SET made = '{then.isoformat()}'")
        reseal(tmp_path / "moved")
        passed, told = checked(made.directory, ledger=tmp_path / "moved")
        assert passed is near
        assert ("has the debit at" in told) is not near
    execute(tmp_path / "moved", f"UPDATE entries SET made = '{entry.made}'")
    execute(tmp_path / "moved", "UPDATE entries SET epsilon = epsilon / 2")
    passed, told = checked(made.directory, ledger=tmp_path / "moved")
    assert not passed
    assert "is damaged" in told
    reseal(tmp_path / "moved")
    passed, told = checked(made.directory, ledger=tmp_path / "moved")
    assert not passed
    assert f"holds epsilon 0.5 and delta {entry.cost.delta_text} for entry" in told
    execute(tmp_path / "moved", "DELETE FROM entries")
    reseal(tmp_path / "moved")
    passed, told = checked(made.directory, ledger=tmp_path / "moved")
    assert not passed
    assert f"has no entry {entry.entry}" in told
    assert cli.run(asked) != 0
    # nor is a ledger of another relation, or no ledger, taken for it
    make_ledger(tmp_path, neighbours="add-remove", name="other")
    for wrong in (tmp_path / "other", tmp_path / "plan.toml"):
        assert not checked(made.directory, ledger=wrong)[0]


@pytest.mark.parametrize("name", [None, "/etc/passwd", "../ledger", "a/../../ledger", "missing"])
def test_a_certificate_names_no_ledger_that_is_elsewhere(tmp_path, name):
    (tmp_path / "in").mkdir()
    make_ledger(tmp_path)
    assert beside(tmp_path / "in" / "release", name) is None
    assert beside(tmp_path / "release", "ledger") == tmp_path / "ledger"


def test_a_missing_or_unexplained_debit_is_detected(tmp_path):
    city(tmp_path)
    real, simulated = make(tmp_path).certificate, make(tmp_path, "sim", simulate=1).certificate
    for wrong in (
        msgspec.structs.replace(real, ledger=None),
        msgspec.structs.replace(simulated, ledger=real.ledger),
        msgspec.structs.replace(
            real, plan=real.plan | {"privacy": real.plan["privacy"] | {"ledger": None}}
        ),
    ):
        assert not check_debit(wrong)[0]
    assert check_debit(simulated)[0]


def test_a_ledger_holds_no_count(tmp_path):
    trips = {1: 7351, 2: 1213, 3: 2417, 4: 3019, 5: 4073, 6: 5021}
    assert trips.keys() == TRIPS.keys()
    make_ledger(tmp_path)
    make_city(tmp_path, trips=trips, privacy=PRIVACY)
    make(tmp_path)
    with closing(sqlite3.connect(tmp_path / "ledger")) as database:
        tables = [name for (name,) in database.execute("SELECT name FROM sqlite_schema")]
        cells = {
            cell
            for table in ("ledger", "datasets", "entries")
            for row in database.execute(f"SELECT * FROM {table}")
            for cell in row
        }
    assert set(tables) >= {"ledger", "datasets", "entries"}
    assert not cells & {*trips.values(), sum(trips.values())}
