"""Completion of plans and releases: what is offered of a directory."""

from __future__ import annotations

from congenial.cli.arguments import complete_plans, complete_releases


def names(complete, typed):
    return [item.value for item in complete(None, None, typed)]


def test_plans_and_releases_are_offered_with_the_ways_to_more(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "plan.toml").touch()
    (tmp_path / "rows.csv").touch()
    (tmp_path / ".hidden.toml").touch()
    (tmp_path / "release").mkdir()
    (tmp_path / "release" / "certificate.json").touch()
    (tmp_path / "other").mkdir()
    assert names(complete_plans, "") == ["plan.toml", "other/", "release/"]
    assert names(complete_plans, "pl") == ["plan.toml"]
    assert names(complete_plans, ".h") == [".hidden.toml"]
    assert names(complete_releases, "") == ["release", "other/"]
    assert names(complete_releases, f"{tmp_path}/r") == [f"{tmp_path}/release"]


def test_the_shell_completes_where_nothing_or_a_quoted_name_is_found(tmp_path):
    (tmp_path / "a plan.toml").touch()
    (item,) = complete_plans(None, None, f"{tmp_path}/a")
    assert (item.value, item.type) == (f"{tmp_path}/a", "file")
    (item,) = complete_releases(None, None, f"{tmp_path}/")
    assert item.type == "dir"
    assert complete_plans(None, None, f"{tmp_path}/nowhere/x") == []
