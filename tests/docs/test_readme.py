"""The files and keys named in the README and the page on plans; `test_pages.py` runs blocks."""

from __future__ import annotations

import re
from pathlib import Path

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
from support.pages import blocks_of

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PLANS = (ROOT / "docs/plan.md").read_text(encoding="utf-8")


def test_the_plan_shown_is_the_one_of_the_demo() -> None:
    named = [block for block in blocks_of(README) if block.file is not None]
    assert [block.file for block in named] == ["examples/taxi/plan.toml"]


def test_files_linked_are_there() -> None:
    links = re.findall(r"\]\(([^)#:]+)\)", README)
    assert links
    assert [link for link in links if not (ROOT / link).exists()] == []


def test_the_page_lists_every_key_of_a_plan_and_no_other() -> None:
    sections = {
        "data": Data,
        "hierarchy": Hierarchy,
        "table": CrossTable,
        "privacy": Privacy,
        "invariants": Invariants,
        "method": Method,
        "release": Publication,
        "accuracy": Accuracy,
    }
    known = [f"{name}.{key}" for name, of in sections.items() for key in of.__struct_fields__]
    pattern = r"^\| `([a-z_]+\.[a-z_]+)`"
    assert sorted(re.findall(pattern, PLANS, flags=re.MULTILINE)) == sorted(known)
    assert "| `tables.NAME` |" in PLANS
    told = next(line for line in PLANS.splitlines() if line.startswith("| `data.lookup`"))
    assert all(f"{key} = " in told for key in Lookup.__struct_fields__)
