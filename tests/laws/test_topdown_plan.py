"""Releases level by level from the root."""

from __future__ import annotations

import numpy as np
import pytest

import congenial as cg
from congenial.errors import ArgumentError, UnsupportedError
from congenial.imaging.top_down import topdown_image
from congenial.plan.plan import parse_plan, read_plan
from congenial.preview.explanation import as_text, explain
from congenial.preview.plan_audit import audit_model
from congenial.releases.making.make_release import release
from congenial.releases.model import build_model, choose_method
from congenial.releases.specification import ByTopDown
from congenial.verification.verdict import verify
from support.city import TRIPS, ZONES, make_city, plan_text
from support.claims import guaranteed

TREE = cg.Tree.from_paths([("City", borough, str(zone)) for zone, borough in ZONES.items()])
X = TREE.roll_up(np.array(list(TRIPS.values())))
METHOD = 'name = "topdown"'
GAUSSIAN = (
    'neighbours = "substitute"\nepsilon = 1.0\nnoise = "discrete-gaussian"\ndelta = 1e-6\n'
    "split = { borough = 0.3, zone = 0.7 }"
)
C = cg.exactly([0]) & cg.nonnegative()


def test_a_draw_is_topdown_of_noisy_counts():
    mechanism = cg.Additive(cg.DiscreteLaplace(4.0), TREE)
    drawn = topdown_image(mechanism, C).sample(X, rng=cg.seeded(3))
    source = cg.seeded(3)
    noisy = mechanism.sample(X, rng=source)
    noisy[0] = X[0]
    assert np.array_equal(drawn, cg.topdown(noisy, TREE, C, source))
    assert drawn.dtype == np.int64
    many = topdown_image(mechanism, C).sample(X, 50, cg.seeded(3))
    assert many.shape == (50, len(TREE))
    assert all(TREE.is_consistent(z) for z in many)
    assert (many >= 0).all()
    assert (many[:, 0] == X[0]).all()


def test_an_unmeasured_node_is_the_sum_of_its_children():
    scales = np.where(TREE.level < 2, np.inf, 1e-3)  # noise that is always 0
    mechanism = cg.Additive(cg.DiscreteLaplace(scales), TREE)
    made = topdown_image(mechanism, cg.nonnegative())
    assert np.array_equal(made.sample(X, rng=cg.seeded(1)), X)
    assert f"to 6 of {len(TREE)}" in made.explain()
    assert "4 that are not measured" in made.explain()


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: topdown_image(cg.Additive(cg.DiscreteLaplace(1.0), 3), C), ArgumentError, "tree"),
        (lambda: topdown_image(cg.Additive(cg.Laplace(1.0), TREE), C), ArgumentError, "integer"),
        (
            lambda: topdown_image(
                cg.Additive(cg.DiscreteLaplace(np.where(TREE.is_leaf, np.inf, 1.0)), TREE), C
            ),
            UnsupportedError,
            "node 'City/Arden/1' is neither measured",
        ),
        (
            lambda: topdown_image(
                cg.Additive(cg.DiscreteLaplace(1.0), TREE), cg.linear(np.ones(len(TREE)), 4)
            ),
            UnsupportedError,
            "linear",
        ),
        (
            lambda: topdown_image(cg.Additive(cg.DiscreteLaplace(1.0), TREE), C).sample(X + 1),
            ArgumentError,
            "does not add up",
        ),
    ],
)
def test_unsupported_plans_are_refused(make, error, message):
    with pytest.raises(error, match=message) as caught:
        make()
    assert str(caught.value).endswith(".")


@pytest.mark.parametrize("privacy", [None, GAUSSIAN])
def test_a_plan_is_explained_released_and_verified(tmp_path, privacy):
    sections = {} if privacy is None else {"privacy": privacy}
    plan = read_plan(make_city(tmp_path, method=METHOD, **sections))
    text = as_text(explain(plan, tmp_path))
    assert "Method: topdown. Adds discrete-" in text
    assert "bounds add nothing (computing with noisy counts costs no privacy)" in text
    done = release(plan, tmp_path / "out", base=tmp_path)
    assert done.certificate.method == ByTopDown()
    assert done.certificate.guarantee.epsilon == pytest.approx(1.0)
    checks = verify(tmp_path / "out")
    assert all(check.passed for check in checks)


def test_a_plan_draws_by_topdown_and_not_by_imaging(tmp_path):
    model = build_model(parse_plan(plan_text(method=METHOD)), TREE)
    other = build_model(parse_plan(plan_text(method='name = "imaging"')), TREE)
    assert guaranteed(model).epsilon == guaranteed(other).epsilon
    assert np.array_equal(model.mechanism.scales, other.mechanism.scales)
    own = topdown_image(model.mechanism, model.invariant).sample(X, 20, cg.seeded(5))
    assert np.array_equal(choose_method(model).sample(X, 20, cg.seeded(5)), own)
    assert not np.array_equal(choose_method(other).sample(X, 20, cg.seeded(5)), own)


@pytest.mark.parametrize("narrower", [1.0, 0.6])
def test_the_enumerated_loss_is_within_the_claim(narrower):
    """On four cells, with every noisy value in reach; noise 40% narrower is refuted."""
    tree = cg.Tree.from_parents([-1, 0, 0])
    claimed = cg.Additive(cg.DiscreteLaplace(1.0), tree)
    drawn = cg.Additive(cg.DiscreteLaplace(narrower), tree)
    invariant = cg.consistent(tree) & cg.nonnegative()
    claim = topdown_image(claimed, invariant).guarantee("add-remove")
    found = cg.audit(
        topdown_image(drawn, invariant),
        neighbours="add-remove",
        method="exact",
        total=2,
        claim=claim,
    )
    assert found.passed is (narrower == 1.0)


def test_a_plan_is_audited():
    model = build_model(parse_plan(plan_text(method=METHOD)), TREE)
    assert audit_model(model, draws=300).passed
