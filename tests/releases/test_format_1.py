"""Releases of format 1 are still read, checked and shown."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import congenial as cg
from congenial.cli.command_line import run
from congenial.releases import directory as files
from congenial.releases.specification import ByConditioning, ByTopDown
from congenial.report.write import report
from congenial.verification.verdict import verify

STORED = Path(__file__).parents[1] / "support" / "format_1"
NAMES = ("conditioned", "topdown")


def other(name, to, *keys, value):
    """Return a copy of a stored release, one value of its certificate changed."""
    shutil.copytree(STORED / name, to)
    stated = json.loads((to / files.CERTIFICATE).read_text(encoding="utf-8"))
    part = stated
    for key in keys[:-1]:
        part = part[key]
    assert part[keys[-1]] != value
    part[keys[-1]] = value
    (to / files.CERTIFICATE).write_text(json.dumps(stated), encoding="utf-8")
    return to


def failed(directory):
    return [check.name for check in verify(directory) if not check.passed]


@pytest.mark.parametrize("name", NAMES)
def test_a_stored_release_is_verified_read_and_shown(tmp_path, name, capsys):
    assert json.loads((STORED / name / files.CERTIFICATE).read_text())["format"] == 1
    checks = verify(STORED / name)
    assert all(check.passed for check in checks)
    assert [check.name for check in checks if not check.comparable] == ["certificate"]
    assert run(["verify", str(STORED / name)]) == 0
    assert "Sentences of format 1 were not checked." in capsys.readouterr().out
    read = cg.read_release(STORED / name)
    assert read.certificate.guarantee.epsilon == pytest.approx(1.0)
    assert len(read.tree) == read.values.size
    page = report(STORED / name, tmp_path / "page.html").read_text(encoding="utf-8")
    assert read.certificate.sentence[:40] in page


def test_what_a_stored_release_states(tmp_path):
    one, two = (cg.read_release(STORED / name).certificate for name in NAMES)
    assert one.method == ByConditioning("exact") and two.method == ByTopDown()
    assert one.unprotected == ("the exact count of City",)
    assert one.stamp is None and two.stamp == files.STAMP
    assert two.sentence.startswith(files.STAMP)
    assert two.guarantee.measure.rho == pytest.approx(0.0243, rel=1e-2)
    assert (one.accuracy.source, two.accuracy.source) == ("inversion", "measurements")


@pytest.mark.parametrize(
    ("keys", "value", "check"),
    [
        (("guarantee", "epsilon"), 0.5, "certificate"),
        (("drawn", "numerical_error"), 0.0, "certificate"),
        (("left_out", "rule"), "zone < 3", "certificate"),
        (("drawn", "randomness"), "seeded", "certificate"),
        (("stamp",), "SIMULATION: NOT PRIVATE", "certificate"),
        (("guarantee", "covered"), "all datasets", "guarantee"),
        (("guarantee", "gamma_source"), "trivial: gamma = 1", "guarantee"),
        (("guarantee", "gamma_source"), "shown elsewhere", "certificate"),
        (("guarantee", "unprotected"), [], "unprotected"),
        (("specification", "measure", "noise"), "zcdp", "certificate"),
        (("levels", 1, "scale"), 20.0, "certificate"),
        (("levels", 0, "noise"), "discrete-gaussian", "noise"),
        (("specification", "budget", "levels", 1, "share"), 0.5, "noise"),
        (("specification", "domain", "public"), False, "domain"),
        (("specification", "invariants", 0, "kind"), "sums", "invariants"),
        (("specification", "distance", "records"), 2, "guarantee"),
        (("specification", "worst_neighbours", "loss"), 0.5, "worst neighbours"),
        (("specification", "proofs"), [], "proofs"),
        (("published", "products"), [], "published"),
        (("drawn", "method"), "topdown", "method"),
        (("accuracy", "confidence"), 0.99, "intervals"),
        (("accuracy", "source"), "law", "intervals"),
        (("specification", "budget"), None, "certificate"),
    ],
)
def test_its_numbers_and_kinds_are_checked(tmp_path, keys, value, check):
    assert check in failed(other("conditioned", tmp_path / "out", *keys, value=value))


@pytest.mark.parametrize(
    ("epsilon", "error", "check"), [(0.5, 1e-9, "guarantee"), (1.0, 0.0, "guarantee")]
)
def test_facts_stated_twice_are_checked_too(tmp_path, epsilon, error, check):
    out = other("conditioned", tmp_path / "out", "made", value="2026-01-31T13:00:00+00:00")
    path = out / files.CERTIFICATE
    stated = json.loads(path.read_text(encoding="utf-8"))
    full, claim = stated["specification"], stated["guarantee"]
    full["budget"]["epsilon"] = claim["epsilon"] = epsilon
    full["measure"]["sampler_error"] = claim["sampler_error"] = error
    stated["drawn"]["numerical_error"] = error
    path.write_text(json.dumps(stated), encoding="utf-8")
    assert check in failed(out)


def test_its_sentences_are_not_read_and_not_shown(tmp_path):
    lie = "Nobody can learn anything."
    out = other("conditioned", tmp_path / "out", "sentence", value=lie)
    assert failed(out) == []
    assert lie not in report(out).read_text(encoding="utf-8")
    told = other("conditioned", tmp_path / "told", "guarantee", "unprotected", value=[lie])
    assert failed(told) == []
    unlike = {check.name for check in verify(told) if not check.comparable}
    assert unlike == {"certificate", "unprotected"}
    assert lie not in report(told).read_text(encoding="utf-8")
