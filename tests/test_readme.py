"""Every block of code in the README works as printed."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from congenial.verify import verify

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


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
    found = blocks("python", (ROOT / "docs/plan.md").read_text(encoding="utf-8"))
    assert found
    for code in found:
        exec(compile(code, "plan.md", "exec"), {})
    assert all(check.passed for check in verify(tmp_path / "release"))
