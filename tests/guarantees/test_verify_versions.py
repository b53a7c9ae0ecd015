"""Releases of another version: what they claim is checked, and its words are not compared."""

from __future__ import annotations

import json
import re
import shutil

import pytest

from congenial.cli.command_line import run
from congenial.plan.plan import read_plan
from congenial.releases import directory as files
from congenial.releases.certificate import plan_digest
from congenial.releases.making import release
from congenial.report.write import report
from congenial.verification.verdict import verify
from support.city import make_city


@pytest.fixture(scope="module")
def pristine(tmp_path_factory):
    place = tmp_path_factory.mktemp("pristine")
    plan = read_plan(make_city(place))
    release(plan, place / "real", base=place)
    release(plan, place / "sham", base=place, simulate=5)
    return place


def other(directory, to, *changes, version="0.0.9"):
    """Return a copy by another version, changed at paths of keys."""
    shutil.copytree(directory, to)
    path = to / files.CERTIFICATE
    stated = json.loads(path.read_text())
    stated["versions"]["congenial"] = version or stated["versions"]["congenial"]
    for *keys, last, value in changes:
        part = stated
        for key in keys:
            part = part[key]
        assert part[last] != value
        part[last] = value
    stated["plan_sha256"] = plan_digest(stated["plan"])
    path.write_text(json.dumps(stated))
    return to


def found(directory):
    """Return the names of the checks that fail, and of those that compare no words."""
    checks = verify(directory)
    unlike = {c.name for c in checks if not c.comparable}
    return {c.name for c in checks if not c.passed}, unlike


ROUTE = "exact sampler: by a method that was called otherwise. It took 17 operations."
# epsilon and delta of the city's release follow in the test
WORDS = [
    ("route", ("drawn", "route", ROUTE)),
    ("guarantee", ("guarantee", "covered", "the datasets of that time")),
    ("guarantee", ("guarantee", "gamma_source", "shown")),
    ("domain", ("specification", "domain", "datasets", "the datasets of that time")),
    ("invariants", ("specification", "invariants", 0, "told", "integers")),
    ("distance", ("specification", "distance", "told", "a record changes")),
    ("measure", ("specification", "measure", "told", "by a factor")),
    ("spending", ("specification", "budget", "gamma_source", "shown")),
    ("published", ("published", "told", "It is the table's.")),
    ("rule", ("left_out", "rows", "as many as there were")),
    ("intervals", ("accuracy", "told", "There are none.")),
]


@pytest.mark.parametrize(("check", "change"), WORDS)
def test_words_of_another_version_are_told_as_such(pristine, tmp_path, check, change):
    assert found(other(pristine / "real", tmp_path / "old", change)) == (set(), {check})
    same = other(pristine / "real", tmp_path / "same", change, version=None)
    assert found(same) == ({check}, set())


@pytest.mark.parametrize(
    ("check", "change"),
    [
        ("guarantee", ("guarantee", "epsilon", 0.5)),
        ("guarantee", ("guarantee", "covered", "the 12 datasets of that time")),
        ("guarantee", ("guarantee", "covered", "")),
        ("guarantee", ("guarantee", "covered", " -")),
        ("guarantee", ("guarantee", "covered", "half (\u00bd) of the datasets")),
        ("unprotected", ("guarantee", "unprotected", [])),
        ("unprotected", ("guarantee", "unprotected", [""])),
        ("unprotected", ("guarantee", "unprotected", ["the exact count", " "])),
        ("noise", ("levels", 1, "scale", 20.0)),
        ("domain", ("specification", "domain", "public", False)),
        ("invariants", ("specification", "invariants", 0, "kind", "sums")),
        ("distance", ("specification", "distance", "records", 2)),
        ("measure", ("specification", "measure", "delta", 0.0)),
        ("spending", ("specification", "budget", "epsilon", 0.5)),
        ("proofs", ("specification", "proofs", [])),
        ("published", ("published", "products", [])),
        ("route", ("drawn", "route", "by hand")),
        ("route", ("drawn", "route", "exact sampler: within 5 in total variation.")),
        ("route", ("drawn", "route", "exact sampler: a chain of 999 steps.")),
        ("rule", ("left_out", "rule", "zone < 3")),
        ("rule", ("left_out", "rows", "12")),
        ("intervals", ("accuracy", "confidence", 0.99)),
        ("numerical error", ("drawn", "numerical_error", 0.0)),
        ("sentence", ("sentence", "Nobody can learn anything.")),
        ("sentence", ("sentence", "(0.1, 0)-differentially private.")),
    ],
)
def test_numbers_and_kinds_of_another_version_are_checked(pristine, tmp_path, check, change):
    assert check in found(other(pristine / "real", tmp_path / "old", change))[0]


def reworded(directory, extra="", told="Epsilon is {0} and delta {1}. Told exactly: {2}."):
    claim = json.loads((directory / files.CERTIFICATE).read_text())["guarantee"]
    left = ", ".join(claim["unprotected"])
    return told.format(f"{claim['epsilon']:.6g}", f"{claim['delta']:.2g}", left) + extra


@pytest.mark.parametrize(
    "told",
    [
        "({1}, {0})-differentially private. Not protected: {2}.",
        "({0}, {1})-differentially private. Not protected: nothing.",
        "(-{0}, {1})-differentially private. Not protected: {2}.",
        "({0}, {1})-differentially private, or \u0663. Not protected: {2}.",
    ],
)
def test_a_guarantee_in_other_words_says_what_the_numbers_are(pristine, tmp_path, told):
    wrong = ("sentence", reworded(pristine / "real", told=told))
    assert "sentence" in found(other(pristine / "real", tmp_path / "old", wrong))[0]


def test_what_is_not_protected_is_told_alike_in_the_list_and_in_the_sentence(pristine, tmp_path):
    listed = ("guarantee", "unprotected", ["what is exact"])
    assert found(other(pristine / "real", tmp_path / "one", listed)) == (
        {"sentence"},
        {"unprotected"},
    )
    same = other(pristine / "real", tmp_path / "same", listed, version=None)
    assert found(same) == ({"unprotected"}, set())
    told = reworded(pristine / "real", " Not protected: what is exact.")
    both = other(pristine / "real", tmp_path / "both", listed, ("sentence", told))
    assert found(both) == (set(), {"unprotected", "sentence"})


def test_costs_of_another_version_may_be_others(pristine, tmp_path):
    stated = json.loads((pristine / "real" / files.CERTIFICATE).read_text())["drawn"]["route"]
    dearer = re.sub(r"\S+ (table entries|multiplications)", r"9.1e+03 \1", stated)
    dearer = re.sub(r"\S+ KiB", "99.9 MiB", dearer)
    old = other(pristine / "real", tmp_path / "old", ("drawn", "route", dearer))
    assert found(old) == (set(), {"route"})


def test_a_guarantee_in_other_words_has_its_numbers(pristine, tmp_path):
    told = reworded(pristine / "real")
    old = other(pristine / "real", tmp_path / "old", ("sentence", told))
    assert found(old) == (set(), {"sentence"})
    more = reworded(pristine / "real", " It was 0.125 once.")
    assert "sentence" in found(other(pristine / "real", tmp_path / "more", ("sentence", more)))[0]
    # a simulation is not told as a release
    sham = other(pristine / "sham", tmp_path / "sham", ("sentence", told))
    assert "sentence" in found(sham)[0]


def test_another_version_with_the_same_words_is_compared(pristine, tmp_path):
    assert found(other(pristine / "real", tmp_path / "old")) == (set(), set())


def test_the_command_and_the_page_speak_for_what_was_checked(pristine, tmp_path, capsys):
    told = reworded(pristine / "real", " Anything may be learnt.")
    old = other(pristine / "real", tmp_path / "old", ("sentence", told), version="0.0\x1b[2J")
    assert run(["verify", str(old)]) == 0
    out = capsys.readouterr().out
    assert "words   sentence" in out and "1 of them compared no words" in out
    assert "\x1b" not in out
    page = report(old).read_text()
    assert "Anything may be learnt" not in page
    assert json.loads((pristine / "real" / files.CERTIFICATE).read_text())["sentence"][:60] in page
