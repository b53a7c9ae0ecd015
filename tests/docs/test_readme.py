"""The README and the page on plans: length, numbers and keys; `test_pages.py` runs blocks."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import msgspec
import pytest

import congenial as cg
from congenial.plan.cross_table import CrossTable
from congenial.plan.sections import (
    Accuracy,
    Data,
    Hierarchy,
    Invariants,
    Lookup,
    Method,
    Privacy,
    Publication,
)
from papers.studies import sources
from support.pages import blocks_of, copy_examples, table_below

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PLANS = (ROOT / "docs/plan.md").read_text(encoding="utf-8")
# The heading of each section of a plan, and the keys that are required by a rule, not by a type.
SECTIONS = {
    "`data`: the rows": Data,
    "`hierarchy`: the places": Hierarchy,
    "`privacy`: the guarantee": Privacy,
    "`invariants`: the rules": Invariants,
    "`method`": Method,
    "`release`: the files": Publication,
    "`accuracy`: the intervals": Accuracy,
    "Tables of attributes": CrossTable,
}
BY_RULE = {"domain": "required", "name": "see below"}


def test_the_readme_is_short() -> None:
    assert len(README.splitlines()) <= 120


def test_the_plan_shown_is_the_one_of_the_demo() -> None:
    named = [block for block in blocks_of(PLANS) if block.file is not None]
    assert [block.file for block in named] == ["examples/taxi/plan.toml"]


def test_the_released_table_is_reproduced(tmp_path) -> None:
    """The seed and plan are those of the command below the table; the trips are public."""
    assert "congenial release examples/taxi/plan.toml --simulate 1" in README
    copy_examples(tmp_path)
    taxi = tmp_path / "examples" / "taxi"
    plan = cg.read_plan(taxi / "plan.toml")
    cg.release(plan, tmp_path / "trial", base=taxi, simulate=1)
    found = cg.read_release(tmp_path / "trial").to_pandas()
    tree, x = sources.taxi()
    lookup = (taxi / "taxi_zone_lookup.csv").read_text(encoding="utf-8").splitlines()
    zone = {fields[2].strip('"'): fields[0] for fields in (row.split(",") for row in lookup)}
    missed = []
    for place, released, interval, true in table_below(README, "A released table"):
        name = zone.get(place, place)
        row = found[(found[["root", "Borough", "PULocationID"]] == name).any(axis=1)].iloc[0]
        ends = f"{row.lower:,} to {row.upper:,}" if row.lower < row.upper else "exact"
        assert (released, interval) == (f"{row.value:,}", ends)
        truth = int(x[tree.find(name)])
        assert true == f"{truth:,}"
        if not row.lower <= truth <= row.upper:
            missed.append(place)
    assert missed == ["Manhattan", "Bronx"]
    names = found[["PULocationID", "Borough", "root"]].bfill(axis=1).iloc[:, 0]
    truths = [int(x[tree.find(name)]) for name in names]
    outside = sum((truths < found.lower) | (truths > found.upper))
    assert f"{outside} of the {len(found)} intervals miss" in " ".join(README.split())


def test_files_linked_are_there() -> None:
    links = re.findall(r"\]\(([^)#:]+)\)", README)
    assert links
    assert [link for link in links if not (ROOT / link).exists()] == []


@pytest.mark.parametrize("heading", SECTIONS)
def test_the_page_lists_every_key_of_a_section_and_its_default(heading) -> None:
    rows = table_below(PLANS, heading)
    known = {field.name: field for field in msgspec.structs.fields(SECTIONS[heading])}
    assert sorted(row[0].strip("`") for row in rows) == sorted(known)
    for key, default, _ in rows:
        field = known[key.strip("`")]
        if default == BY_RULE.get(field.name):
            assert not field.required
        elif default == "required":
            assert field.required
        else:
            plain = field.default_factory is msgspec.NODEFAULT
            kept = field.default if plain else field.default_factory()
            if default == "none":
                assert kept in (None, (), {})
            else:
                shown = tomllib.loads(f"x = {default.strip('`')}")["x"]
                assert shown == (list(kept) if isinstance(kept, tuple) else kept)


def test_the_page_lists_the_sections_and_the_keys_of_a_lookup() -> None:
    named = re.findall(r"\[`([a-z]+)`\]", PLANS[: PLANS.index("\n## ")])
    assert named == [
        *("data", "hierarchy", "table", "tables", "privacy"),
        *("invariants", "method", "release", "accuracy"),
    ]
    line = next(line for line in PLANS.splitlines() if line.startswith("| `lookup`"))
    assert all(f"{key} = " in line for key in Lookup.__struct_fields__)
