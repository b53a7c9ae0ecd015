"""The example of a census table runs, and says what it is to show."""

from __future__ import annotations

import runpy
from pathlib import Path

import numpy as np

EXAMPLE = Path(__file__).parents[1] / "examples" / "census" / "sex_by_age.py"


def test_the_census_table_is_released_in_every_way(capsys):
    module = runpy.run_path(str(EXAMPLE))
    module["main"](2)
    told = capsys.readouterr().out
    assert told.startswith("4,804 counts in 96 counties")
    for name in ("conditioning", "imaging", "both margins"):
        assert f"\n{name}: (1, " in told
    assert told.count("error of sex at level state: 0\n") == 3
    assert "the exact counts of voting_age in P12 at level state" in told


def test_the_whole_table_adds_up_to_everyone_counted():
    table, counts = runpy.run_path(str(EXAMPLE))["census"]()
    assert table.shape == (3143, 2, 23)
    assert int(counts.sum()) == 308_745_538
    # more women than men, and more of them the older
    assert (np.diff(counts.sum(axis=0)[:, -1]) < 0).all()
