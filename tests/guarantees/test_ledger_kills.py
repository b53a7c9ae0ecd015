"""A process killed at any instant neither loses a debit nor spends one twice.

`ledger_kills.py` does the killing, in processes of its own, and checks after each that the ledger
opens, that it holds every debit that was begun, once, that no noise was drawn before its debit
was committed, and that no release is on disk without one.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from congenial.ledger.records import RESERVED, SPENT

PROGRAM = Path(__file__).parents[1] / "support" / "ledger_kills.py"

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


def run(place, *arguments):
    path = os.pathsep.join([str(PROGRAM.parents[2] / "src"), str(PROGRAM.parents[1])])
    return subprocess.run(
        [sys.executable, str(PROGRAM), str(place), *arguments],
        capture_output=True,
        text=True,
        timeout=240,
        env=os.environ | {"PYTHONPATH": path},
        check=False,
    )


def told(done):
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_release_is_killed_at_every_step(tmp_path):
    killed = told(run(tmp_path, "steps"))
    # looked at, debited, finished
    assert killed.count("before COMMIT") >= 3
    for step in (
        "BEGIN IMMEDIATE",
        "INSERT INTO datasets",
        "INSERT INTO entries",
        "UPDATE entries",
        "COMMIT",
        "Conditioned.sample",
        "os.rename",
        "congenial.releases.atomic_directory._exchange",
        "congenial.releases.making.make_release.settle",
    ):
        assert {f"before {step}", f"after {step}"} <= set(killed)
    # an older ledger gets its hashes with the first debit, or not at all
    assert "before DROP TABLE" in killed
    for step in (
        "directory.write_tables",
        "making.make_release.certify",
        "making.make_release.write_certificate",
    ):
        assert f"before congenial.releases.{step}" in killed
    assert killed.count("before os.fsync") >= 5


def test_releases_are_killed_at_random_instants(tmp_path):
    states = told(run(tmp_path, "releases", "25"))
    assert {RESERVED, SPENT} == set(states)


def test_debits_are_killed_at_200_random_instants(tmp_path):
    states = told(run(tmp_path, "debits", "200"))
    assert {RESERVED, SPENT} == set(states)


@pytest.mark.parametrize("fault", ["twice", "given_back", "shared"])
def test_a_planted_fault_is_found(tmp_path, fault):
    done = run(tmp_path, "debits", "40", fault)
    assert done.returncode == 1
    # which of its traces is met first hangs on when the processes are killed
    assert "FAILED: " in done.stderr
