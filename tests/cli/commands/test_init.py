"""`congenial init`: what it asks, what it writes, what it refuses, and what it never reads."""

from __future__ import annotations

import gzip
import json
import sqlite3
import tomllib
from pathlib import Path

import duckdb
import pytest

from congenial.cli import asking
from congenial.cli import command_line as cli
from congenial.plan.draft import (
    Draft,
    as_toml,
    text,
)
from congenial.plan.plan import parse_plan, read_plan
from support.city import ZONES, listing

ROWS = "hour,zone\n3,1\n4,2\n5,4\n5,6\n"
LOOKUP = ("--lookup", "zones.csv", "--lookup-key", "zone_id", "--lookup-on", "zone")


def run(*arguments):
    """Run the command line in this process and return its exit code."""
    return cli.run([str(argument) for argument in arguments])


@pytest.fixture
def place(tmp_path, monkeypatch):
    """Return a working directory with rows and a lookup."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rows.csv").write_text(ROWS)
    lines = "".join(f"{zone},{borough}\n" for zone, borough in ZONES.items())
    (tmp_path / "zones.csv").write_text(f"zone_id,borough\n{lines}")
    return tmp_path


def refusal(capsys, *arguments):
    """Return the one sentence by which a command is refused."""
    capsys.readouterr()
    before = listing(Path())
    assert run("init", *arguments) == 2
    said = capsys.readouterr()
    last = said.err.strip().splitlines()[-1]
    assert last.startswith("Error: ")
    assert last.endswith(".")
    assert "Traceback" not in said.err
    assert said.out == ""
    assert listing(Path()) == before
    return last


def test_defaults_make_a_plan_that_explain_accepts(place, capsys):
    assert run("init", "rows.csv", "--yes") == 0
    said = capsys.readouterr()
    assert said.out == "Wrote plan.toml.\nNext: congenial explain plan.toml\n"
    assert said.err.splitlines()[-1].startswith("Unprotected: with the domain 'data'")
    assert (place / "plan.toml").read_text().endswith("\n# Next: congenial explain plan.toml\n")
    plan = read_plan("plan.toml")
    assert (plan.data.source, plan.hierarchy.levels) == ("rows.csv", ("zone",))
    assert plan.invariants.publish_exactly == ()
    assert run("explain", "plan.toml") == 0


def test_answers_by_options_go_into_the_plan(place):
    given = (
        *(*LOOKUP, "--levels", "borough,2", "--domain", "lookup", "--root", 'The "City"'),
        *("--names-repeat", "no", "--neighbours", "substitute", "--epsilon", "0.5"),
        *("--publish-exactly", "root, Brook", "--nonnegative", "no", "--method", "imaging"),
        *(
            "--attributes",
            "",
            "--ledger",
            "budget.sqlite",
            "--name",
            "trips",
            "--out",
            "my plan.toml",
        ),
    )
    # asked nothing: whatever is not given by an option would end the input
    assert run("init", "rows.csv", *given) == 0
    plan = read_plan("my plan.toml")
    assert plan.hierarchy.root == 'The "City"'
    assert plan.hierarchy.levels == ("borough", "zone")
    assert plan.data.lookup is not None
    assert (plan.data.lookup.key, plan.data.lookup.on) == ("zone_id", "zone")
    assert (plan.privacy.epsilon, plan.privacy.ledger, plan.data.name) == (
        0.5,
        "budget.sqlite",
        "trips",
    )
    assert plan.invariants.publish_exactly == ("root", "Brook")
    assert (plan.invariants.nonnegative, plan.method.name) == (False, "imaging")
    assert run("explain", "my plan.toml") == 0


@pytest.mark.parametrize("domain", ["data", "lookup"])
@pytest.mark.parametrize("neighbours", ["substitute", "add-remove"])
@pytest.mark.parametrize("method", ["conditioning", "imaging", "topdown"])
@pytest.mark.parametrize("nonnegative", ["yes", "no"])
def test_explain_accepts_the_plan_of_every_method(place, domain, neighbours, method, nonnegative):
    chosen = (
        *("--domain", domain, "--neighbours", neighbours, "--method", method),
        *("--nonnegative", nonnegative),
    )
    assert run("init", "rows.csv", *LOOKUP, *chosen, "--yes") == 0
    assert run("explain", "plan.toml") == 0


# Never read

POISON = b'\xff\xfe\x00,"unclosed\nSECRET,SECRET,SECRET\n' * 50


def outcome(capsys, *arguments):
    """Return everything that a run shows and writes."""
    capsys.readouterr()
    assert run("init", *arguments, "--overwrite") == 0
    said = capsys.readouterr()
    return said.out, said.err, Path("plan.toml").read_text()


def conversation(capsys, source, monkeypatch):
    """Return the same, everything asked and every default taken."""
    monkeypatch.setattr("click.termui.visible_prompt_func", lambda _: "")
    return outcome(capsys, source)


def test_only_the_first_line_of_a_csv_file_is_read(place, capsys, monkeypatch):
    first = conversation(capsys, "rows.csv", monkeypatch)
    (place / "rows.csv").write_bytes(b"hour,zone\n" + POISON)
    assert conversation(capsys, "rows.csv", monkeypatch) == first
    with gzip.open("rows.csv.gz", "wb") as file:
        file.write(b"hour,zone\n" + POISON)
    packed = conversation(capsys, "rows.csv.gz", monkeypatch)
    assert [part.replace("csv.gz", "csv") for part in packed] == list(first)


def test_only_the_footer_of_a_parquet_file_is_read(place, capsys, monkeypatch):
    duckdb.sql("SELECT i AS zone, i / 7 AS rate FROM range(1000) AS t (i)").write_parquet(
        "r.parquet"
    )
    first = conversation(capsys, "r.parquet", monkeypatch)
    assert '"zone" BIGINT, "rate" DOUBLE' in first[2]
    whole = Path("r.parquet").read_bytes()
    footer = 8 + int.from_bytes(whole[-8:-4], "little")
    Path("r.parquet").write_bytes(whole[:4] + bytes(len(whole) - 4 - footer) + whole[-footer:])
    with pytest.raises(duckdb.Error):
        duckdb.sql("SELECT sum(zone) FROM 'r.parquet'").fetchall()
    assert conversation(capsys, "r.parquet", monkeypatch) == first


@pytest.mark.parametrize("kind", ["duckdb", "sqlite"])
def test_only_the_catalogue_of_a_database_is_read(place, capsys, monkeypatch, kind):
    seen = []
    for values in (["('x', 1.5)"], ["('SECRET', -9)", "('y', 2)"] * 700):
        name = f"d.{kind}"
        Path(name).unlink(missing_ok=True)
        database = duckdb.connect(name) if kind == "duckdb" else sqlite3.connect(name)
        database.execute("CREATE TABLE visits (clinic TEXT, cost DOUBLE)")
        database.execute(f"INSERT INTO visits VALUES {', '.join(values)}")
        database.commit()
        database.close()
        seen.append(conversation(capsys, name, monkeypatch))
    assert seen[0] == seen[1]
    assert 'table = "visits"' in seen[0][2]


# Odd names

ODD = ['a "b"', "c,d", "e\\f", "g\nh", "ü 名", "tab\there", "#i", "j]k", "'l'", "null\u2028sep"]


def test_names_that_need_toml_quotes_survive_to_the_release(place):
    names = ", ".join(f'i % 3 AS "{name.replace(chr(34), chr(34) * 2)}"' for name in ODD[:4])
    duckdb.sql(f"SELECT {names} FROM range(9) AS t (i)").write_parquet('it\'s "odd" [1].parquet')
    chosen = asking.listed([ODD[0], ODD[1]])
    options = ("--levels", chosen, "--publish-exactly", "root", "--root", 'all "of" \\ them')
    assert run("init", 'it\'s "odd" [1].parquet', *options, "--yes") == 0
    assert read_plan("plan.toml").hierarchy.levels == (ODD[0], ODD[1])
    assert run("explain", "plan.toml") == 0
    assert run("release", "plan.toml", "--out", "out", "--simulate", 1) == 0
    assert run("verify", "out") == 0


@pytest.mark.parametrize("name", ODD)
def test_text_is_written_as_toml_reads_it(name):
    assert tomllib.loads(f"x = {text(name)}") == {"x": name}
    draft = Draft(
        *(name, name, (name,), "data", "substitute", 1.0, True, "conditioning"),
        publish_exactly=(f"{name}/1",),
        table=name,
        columns={name: "VARCHAR"},
    )
    found = tomllib.loads(as_toml(draft, "congenial explain plan.toml"))
    assert found["hierarchy"]["levels"] == [name]
    assert found["data"]["table"] == name
    assert asking.split(asking.listed([name, "x"])) == (name, "x")


@pytest.mark.parametrize(
    ("header", "known"),
    [
        ("\ufeffhour,zone\r\n", ["hour", "zone"]),
        (" hour ; zone\n", ["hour", "zone"]),
        ('"ho,ur"\tzone\n', ["ho,ur", "zone"]),
        ('"a ""b""",,zone\n', ['a "b"', "zone"]),
        ("zone", ["zone"]),
    ],
)
def test_headers_are_read_as_a_release_reads_them(place, capsys, header, known):
    (place / "rows.csv").write_text(header, encoding="utf-8", newline="")
    assert run("init", "rows.csv", "--yes", "--json") == 0
    assert list(json.loads(capsys.readouterr().out)["result"]["columns"]) == known


MISTAKES = {
    "a\n": ("rows.csv", "--levels", "zone", "'zone' is no column"),
    '"never closed\n': ("rows.csv", "cannot be read as a header"),
    "\n": ("rows.csv", "cannot be read as a header"),
    ",,\n": ("rows.csv", "no column with a name"),
    "Zone,zone\n": ("rows.csv", "one name to two columns"),
    "root\n": ("rows.csv", "--levels", "root", "'root', which is the name of the root's own level"),
    "": ("rows.csv", "is an empty file"),
    "Mary,7351\n": ("rows.csv", "contains a number, so it is probably a row"),
}


@pytest.mark.parametrize("header", MISTAKES)
def test_unusable_headers_are_refused(place, capsys, header):
    (place / "rows.csv").write_text(header)
    *arguments, told = MISTAKES[header]
    said = refusal(capsys, *arguments, "--yes")
    assert told in said
    assert "Mary" not in said


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["row.csv"], "no such file; give another path (did you mean 'rows.csv'?)"),
        (["folder"], "is a directory"),
        (["rows.xlsx"], "give a file whose name ends in"),
        (["broken.parquet"], "cannot be read as Parquet"),
        (["broken.duckdb"], "cannot be opened as a DuckDB"),
        (["none*.csv"], "no such file"),
        ([b"caf\xe9.csv".decode("utf-8", "surrogateescape")], "cannot name"),
        (["rows.csv", "--table", "t"], "is no database"),
        (["rows.csv", "--lookup", "rows.csv"], "confidential rows"),
        (["rows.csv", "--domain", "rows.csv"], "confidential rows"),
        (["rows.csv", "--lookup", "none.csv"], "the lookup is 'none.csv', and there is no such"),
        (["rows.csv", "--method", "magic"], "'magic' is not one of"),
        (["both.csv", *LOOKUP, "--levels", "borough"], "of the rows and of the lookup"),
        (["rows.csv", "--domain", "lookup"], "'lookup' without a lookup"),
        (["rows.csv", "--levels", "zone,zone"], "holds 'zone' twice"),
        (["rows.csv", "--levels", " , "], "at least one column"),
        (["rows.csv", "--epsilon", "nan"], "give a number from"),
        (["rows.csv", "--publish-exactly", "zone"], "the deepest level"),
        (["rows.csv", "--publish-exactly", "root", "--neighbours", "add-remove"], "substitute"),
        (["rows.csv", "--root", " "], "hierarchy.root is empty"),
        (["rows.csv", "--out", "folder"], "is a directory"),
        (["rows.csv", "--out", "no/plan.toml"], "does not exist"),
        (["rows.csv", "--out", "rows.csv"], "already exists"),
        (["rows.csv", "--out", "rows.csv", "--overwrite"], "does not end in .toml"),
        (["rows.csv", *LOOKUP, "--publish-exactly", "Nowhere"], "neither a level nor a node"),
    ],
)
def test_unusable_input_is_refused_in_one_sentence(place, capsys, arguments, told):
    (place / "folder").mkdir()
    (place / "both.csv").write_text("zone,borough\n")
    for name in ("rows.xlsx", "broken.parquet", "broken.duckdb"):
        (place / name).write_text("not what it says")
    assert told in refusal(capsys, *arguments, "--yes")


def test_several_tables_are_asked_about(place, capsys):
    with duckdb.connect("c.duckdb") as database:
        database.execute("CREATE TABLE zones (zone TEXT); CREATE SCHEMA old")
        database.execute("CREATE TABLE old.trips (zone TEXT)")
    told = refusal(capsys, "c.duckdb", "--yes")
    assert "--table" in told and "'zones'" in told and "'old.trips'" in told
    assert run("init", "c.duckdb", "--table", "old.trips", "--yes") == 0
    assert read_plan("plan.toml").data.table == "old.trips"
    assert "holds no such table" in refusal(
        capsys, "c.duckdb", "--table", "rides", "--yes", "--overwrite"
    )
    with duckdb.connect("empty.duckdb"):
        pass
    assert "holds no table" in refusal(capsys, "empty.duckdb", "--yes", "--overwrite")


def test_several_files_by_a_pattern(place):
    for name in ("part-1.csv", "part-2.csv"):
        (place / name).write_text(ROWS)
    assert run("init", "part-*.csv", "--ledger", "b.sqlite", "--yes") == 0
    plan = read_plan("plan.toml")
    assert (plan.data.source, plan.data.name) == ("part-*.csv", "part")
    assert run("explain", "plan.toml") == 0


def test_an_older_plan_is_replaced_only_with_overwrite(place, capsys):
    (place / "plan.toml").write_text("mine")
    assert "--overwrite" in refusal(capsys, "rows.csv", "--yes")
    assert (place / "plan.toml").read_text() == "mine"
    assert run("init", "rows.csv", "--yes", "--overwrite") == 0
    assert read_plan("plan.toml").data.source == "rows.csv"


def test_paths_start_from_the_plan(place):
    (place / "plans").mkdir()
    assert run("init", "rows.csv", *LOOKUP, "--out", "plans/p.toml", "--yes") == 0
    plan = read_plan("plans/p.toml")
    assert plan.data.source == "../rows.csv"
    assert plan.data.lookup is not None
    assert plan.data.lookup.source == "../zones.csv"
    assert run("explain", "plans/p.toml") == 0


def test_repeated_names_are_detected_only_in_a_public_list(place):
    (place / "cells.csv").write_text("sex,age\nf,1\nm,1\n")
    (place / "rows.csv").write_text("sex,age\nf,1\n")
    assert run("init", "rows.csv", "--levels", "sex,age", "--domain", "cells.csv", "--yes") == 0
    assert read_plan("plan.toml").hierarchy.names_repeat
    assert run("explain", "plan.toml") == 0


def test_every_example_in_a_comment_works_when_uncommented(place):
    draft = Draft(
        *("rows.csv", "City", ("state", "borough", "zone"), "data", "substitute", 1.0, True),
        "conditioning",
        publish_exactly=("borough",),
    )
    written = as_toml(draft, "congenial explain plan.toml")
    keys = ("name", "where", "types", "lookup", "split", "ledger", "required")
    lines = [
        line.removeprefix("# ") if line.startswith(tuple(f"# {key} = " for key in keys)) else line
        for line in written.splitlines()
    ]
    plan = parse_plan("\n".join(lines))
    assert plan.data.where == '"zone" IS NOT NULL'
    assert plan.privacy.split == {"zone": 1.0}
    assert plan.accuracy.required == {"zone": 20.0}
    assert plan.data.name
    assert plan.privacy.ledger


def test_every_key_has_a_comment(place):
    assert run("init", "rows.csv", *LOOKUP, "--yes") == 0
    lines = (place / "plan.toml").read_text().splitlines()
    above = [
        lines[at - 1] for at, line in enumerate(lines) if " = " in line and not line.startswith("#")
    ]
    assert len(above) >= 10
    assert all(line.startswith("#") for line in above)
    assert all(len(line) <= 100 for line in lines)


def test_values_of_an_enum_are_not_shown(place, capsys):
    with duckdb.connect("e.duckdb") as database:
        database.execute("CREATE TYPE p AS ENUM ('Secret Ann', 'it''s Secret, Bob)')")
        database.execute("CREATE TABLE t (name p, home STRUCT(a p, b INTEGER), n INTEGER)")
    assert run("init", "e.duckdb", "--yes", "--json") == 0
    columns = json.loads(capsys.readouterr().out)["result"]["columns"]
    assert columns == {"name": "ENUM", "home": "STRUCT(a ENUM, b INTEGER)", "n": "INTEGER"}
    assert "Secret" not in Path("plan.toml").read_text()


@pytest.fixture
def unread(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rows.csv").write_text("zone,borough,age\n")
    return tmp_path


def test_a_name_that_breaks_lines_does_not_break_the_remark(unread, capsys):
    (unread / "rows.csv").write_text('"zo\tne"\n')
    assert run("init", "rows.csv", "--yes") == 0
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 2 and "\t" not in lines[0]
