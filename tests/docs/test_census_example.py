"""The example of a census table runs, and its output shows what its text says."""

from __future__ import annotations

import os
import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import congenial as cg

EXAMPLE = Path(__file__).parents[2] / "examples" / "census" / "sex_by_age.py"


@pytest.fixture
def example(monkeypatch):
    """Return a function that runs the script on a few states and returns its names."""

    def played(states):
        monkeypatch.setattr(sys, "argv", [str(EXAMPLE), str(states)])
        return runpy.run_path(str(EXAMPLE))

    return played


def test_the_census_table_is_released_in_every_way(example, capsys):
    example(2)
    told = capsys.readouterr().out
    assert told.startswith("4,804 counts in 96 counties")
    for name, guarantee in (
        ("conditioning", "1"),
        ("imaging", "1"),
        ("both margins", "1"),
    ):
        assert f"\n{name}: {guarantee}-differentially private: " in told
    assert told.count("error of sex at level state: 0\n") == 3
    assert "the exact counts of voting_age in P12 at level state" in told


def test_the_whole_table_adds_up_to_everyone_counted(example):
    table, counts = example(1)["census"]()
    assert table.shape == (3143, 2, 23)
    assert int(counts.sum()) == 308_745_538
    # more women than men, and more of them the older
    assert (np.diff(counts.sum(axis=0)[:, -1]) < 0).all()


@pytest.mark.parametrize("exact", [["sex"], ["sex", "voting_age"]])
def test_every_county_satisfies_the_invariants_by_every_method(example, exact):
    table, counts = example(1)["census"]()
    workload = cg.Workload.of(table, {"state": exact})
    x = workload.answers(counts)
    mandate = cg.consistent(workload) & cg.nonnegative() & cg.exactly(margins=exact, level="state")
    mechanism = cg.Additive(cg.DiscreteLaplace(workload.scales({("sex", "age"): 2.0})), workload)
    for made in (
        cg.condition(mechanism, mandate, "exact"),
        cg.image(mechanism, mandate, integer=True),
    ):
        z = made.sample(x, rng=cg.seeded(7))
        cells = workload.array(z, ("sex", "age"), "county")
        assert (cells >= 0).all()
        np.testing.assert_array_equal(workload.answers(cells), z)
        for margin in exact:
            ours, theirs = (workload.array(each, margin, "state") for each in (z, x))
            np.testing.assert_array_equal(ours, theirs)
        # noise of scale 2, and nearly as far off where nothing binds
        assert 1.5 < np.abs(cells - counts).mean() < 2.1


def test_the_script_runs_as_the_readme_says():
    script = EXAMPLE.relative_to(EXAMPLE.parents[2])
    told = subprocess.run(
        [sys.executable, str(script), "--help"],
        cwd=EXAMPLE.parents[2],
        env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert told.returncode == 0, told.stderr
    assert "how many states to take" in told.stdout
