"""For all contents of a release's files, readers end in one sentence, never in a traceback."""

from __future__ import annotations

import json
import random
import shutil
import tracemalloc
from contextlib import suppress
from datetime import UTC, datetime, timedelta

import duckdb
import pytest

from congenial.cli import command_line as cli
from congenial.errors import ReleaseError
from congenial.plan.plan import read_plan
from congenial.releases import directory as files
from congenial.releases.certificate import plan_digest
from congenial.releases.making.make_release import release
from congenial.releases.measurements import read_measurements
from congenial.releases.reading import read_release
from congenial.verification.verdict import verify
from support.city import make_city

DEEP = "[" * 100_000
# Raised where a changed certificate has no place for digests.
NO_CERTIFICATE = (ValueError, RecursionError, KeyError, TypeError, AttributeError, OSError)
VALUES = (
    *("null", "true", "-1", "0", "7", "1e308", "-1e308", "1e-320", "1e999", "NaN", "Infinity"),
    *("1" * 400, "-" + "9" * 30, "1" + "0" * 5000, "0.1", '""', '" "', r'"\ud800"', r'"\u0000"'),
    *('"/etc/passwd"', '"../../x"', '"' + "x" * 100_000 + '"', "[]", "{}", '{"": ""}', "[null]"),
    *('["a", "a"]', "[1e400]", "[[[[]]]]", '{"a": {"a": {"a": 1}}}', '"nan"', '"2020-13-01"'),
    *("18446744073709551616", "9223372036854775807", "-9223372036854775808", '"\u202e"'),
    DEEP,
    DEEP + "]" * 100_000,
    '{"a":' * 100_000 + "1" + "}" * 100_000,
)
QUERIES = (
    "SELECT * FROM t LIMIT 0",
    "SELECT * FROM t LIMIT 3",
    "SELECT * FROM t ORDER BY value",
    "SELECT * FROM t UNION ALL SELECT * FROM t",
    "SELECT * REPLACE (NULL::BIGINT AS value) FROM t",
    "SELECT * REPLACE (value::HUGEINT * 100000000000000000000 AS value) FROM t",
    "SELECT * REPLACE (9223372036854775807 AS value) FROM t",
    "SELECT * REPLACE (-9223372036854775808 AS value) FROM t",
    "SELECT * REPLACE ('nan'::DOUBLE AS value) FROM t",
    "SELECT * REPLACE (value::VARCHAR AS value) FROM t",
    "SELECT * REPLACE ([value] AS value) FROM t",
    "SELECT * REPLACE (9223372036854775807 AS lower, -9223372036854775808 AS upper) FROM t",
    "SELECT * REPLACE (NULL::BIGINT AS lower) FROM t",
    "SELECT * REPLACE (-1 AS level) FROM t",
    "SELECT * REPLACE (NULL::VARCHAR AS level_name) FROM t",
    "SELECT * REPLACE (NULL::VARCHAR AS borough) FROM t",
    "SELECT * REPLACE (borough || chr(0) || chr(10) AS borough) FROM t",
    "SELECT * REPLACE (repeat(borough, 100000) AS borough) FROM t",
    "SELECT * REPLACE ('City' AS borough) FROM t",
    "SELECT * EXCLUDE (value) FROM t",
    "SELECT *, 1 AS more FROM t",
    "SELECT 1 AS one",
    "SELECT * RENAME (value AS wert) FROM t",
)


@pytest.fixture(scope="module")
def pristine(tmp_path_factory):
    """Return a directory with three kinds of release."""
    place = tmp_path_factory.mktemp("pristine")
    plan = read_plan(make_city(place))
    release(plan, place / "real", base=place)
    release(plan, place / "sham", base=place, simulate=5, with_truth=True)
    sections = {
        "method": 'name = "imaging"',
        "release": 'publish = ["table", "measurements"]',
    }
    plan = read_plan(make_city(place, **sections))
    release(plan, place / "image", base=place)
    return place


def paths(tree, at=()):
    """Return the place of every value in plain data."""
    found = [at] if at else []
    inner = tree.items() if isinstance(tree, dict) else enumerate(tree)
    for key, value in inner:
        found += paths(value, (*at, key)) if isinstance(value, dict | list) else [(*at, key)]
    return found


def put(stated, at, text):
    """Return JSON with some text in the place of one value."""
    *way, last = at
    inner = stated
    for key in way:
        inner = inner[key]
    inner[last] = "@here@"
    return json.dumps(stated).replace('"@here@"', text, 1)


def change_certificate(place, draw):
    """Change one value of the certificate, take it out, or give a key a second time."""
    path = place / files.CERTIFICATE
    stated = json.loads(path.read_text())
    at = draw.choice(paths(stated))
    kind = draw.randrange(6)
    if kind == 0:
        inner = stated
        for key in at[:-1]:
            inner = inner[key]
        del inner[at[-1]]
        text = json.dumps(stated)
    elif kind == 1:
        text = put(stated, at, f"null, {json.dumps(draw.choice([*stated]))}: 1")
    else:
        text = put(stated, at, draw.choice(VALUES))
    if draw.random() < 0.5:
        with suppress(*NO_CERTIFICATE):
            certify(place, json.loads(text))
            return
    path.write_bytes(text.encode("utf-8", "surrogatepass"))


def certify(place, stated):
    """Give a certificate the digests of the plan and of the files as they are now."""
    stated["files"] = {name: files.sha256(place / name) for name in stated["files"]}
    stated["plan_sha256"] = plan_digest(stated["plan"])
    (place / files.CERTIFICATE).write_text(json.dumps(stated))


def change_bytes(place, draw):
    """Damage the bytes of one file."""
    path = draw.choice([p for p in sorted(place.iterdir()) if p.is_file()])
    content = bytearray(path.read_bytes())
    kind = draw.randrange(7)
    if kind == 0:
        content = content[: draw.randrange(len(content))]
    elif kind == 1:
        content = bytearray(b"\xff\xfe") + content
    elif kind == 2:
        content = bytearray(content.decode("latin-1").encode("utf-16"))
    elif kind == 3:
        content[draw.randrange(len(content))] = 0xFF
    elif kind == 4:
        content += b"\x00" * 10
    elif kind == 5:
        content = bytearray(b"\xef\xbb\xbf") + content
    else:
        for _ in range(5):
            content[draw.randrange(len(content))] = draw.randrange(256)
    path.write_bytes(content)
    maybe_certify(place, draw)


def maybe_certify(place, draw):
    """Every other time, make the digests fit again."""
    if draw.random() < 0.5:
        with suppress(*NO_CERTIFICATE):
            certify(place, json.loads((place / files.CERTIFICATE).read_text()))


def change_kind(place, draw):
    """Put something else in the place of a file."""
    path = draw.choice(sorted(place.iterdir()))
    path.unlink()
    kind = draw.randrange(6)
    if kind == 0:
        path.mkdir()
    elif kind == 1:
        path.symlink_to(path)
    elif kind == 2:
        path.symlink_to(place)
    elif kind == 3:
        path.symlink_to("/dev/null")
    elif kind == 4:
        path.write_bytes(b"")
    maybe_certify(place, draw)


def change_table(place, draw):
    """Rewrite a table."""
    names = [n for n in (files.PARQUET, files.MEASUREMENTS_PARQUET) if (place / n).exists()]
    parquet = place / draw.choice(names)
    query = draw.choice(QUERIES)
    if parquet.name == files.MEASUREMENTS_PARQUET:
        query = query.replace("value", "measurement").replace("lower", "scale")
        query = query.replace("upper", "noise")
    with duckdb.connect(":memory:", config={"threads": 1}) as connection:
        connection.execute(f"CREATE TABLE t AS SELECT * FROM '{parquet}'")
        for target, form in ((parquet, "parquet"), (parquet.with_suffix(".csv"), "csv, HEADER")):
            connection.execute(f"COPY ({query}) TO '{target}' (FORMAT {form})")
    certify(place, json.loads((place / files.CERTIFICATE).read_text()))


CHANGES = (change_certificate, change_certificate, change_bytes, change_kind, change_table)


def attack(pristine, place, seed):
    """Change a release at random and let every reader look at it; return the exit codes."""
    draw = random.Random(seed)  # noqa: S311 -- protects nobody
    kind = draw.choice(["real", "sham", "image"])
    shutil.copytree(pristine / kind, place)
    draw.choice(CHANGES)(place, draw)
    codes = [cli.run([command, str(place)]) for command in ("verify", "report")]
    with suppress(ReleaseError):
        read_release(place)
    return codes


@pytest.mark.parametrize("seed", range(120))
def test_no_damage_gives_a_traceback(pristine, tmp_path, seed, capsys):
    verified, reported = attack(pristine, tmp_path / "release", seed)
    said = capsys.readouterr()
    assert verified in (0, 1, 2)
    assert reported == (0 if verified == 0 else 2)
    assert "Traceback" not in said.out + said.err
    assert len(said.err) < 4000


def failed(place):
    """Return name and text of the first check that fails."""
    return next((c.name, c.text) for c in verify(place) if not c.passed)


@pytest.mark.parametrize("deep", [DEEP + "]" * 100_000, '{"a":' * 100_000 + "1" + "}" * 100_000])
@pytest.mark.parametrize("at", [("plan", "data"), ("made",), ("guarantee", "epsilon")])
def test_deep_nesting_is_refused_in_one_sentence(pristine, tmp_path, deep, at, capsys):
    place = shutil.copytree(pristine / "real", tmp_path / "real")
    stated = json.loads((place / files.CERTIFICATE).read_text())
    (place / files.CERTIFICATE).write_text(put(stated, at, deep))
    assert failed(place)[0] == "certificate"
    assert cli.run(["verify", str(place)]) == 1
    assert cli.run(["report", str(place)]) == 2
    said = capsys.readouterr()
    assert "nested too deep" in said.out
    assert "Traceback" not in said.out + said.err


@pytest.mark.parametrize("at", [("made",), ("guarantee", "epsilon"), ("plan", "data", "source")])
def test_a_duplicate_key_is_refused(pristine, tmp_path, at):
    place = shutil.copytree(pristine / "real", tmp_path / "real")
    stated = json.loads((place / files.CERTIFICATE).read_text())
    own = stated
    for key in at:
        own = own[key]
    text = put(stated, at, f"{json.dumps(own)}, {json.dumps(at[-1])}: {json.dumps(own)}")
    (place / files.CERTIFICATE).write_text(text)
    name, text = failed(place)
    assert name == "certificate"
    assert f"the key '{at[-1]}' occurs twice" in text


@pytest.mark.parametrize(
    "made",
    ["", "now", "2026-13-01T00:00:00+00:00", "2026-01-01", "2026-01-01T00:00:00", "1" * 9999],
)
def test_an_invalid_time_is_refused(pristine, tmp_path, made):
    place = shutil.copytree(pristine / "real", tmp_path / "real")
    stated = json.loads((place / files.CERTIFICATE).read_text())
    certify(place, stated | {"made": made})
    name, text = failed(place)
    assert name == "certificate"
    assert "which is no time" in text


@pytest.mark.parametrize(("hours", "passed"), [(-1000, True), (0.9, True), (1.1, False)])
def test_a_release_of_the_future_is_refused(pristine, tmp_path, hours, passed):
    place = shutil.copytree(pristine / "real", tmp_path / "real")
    stated = json.loads((place / files.CERTIFICATE).read_text())
    made = (datetime.now(UTC) + timedelta(hours=hours)).isoformat(timespec="seconds")
    certify(place, stated | {"made": made})
    [check] = [check for check in verify(place) if check.name == "certificate"]
    assert check.passed is passed
    assert ("in the future" in check.text) is not passed


# Columns of a small file that take gigabytes once they are read.
BOMBS = {
    "rows": ("SELECT t.* FROM t, range(300000)", "3,000,000 rows"),
    "text": ("SELECT * REPLACE (repeat('x', 20000000) AS borough) FROM t", "bytes of text"),
    "lists": ("SELECT * REPLACE (range(1000000) AS value) FROM t", "the column value BIGINT[]"),
}


@pytest.mark.parametrize("kind", BOMBS)
def test_a_small_file_is_refused_before_it_fills_the_memory(pristine, tmp_path, kind, monkeypatch):
    place = shutil.copytree(pristine / "image", tmp_path / "image")
    query, said = BOMBS[kind]
    for path in (place / files.PARQUET, place / files.MEASUREMENTS_PARQUET):
        own = query if path.name == files.PARQUET else query.replace("value", "measurement")
        with duckdb.connect(":memory:", config={"threads": 1}) as connection:
            connection.execute(f"CREATE TABLE t AS SELECT * FROM '{path}'")
            connection.execute(f"COPY ({own}) TO '{path}.new' (FORMAT parquet)")
        path.with_name(f"{path.name}.new").replace(path)
    certify(place, json.loads((place / files.CERTIFICATE).read_text()))
    monkeypatch.setattr(files, "allowance", lambda: 10**8)
    tracemalloc.start()
    name, text = failed(place)
    with pytest.raises(ReleaseError, match=r"measurements\.parquet"):
        read_measurements(place)
    assert tracemalloc.get_traced_memory()[1] < 2e7
    tracemalloc.stop()
    assert name == "table"
    assert said in text
    assert cli.run(["verify", str(place)]) == 1
    assert cli.run(["report", str(place)]) == 2
