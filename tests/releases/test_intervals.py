"""Intervals of a release, from what is published alone."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import numpy as np
import pytest

from congenial.inference.noise_intervals import noise_margin
from congenial.plan.plan import read_plan
from congenial.randomness import seeded
from congenial.releases.accuracy import (
    UNKNOWN,
    NoIntervals,
    margins,
)
from congenial.releases.intervals import intervals, sums_of
from congenial.releases.making.make_release import release
from congenial.releases.model import choose_method
from congenial.verification.verdict import verify
from support.city import make_city
from support.margins_of_plans import made

BOTH = ("table", "measurements")


def test_under_bounds_there_are_margins_of_exact_counts_alone():
    for method in ("conditioning", "imaging", "topdown"):
        model = made(
            (2, 3), bound=True, method=method, accuracy='sums = { a = ["t0"], b = ["all"] }'
        )
        found = margins(model, choose_method(model))
        if method == "conditioning":  # its intervals are worked out once it is drawn
            assert found.basis.source == "inversion"
            found = replace(found, basis=NoIntervals(("bounds-bind",)))
        assert found.basis == NoIntervals(("bounds-bind",))
        assert found.margin.tolist() == [0] + [UNKNOWN] * 7
        assert [v.margin for v in found.sums] == [None, 0]
        shown = intervals(model, choose_method(model), found, np.zeros(8, dtype=np.int64))
        assert shown.columns["lower"].objects() == [0] + [None] * 7
        assert shown.sums[0].lower is None and shown.sums[1].upper == 0


def test_intervals_of_measurements_satisfy_bounds_and_contain_the_count():
    model = made((2, 3), bound=True, method="imaging", publish=BOTH)
    found, n = margins(model, choose_method(model)), len(model.tree)
    y = np.array([50, -90, 3, 3, 70, 0, 0, 900])
    value = np.array([50, 0, 0, 0, 50, 0, 0, 50])
    shown = intervals(model, choose_method(model), found, value, y)
    assert (shown.lower >= 0).all() and (shown.lower <= value).all()
    assert (shown.upper >= value).all()
    assert (shown.lower[0], shown.upper[0]) == (50, 50)
    assert (shown.lower[1], shown.upper[1]) == (0, 0)
    assert shown.lower[7] == 50 and shown.upper[7] == 900 + found.margin[7]
    scale = model.mechanism.scales
    for v in range(1, n):
        assert found.margin[v] == noise_margin(model.mechanism.noise, float(scale[v]), 0.1)


@pytest.mark.parametrize(
    ("case", "basis"),
    [
        ({}, "law"),
        ({"method": "imaging"}, "simulation"),
        ({"method": "topdown", "bound": True, "publish": BOTH}, "measurements"),
        ({"bound": True}, "inversion"),
        ({"method": "imaging", "bound": True}, "none"),
    ],
)
def test_sums_worked_out_alone_have_the_intervals_that_all_counts_give_them(case, basis):
    asked = 'sums = { a = ["t0", "t1/b0"], b = ["all"], c = ["t1/b1", "t2/b1", "t2/b2"] }'
    model = made((2, 3, 4), accuracy=asked, **case)
    mechanism, counts = choose_method(model), np.array([5, 0, 1, 9, 30, 0, 0, 2, 44])
    x = model.tree.roll_up(counts)
    y = mechanism.measure(x, rng=seeded(2)) if "measure" in dir(mechanism) else None
    z = mechanism.sample(x, rng=seeded(2)) if y is None else mechanism.apply(y, seeded(2))
    y = y if "publish" in case else None
    found, alone = (margins(model, mechanism, sums_only=only) for only in (False, True))
    assert found.basis.source == alone.basis.source == basis
    both = intervals(model, mechanism, found, z, y).sums
    assert sums_of(model, mechanism, alone, z, y) == both
    assert (both[0].lower is None) == (basis == "none") and both[1].lower == both[1].upper


@pytest.mark.parametrize(
    ("sections", "basis"),
    [
        (
            {"method": 'name = "conditioning"', "invariants": "at_most = { root = 1000 }"},
            {"kind": "posterior", "not_by_inversion": "inversion-does-not-cover-bounds"},
        ),
        (
            {"method": 'name = "posterior"', "invariants": ""},
            {"kind": "none", "obstacles": ("errors-depend-on-counts",)},
        ),
        (
            {"method": 'name = "imaging"', "invariants": "nonnegative = true"},
            {"kind": "none", "obstacles": ("bounds-bind",)},
        ),
    ],
)
def test_the_reason_for_other_intervals_or_none_is_the_true_one(tmp_path, sections, basis):
    plan = read_plan(make_city(tmp_path, **sections))
    made = release(plan, tmp_path / "out", base=tmp_path, simulate=1)
    assert msgspec.to_builtins(made.certificate.accuracy.basis) == basis
    assert all(check.passed for check in verify(tmp_path / "out"))
