"""What a method of releases in parts claims of noise that is drawn alone."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

import congenial as cg
from congenial.errors import PlanError
from congenial.releases.making import moved_parts, topdown_parts
from congenial.releases.making.part_method import measured_claims
from congenial.releases.model import build_model, claim
from congenial.releases.specification import worst_neighbours
from support.city import make_city

GAUSSIAN = 'neighbours = "substitute"\nepsilon = {}\ndelta = 1e-6\nnoise = "discrete-gaussian"'


def counted(place, epsilon):
    make_city(place, method='name = "topdown"', privacy=GAUSSIAN.format(epsilon))
    model = build_model(
        cg.read_plan(place / "plan.toml"), cg.Tree.from_paths(["City/a/1", "City/a/2"])
    )
    return SimpleNamespace(stand_in=model, guarantee=claim(model, 0.0))


def test_noisy_counts_that_are_moved_are_charged_for_nothing_but_noise(tmp_path):
    top = counted(tmp_path, 1.0)
    claims = measured_claims(top)
    assert claims.guarantee is top.guarantee
    assert claims.worst == worst_neighbours(top.stand_in, top.guarantee)
    assert top.guarantee.sampler_error == 0.0
    assert moved_parts.claims is topdown_parts.measured_claims is measured_claims


def test_noise_so_wide_that_its_draws_have_an_error_is_refused(tmp_path):
    with pytest.raises(PlanError, match=r"^privacy.epsilon is 0.0001, .* give a larger epsilon"):
        measured_claims(counted(tmp_path, 1e-4))
