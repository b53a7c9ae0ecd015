"""The scripts under examples run from a clean copy, and what they show is true."""

from __future__ import annotations

import runpy
import shutil
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
SCRIPTS = ("taxi/release_zones.py", "dataframe/clinic_visits.py", "census/sex_by_age.py")


@pytest.fixture
def play(tmp_path, monkeypatch):
    """Return a function that runs a copy of a script, cell after cell, and returns its names."""

    def played(script, *arguments):
        copy = tmp_path / script
        shutil.copytree(
            (EXAMPLES / script).parent,
            copy.parent,
            ignore=shutil.ignore_patterns("release*", "*.parquet"),
            dirs_exist_ok=True,
        )
        shutil.copy(EXAMPLES / script, copy)
        monkeypatch.setattr(sys, "argv", [str(copy), *arguments])
        return runpy.run_path(str(copy))

    return played


def test_the_taxi_zones(play, tmp_path, capsys):
    names = play("taxi/release_zones.py", "--simulate", "1", "--out", str(tmp_path / "out"))
    told = capsys.readouterr().out
    assert "Built trips.parquet: 2,979,379 trips." in told
    assert " checks passed.\n" in told
    assert "2,944,056 trips in 263 zones" in told
    for line in ("The three airports: ", "P(Bedford has more", "Manhattan's share: 92.28"):
        assert line in told
    tree, zones, z = names["tree"], names["zones"], names["z"]
    counts = pl.read_csv(EXAMPLES / "taxi/zone_hour_counts_2022_02.csv.gz")
    by_zone = dict(counts.group_by("zone_id").agg(pl.col("trips").sum()).iter_rows())
    truth = tree.roll_up([by_zone.get(int(tree.names[v]), 0) for v in tree.leaves])
    assert truth[0] == z[0]
    # of 263 intervals at 90%, fewer than 210 or more than 258 hold with probability below 1e-6
    held = (np.abs(z - truth) <= names["margins"])[zones].sum()
    assert 210 <= held <= 258
    inside = ((names["low"] <= truth) & (truth <= names["high"]))[zones].sum()
    assert inside >= 210
    assert (np.abs(z - truth)[zones] <= names["together"].max()).all()
    assert (names["draws"] >= 0).all()
    imaged = names["imaged"]
    assert (imaged.values >= 0).all()
    assert imaged.measurements is not None
    assert ((names["low"] <= truth) & (truth <= names["high"]))[zones].sum() >= 210
    np.testing.assert_array_equal(tree.roll_up(names["draws"][0][tree.leaves]), names["draws"][0])


def test_a_dataframe(play, tmp_path, capsys):
    names = play("dataframe/clinic_visits.py", "--simulate", "1", "--out", str(tmp_path / "out"))
    told = capsys.readouterr().out
    assert "13 counts will be released" in told
    assert "P(more visits in the Old Town than in the Hills) = " in told
    kept = names["visits"].filter((pl.col("age") >= 18) & pl.col("booked"))
    found = names["found"]
    assert found.values[0] == kept.height
    by_clinic = dict(kept.group_by("clinic").len().iter_rows())
    truth = found.tree.roll_up([by_clinic.get(found.names[v], 0) for v in found.tree.leaves])
    # noise of scale 5.7: an error beyond 100 has a probability below 1e-7
    assert 0 < np.abs(found.values - truth).max() < 100
    assert (names["low"] <= names["likely"]).all()
    assert (names["likely"] <= names["high"]).all()
    table = names["table"]
    assert table.height == len(found.tree)
    assert (table["lower"] <= table["value"]).all()
    assert (table["value"] <= table["upper"]).all()


@pytest.mark.parametrize("script", SCRIPTS[:2])
def test_a_release_without_a_seed_is_one(play, tmp_path, capsys, script):
    made = play(script, "--out", str(tmp_path / "out"))["made"]
    assert not made.simulated
    assert "SIMULATION" not in capsys.readouterr().out


def test_the_same_seed_says_the_same(play, tmp_path, capsys):
    options = ("dataframe/clinic_visits.py", "--simulate", "3", "--out", str(tmp_path / "out"))
    play(*options)
    first = capsys.readouterr().out
    play(*options)
    assert capsys.readouterr().out == first


@pytest.mark.parametrize("script", SCRIPTS)
def test_scripts_are_cells_with_a_word_on_each(script):
    lines = (EXAMPLES / script).read_text(encoding="utf-8").splitlines()
    cells = [line for line in lines if line.startswith("# %%")]
    assert len(cells) >= 6
    assert all(len(cell) > len("# %% ") for cell in cells)
