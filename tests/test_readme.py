"""Every block of code in the README works as printed."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import duckdb
import pytest
from city import SECTIONS, make_city

from congenial.accounting.amounts import budget
from congenial.ledger.files import init_ledger
from congenial.plan import parse_plan
from congenial.release import release
from congenial.sections import Data, Hierarchy, Invariants, Lookup, Method, Privacy
from congenial.verify import verify

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PLANS = (ROOT / "docs/plan.md").read_text(encoding="utf-8")


def blocks(language: str, text: str = README) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", text, flags=re.DOTALL)


def test_python_blocks_run() -> None:
    found = blocks("python")
    assert found
    for code in found:
        exec(compile(code, "README.md", "exec"), {})


def test_the_plan_shown_is_the_one_of_the_demo() -> None:
    shown = tomllib.loads(blocks("toml")[0])
    assert shown == tomllib.loads((ROOT / "examples/taxi/plan.toml").read_text(encoding="utf-8"))


def test_files_linked_are_there() -> None:
    links = re.findall(r"\]\(([^)#:]+)\)", README)
    assert links
    assert [link for link in links if not (ROOT / link).exists()] == []


def test_python_blocks_about_plans_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    found = blocks("python", PLANS)
    assert found
    for code in found:
        exec(compile(code, "plan.md", "exec"), {})
    assert all(check.passed for check in verify(tmp_path / "release"))


def test_every_key_of_a_plan_is_told_and_no_other() -> None:
    sections = {
        "data": Data,
        "hierarchy": Hierarchy,
        "privacy": Privacy,
        "invariants": Invariants,
        "method": Method,
    }
    known = [f"{name}.{key}" for name, of in sections.items() for key in of.__struct_fields__]
    assert sorted(re.findall(r"^\| `([a-z_]+\.[a-z_]+)`", PLANS, flags=re.MULTILINE)) == sorted(
        known
    )
    told = next(line for line in PLANS.splitlines() if line.startswith("| `data.lookup`"))
    assert all(f"{key} = " in told for key in Lookup.__struct_fields__)


@pytest.mark.parametrize("code", blocks("toml", PLANS))
def test_examples_of_plans_make_releases(tmp_path: Path, code: str) -> None:
    """Sections that an example leaves out are those of the small city."""
    make_city(tmp_path)
    people = "f,1,2020-01-05\nf,22,2020-02-01\nm,1,unknown\nm,22,2020-05-31\n"
    (tmp_path / "people.csv").write_text(f"sex,age,day\n{people}")
    (tmp_path / "places.csv").write_text("borough,zone\nArden,1\nArden,2\nBrook,4\n")
    with duckdb.connect(str(tmp_path / "city.duckdb")) as connection:
        connection.execute(
            "CREATE TABLE trips AS SELECT * FROM (VALUES ('Arden', 1, 8), ('Brook', 4, 9), "
            "('Brook', 4, 20)) AS t (borough, zone, hour)"
        )
    given = tomllib.loads(code)
    ledger = given.get("privacy", {}).get("ledger")
    if ledger is not None:
        init_ledger(tmp_path / ledger, budget=budget("3", "1e-6"), neighbours="substitute")
    others = [f"[{name}]\n{body}" for name, body in SECTIONS.items() if name not in given]
    release(parse_plan("\n".join([code, *others])), tmp_path / "out", base=tmp_path)
    assert all(check.passed for check in verify(tmp_path / "out"))
