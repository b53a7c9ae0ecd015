"""Errors summed up by level and by size of the true count."""

from __future__ import annotations

import numpy as np
import pytest

from congenial.data.counts import build_domain
from congenial.plan.plan import read_plan
from congenial.preview.comparison.tally import Tally, size_class, size_label
from congenial.releases.model import build_model
from support.city import make_city


def test_sizes_are_powers_of_ten():
    values = [0, 1, 9, 10, 99, 100, 10**15 - 1, 10**15]
    assert size_class(values).tolist() == [0, 1, 1, 2, 2, 3, 15, 16]
    assert [size_label(0, 0), size_label(1000, 9999)] == ["0", "1,000 to 9,999"]


def test_errors_by_size_are_means_over_releases_added_in_parts(tmp_path):
    plan = read_plan(make_city(tmp_path))
    model = build_model(plan, build_domain(plan, base=tmp_path))
    x = model.tree.roll_up([0, 0, 5, 7, 40, 0])
    tally = Tally(model, x)
    one = x.copy()
    one[model.tree.leaves] += [2, -1, 3, 0, 0, 1]
    tally.add(one[None])
    (alone,) = (s for s in tally.sizes() if (s.level, s.high) == ("zone", 0))
    assert (alone.nodes, alone.l1, alone.bias) == (3, pytest.approx(4 / 3), pytest.approx(2 / 3))
    assert np.isnan(alone.standard_error)  # of one release
    tally.add(np.stack((x, x)))
    found = {(s.level, s.low): s for s in tally.sizes()}
    assert found["zone", 0].l1 == pytest.approx(4 / 9)
    assert found["zone", 1].l1 == pytest.approx(3 / 6)
    assert found["zone", 10].l1 == 0.0
    assert found["zone", 0].standard_error == pytest.approx(np.std([2 / 3, 0, 0], ddof=1) / 3**0.5)
    assert found["borough", 1].nodes == 1
    assert all(s.level != "root" for s in tally.sizes())  # exact
