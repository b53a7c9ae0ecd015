"""The command line: exit codes, one sentence for each mistake, nothing left behind."""

from __future__ import annotations

import errno
import os
import pty
import resource
import shlex
import subprocess
import sys
import textwrap
import time

import pytest

from congenial import __version__
from congenial.cli import command_line as cli
from congenial.cli import compiled, loading
from congenial.cli.loading import progress
from congenial.releases import directory as files
from support.city import TRIPS, ZONES, listing, make_city

DATA = """
    source = "{source}"
    lookup = {{ source = "{lookup}", key = "zone_id", on = "zone" }}
    """
PRIVACY = 'neighbours = "{neighbours}"\nepsilon = {epsilon}\nsplit = {split}'


def data(source="rows.csv", lookup="zones.csv"):
    """Return a data section."""
    return DATA.format(source=source, lookup=lookup)


def privacy(neighbours="substitute", epsilon="1.0", split="{ borough = 0.4, zone = 0.6 }"):
    """Return a privacy section."""
    return PRIVACY.format(neighbours=neighbours, epsilon=epsilon, split=split)


def run(*arguments):
    """Run the command line in this process and return its exit code."""
    return cli.run([str(argument) for argument in arguments])


def run_apart(*arguments, **options):
    """Run the command line in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "congenial.cli", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        **options,
    )


def test_release_verify_explain(tmp_path, capsys):
    plan = make_city(tmp_path)
    assert run("explain", plan) == 0
    assert "Nothing was spent or written" in capsys.readouterr().out
    assert run("release", plan, "--out", tmp_path / "out") == 0
    said = capsys.readouterr()
    assert "Released 10 counts" in said.out
    assert "differentially private" in said.out
    assert "Not protected: the exact count of City" in said.out
    assert f"Next: congenial verify {tmp_path / 'out'}" in said.out
    assert "SIMULATION" not in said.out + said.err
    assert run("verify", tmp_path / "out") == 0
    assert "checks passed" in capsys.readouterr().out


def test_the_next_command_can_be_pasted(tmp_path, capsys):
    out = tmp_path / "it's out"
    assert run("release", make_city(tmp_path), "--out", out) == 0
    last = capsys.readouterr().out.splitlines()[-1]
    assert shlex.split(last)[1:] == ["congenial", "verify", str(out)]


def test_a_failed_check_exits_1(tmp_path, capsys):
    assert run("release", make_city(tmp_path), "--out", tmp_path / "out", "--quiet") == 0
    with (tmp_path / "out" / files.CSV).open("a") as file:
        file.write("\n")
    assert run("verify", tmp_path / "out") == 1
    said = capsys.readouterr().out
    assert "FAILED  hashes" in said
    assert "do not use this release" in said


def test_quiet_says_nothing_unless_it_is_a_simulation(tmp_path, capsys):
    plan = make_city(tmp_path)
    run("release", plan, "--out", tmp_path / "a", "--quiet")
    said = capsys.readouterr()
    assert (said.out, said.err) == ("", "")
    run("release", plan, "--out", tmp_path / "b", "--quiet", "--simulate", 3)
    said = capsys.readouterr()
    assert (said.out, said.err) == ("", "SIMULATION: NOT PRIVATE\n")
    run("release", plan, "--out", tmp_path / "c", "--simulate", 3)
    assert capsys.readouterr().out.startswith("SIMULATION: NOT PRIVATE\n")


def test_overwrite_is_asked_for(tmp_path, capsys):
    plan = make_city(tmp_path)
    out = tmp_path / "out"
    assert run("release", plan, "--out", out) == 0
    assert run("release", plan, "--out", out) == 2
    assert "give --overwrite to replace it, or another --out." in capsys.readouterr().err
    assert run("release", plan, "--out", out, "--overwrite") == 0


DEEP = 'root = "City"\nlevels = ["borough", "{0}"]\ndomain = "lookup"'
# name: sections of the plan, zones, trips, what the sentence holds
MISTAKES = {
    "missing rows": ({"data": data(source="none.csv")}, {}, {}, "none.csv"),
    "missing lookup": ({"data": data(lookup="none.csv")}, {}, {}, "none.csv"),
    "missing column": (
        {
            "hierarchy": DEEP.format("block"),
            "privacy": privacy(split="{ borough = 0.4, block = 0.6 }"),
        },
        {},
        {},
        "block",
    ),
    "unknown level": ({"privacy": privacy(split="{ county = 1.0 }")}, {}, {}, "county"),
    "unknown node": (
        {"invariants": 'publish_exactly = ["Nowhere"]\nnonnegative = true'},
        {},
        {},
        "Nowhere",
    ),
    "zone that the lookup lacks": ({}, {}, TRIPS | {7: 3}, "lookup"),
    "split that is no whole": (
        {"privacy": privacy(split="{ borough = 0.4, zone = 0.5 }")},
        {},
        {},
        "0.9",
    ),
    "budget for an exact level": (
        {"privacy": privacy(split="{ root = 0.4, zone = 0.6 }")},
        {},
        {},
        "exactly",
    ),
    "negative epsilon": ({"privacy": privacy(epsilon="-1.0")}, {}, {}, "-1.0"),
    "epsilon that is no number": ({"privacy": privacy(epsilon="nan")}, {}, {}, "nan"),
    "infinite epsilon": ({"privacy": privacy(epsilon="inf")}, {}, {}, "inf"),
    "empty table": ({}, {}, dict.fromkeys(ZONES, 0), "rows"),
    "add-remove under an exact total": (
        {"privacy": privacy(neighbours="add-remove")},
        {},
        {},
        "substitute",
    ),
    "every zone exact": (
        {
            "privacy": 'neighbours = "substitute"\nepsilon = 1.0',
            "invariants": 'publish_exactly = ["root", "zone"]',
        },
        {},
        {},
        "exactly",
    ),
    "unknown key": ({"method": 'name = "conditioning"\nseed = 4'}, {}, {}, "seed"),
    "no TOML": ({"method": "name = "}, {}, {}, "TOML"),
}


def sentence_of(said):
    """Return the one sentence on stderr; fail where there is more, or on stdout."""
    assert said.out == ""
    lines = said.err.strip().splitlines()
    assert len(lines) == 1, said.err
    assert lines[0].startswith("Error: ")
    assert lines[0].endswith(".")
    assert "Traceback" not in lines[0]
    return lines[0]


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_end_in_one_sentence_and_nothing_written(tmp_path, capsys, name):
    sections, zones, trips, word = MISTAKES[name]
    plan = make_city(tmp_path, zones=zones or ZONES, trips=trips or TRIPS, **sections)
    before = listing(tmp_path)
    assert run("release", plan, "--out", tmp_path / "out") == 2
    assert word in sentence_of(capsys.readouterr())
    assert listing(tmp_path) == before


def test_a_node_under_two_parents(tmp_path, capsys):
    plan = make_city(tmp_path)
    with (tmp_path / "zones.csv").open("a") as file:
        file.write("3,Brook\n")
    before = listing(tmp_path)
    assert run("release", plan, "--out", tmp_path / "out") == 2
    said = sentence_of(capsys.readouterr())
    assert "3" in said
    assert "parent" in said
    assert listing(tmp_path) == before


@pytest.mark.parametrize("command", ["release", "explain"])
def test_a_plan_that_is_not_there(tmp_path, capsys, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    out = ["--out", "out"] if command == "release" else []
    assert run(command, "none.toml", *out) == 2
    assert "none.toml" in sentence_of(capsys.readouterr())
    assert listing(tmp_path) == []


def test_an_existing_file_or_a_missing_parent_is_refused(tmp_path, capsys):
    plan = make_city(tmp_path)
    (tmp_path / "out").write_text("here first")
    before = listing(tmp_path)
    for out in (tmp_path / "out", tmp_path / "no" / "out", tmp_path / "out" / "below"):
        assert run("release", plan, "--out", out) == 2
        assert "--out" in sentence_of(capsys.readouterr())
    assert listing(tmp_path) == before


def test_a_read_only_place(tmp_path, capsys, monkeypatch):
    plan = make_city(tmp_path)

    def refuse(self, *_, **__):
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr("congenial.releases.making.make_release.Path.mkdir", refuse)
    before = listing(tmp_path)
    assert run("release", plan, "--out", tmp_path / "out") == 2
    assert "read-only" in sentence_of(capsys.readouterr())
    assert listing(tmp_path) == before


def test_truth_without_a_simulation_is_refused(tmp_path, capsys):
    plan = make_city(tmp_path)
    assert run("release", plan, "--out", tmp_path / "out", "--with-truth") == 2
    said = capsys.readouterr().err
    assert "give --simulate a seed as well, or leave --with-truth out." in said
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "arguments",
    [
        ["release"],
        ["release", "p.toml"],
        ["publish"],
        ["verify"],
        ["--colour"],
        ["release", "p.toml", "--out", "o", "--simulate", "-1"],
    ],
)
def test_wrong_usage_exits_2(arguments, capsys):
    assert run(*arguments) == 2
    said = capsys.readouterr().err
    assert "Error: " in said
    assert "Traceback" not in said


def test_verify_of_nothing_exits_2(tmp_path, capsys):
    assert run("verify", tmp_path / "none") == 2
    assert "there is no directory '" in sentence_of(capsys.readouterr())


def test_version(capsys):
    assert run("--version") == 0
    assert __version__ in capsys.readouterr().out


def test_help_is_quick_and_loads_nothing_heavy():
    code = textwrap.dedent(
        """
        import sys
        from congenial.cli import command_line as cli
        cli.run(["--help"])
        heavy = {"numpy", "numba", "duckdb", "rich", "narwhals", "scipy"} & set(sys.modules)
        sys.exit(f"loaded {heavy}" if heavy else 0)
        """
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    # processor time, which a busy machine does not lengthen
    spent = []
    for _ in range(3):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        assert run_apart("--help").returncode == 0
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        spent.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    assert min(spent) < 0.3


def test_no_progress_where_stderr_is_no_terminal(capsys):
    with progress(patience=0.0) as notify:
        notify("drawing")
        time.sleep(0.05)
    said = capsys.readouterr()
    assert (said.out, said.err) == ("", "")


PROGRESS = """
import time
from congenial.cli.loading import progress
with progress(patience={patience}) as notify:
    notify("drawing by [/area]")
    time.sleep(0.4)
"""
# Go to the start of the line above, the only one written to, and erase it.
ERASED = "\r\x1b[1A\x1b[2K"


def said_on_a_terminal(term, patience):
    """Return what a step of 0.4 seconds writes to a terminal of a type."""
    ours, theirs = pty.openpty()
    try:
        done = subprocess.run(
            [sys.executable, "-c", PROGRESS.format(patience=patience)],
            stderr=theirs,
            stdout=subprocess.PIPE,
            timeout=60,
            check=False,
            env=os.environ | {"TERM": term},
        )
        os.set_blocking(ours, False)
        try:
            text = os.read(ours, 65536).decode()
        except BlockingIOError:
            text = ""
    finally:
        os.close(ours)
        os.close(theirs)
    assert done.returncode == 0
    assert done.stdout == b""
    return text


@pytest.mark.parametrize(("patience", "shown"), [(0.0, True), (30.0, False)])
def test_progress_on_a_terminal_once_patience_ends(patience, shown):
    text = said_on_a_terminal("xterm", patience)
    assert ("drawing by [/area]" in text) is shown
    if shown:
        assert text.endswith(ERASED) and text.count("\n") == 1


def test_a_terminal_that_cannot_erase_stays_empty():
    assert said_on_a_terminal("dumb", 0.0) == ""


def test_first_compilation_is_announced(tmp_path, monkeypatch, capsys):
    done, this_python = [], f"py{sys.version_info.major}{sys.version_info.minor}{sys.abiflags}"
    monkeypatch.setattr(compiled, "cache_directory", lambda: tmp_path)
    monkeypatch.setattr(compiled, "compile_kernels", done.append)
    loading.compile_once("conditioning", quiet=True)
    assert capsys.readouterr().err == ""
    loading.compile_once("imaging", quiet=False)
    assert "Compiling" in capsys.readouterr().err
    assert done == ["conditioning", "imaging"]
    loading.compile_once("topdown", crossing=True, quiet=False)
    assert capsys.readouterr().err.count("Compiling") == 1
    assert done[2:] == ["imaging", "tables"]
    for name, _ in (*compiled.SHARES[0], *compiled.SHARES[1]):
        (tmp_path / f"{compiled.in_cache(name)}-1.{this_python}.nbi").touch()
    loading.compile_once("conditioning", quiet=False)
    assert capsys.readouterr().err == ""
