"""The guarantee that noise is calibrated for: its checks, its law, and scales that just miss it."""

from __future__ import annotations

import math

import numpy as np
import pytest

import congenial as cg
from congenial.accounting.calibration.target import Target
from congenial.errors import ArgumentError, PrivacyError
from congenial.invariants.written import resolve_invariant

TREE = cg.Tree.from_paths([("root", "a"), ("root", "b")])


def resolved(*, bounds=True):
    invariant = cg.consistent(TREE) & cg.exactly("root")
    return resolve_invariant(invariant & cg.nonnegative() if bounds else invariant, 3, TREE)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"epsilon": True}, "epsilon is True"),
        ({"epsilon": "1"}, "epsilon is '1'"),
        ({"epsilon": 0.0}, r"epsilon is 0\.0; give a number from 1e-90 to 1e\+90\.$"),
        ({"epsilon": 1e300}, r"epsilon is 1e\+300; give a number from 1e-90 to 1e\+90\.$"),
        ({"epsilon": 10**400}, r"epsilon is 10000.*; give a number from 1e-90 to 1e\+90\.$"),
        (
            {"epsilon": 1e-7, "delta": 1e-9},
            r"epsilon is 1e-07; give a number from 1e-06 to 1e\+90 for Gaussian noise\.$",
        ),
        ({"neighbours": "swap"}, "neighbours is 'swap'"),
        ({"method": "projection"}, "method is 'projection'"),
    ],
)
def test_wrong_targets_are_refused(wrong, message):
    right = {"epsilon": 1.0, "neighbours": "substitute", "method": "imaging"}
    with pytest.raises(ArgumentError, match=message):
        Target(**(right | wrong))


def test_only_conditioning_on_bounds_adds_to_the_loss():
    one, other = (Target(1.0, "substitute", method) for method in ("conditioning", "imaging"))
    assert one.conditions_on_bounds(resolved())
    assert not one.conditions_on_bounds(resolved(bounds=False))
    assert not other.conditions_on_bounds(resolved())
    scales = np.array([np.inf, 2.0, 2.0])
    assert other.guarantee(scales, TREE, resolved()).epsilon == pytest.approx(1.0)
    loss = one.guarantee(scales, TREE, resolved()).epsilon
    assert loss == pytest.approx(math.log(math.e + 1 - 1 / math.e))


def test_a_delta_asks_for_gaussian_noise():
    gaussian = Target(1.0, "substitute", "imaging", 1e-6)
    scales = np.array([np.inf, 4.0, 4.0])
    assert gaussian.law(scales).name == "discrete-gaussian"
    assert gaussian.guarantee(scales, TREE, resolved()).delta == 1e-6
    assert Target(1.0, "substitute", "imaging").law(scales).name == "discrete-laplace"


def test_scales_are_widened_by_roundings_and_refused_beyond():
    target = Target(1.0, "substitute", "imaging")
    narrow = np.array([np.inf, 2.0, 2.0]) * (1.0 - 1e-15)
    assert target.guarantee(narrow, TREE, resolved()).epsilon > 1.0
    settled = target.settle(narrow, TREE, resolved())
    assert target.guarantee(settled, TREE, resolved()).epsilon <= 1.0
    assert settled[1] == pytest.approx(2.0, rel=1e-14)
    with pytest.raises(PrivacyError, match=r"calibrated for epsilon 1 gives 1\.11"):
        target.settle(0.9 * narrow, TREE, resolved())
