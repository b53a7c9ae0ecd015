"""The plans of the two census examples: rows built, released and checked."""

from __future__ import annotations

import runpy
import shutil
from pathlib import Path

import numpy as np
import pytest

import congenial as cg
from congenial.data.counts import count
from congenial.releases.model import build_model

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def built(tmp_path):
    """Return a function that builds an example's rows in a copy of its directory."""

    def build(example, script, *county):
        shutil.copy(EXAMPLES / example / "plan.toml", tmp_path / "plan.toml")
        runpy.run_path(str(EXAMPLES / example / script))["build"](tmp_path, *county)
        return cg.read_plan(tmp_path / "plan.toml")

    return build


def test_blocks_of_one_county_are_released(built, tmp_path):
    plan = built("washington", "build_blocks.py", "53023")
    cg.release(plan, tmp_path / "out", base=tmp_path, simulate=1, with_truth=True)
    found = cg.read_release(tmp_path / "out")
    assert all(check.passed for check in cg.verify(tmp_path / "out"))
    truth = np.array(found.rows.column("truth"))
    assert truth[0] == found.values[0] == 2266  # people of Garfield County in 2010
    domain = found.domain
    used = domain.array(found.values, "status", "block", "homes")[:, 0]
    assert (domain.array(found.values, (), "block", "people") >= used).all()
    assert used.sum() > 900  # one home in use for every two adults
    # noise of 5 to 40 at every query, and 90% intervals around the measurements
    lower, upper = (np.array(found.rows.column(end)) for end in ("lower", "upper"))
    assert ((lower <= truth) & (truth <= upper)).mean() > 0.88


def test_sex_by_age_of_all_counties_keeps_its_exact_counts(built, tmp_path):
    plan = built("census", "build_counties.py")
    counted = count(plan, base=tmp_path)
    assert counted.counts[0] == 308_745_538  # people of the United States in 2010
    model = build_model(plan, counted.domain)
    mechanism = cg.imaging.topdown_image(model.mechanism, model.invariant)
    z = mechanism.sample(counted.counts, rng=cg.seeded(1))
    assert counted.domain.is_consistent(z)
    assert (z >= 0).all()
    pinned = model.resolved.pinned
    assert int(pinned.sum()) == 51 * 5 + 3143
    assert (z[pinned] == counted.counts[pinned]).all()
    assert 1.0 < np.abs(z - counted.counts)[counted.domain.cells].mean() < 4.0
