"""The family of L1 images: feasible, closest, and what their privacy loss is."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.optimize import linprog

import congenial as cg
from congenial.errors import ArgumentError, EmptyNeighbourhoodError, UnsupportedError

PAIR = cg.Tree.from_parents([-1, 0, 0])
TOTAL = cg.consistent(PAIR) & cg.exactly("root")
SUM = cg.linear([[1, 1]], [10])


def least_distance(y, weights, rows, values):
    """The weighted L1 distance from y to rows @ z == values, by linear programming."""
    n = y.size
    cost = np.concatenate((np.zeros(n), weights))
    eye = np.eye(n)
    above = np.block([[eye, -eye], [-eye, -eye]])
    found = linprog(
        cost,
        A_ub=above,
        b_ub=np.concatenate((y, -y)),
        A_eq=np.hstack((rows, np.zeros_like(rows))),
        b_eq=values,
        bounds=[(None, None)] * n + [(0, None)] * n,
        method="highs",
    )
    assert found.status == 0
    return found.fun


@pytest.mark.parametrize("beta", [0.0, 0.2, 0.5, 0.75, 1.0])
@pytest.mark.parametrize("y", [(3.0, 4.0), (8.0, 9.5), (-2.0, 12.0), (0.25, -7.0)])
def test_two_bins_keep_the_papers_convex_combination(beta, y):
    z = cg.project(y, SUM, norm="l1", beta=beta)
    # s_1 + beta u_1 - (1 - beta) u_2 for any s that adds up, here (6, 4)
    assert z[0] == pytest.approx(6 + beta * (y[0] - 6) - (1 - beta) * (y[1] - 4))
    assert z.sum() == pytest.approx(10)
    assert min(y[0], 10 - y[1]) - 1e-12 <= z[0] <= max(y[0], 10 - y[1]) + 1e-12
    assert np.abs(z - y).sum() == pytest.approx(abs(10 - sum(y)))


def test_the_default_beta_is_one_half():
    rng = np.random.default_rng(1)
    for _ in range(20):
        y = rng.normal(5, 4, size=2)
        assert cg.project(y, SUM, norm="l1", beta=0.5) == pytest.approx(
            cg.project(y, SUM, norm="l1"), abs=1e-12
        )
        root = np.concatenate(([10.0], y))
        assert cg.project(root, TOTAL, norm="l1", beta=0.5) == pytest.approx(
            cg.project(root, TOTAL, norm="l1"), abs=1e-12
        )


def test_every_choice_of_shares_is_closest():
    rng = np.random.default_rng(2)
    rows = np.array([[1, 1, 1, 0, 0, 0, 0], [0, 0, 0, 1, 1, 1, 0]], dtype=float)
    values = np.array([4.0, -3.0])
    invariant = cg.linear(rows, values) & cg.exactly([3])
    for _ in range(30):
        y = rng.normal(0, 5, size=7)
        weights = np.array([1.0, 1.0, rng.choice([1.0, 2.0]), 9.0, 0.5, 0.5, 1.0])
        shares = np.zeros(7)
        first = 2 if weights[2] > 1 else 3
        shares[:first] = rng.dirichlet(np.ones(first))
        shares[4:6] = rng.dirichlet(np.ones(2))
        z = cg.project(y, invariant, weights, norm="l1", beta=shares)
        assert rows @ z == pytest.approx(values)
        assert z[3] == y[3] and z[6] == y[6]
        pin = np.eye(7)[[3]]
        wanted = least_distance(y, weights, np.vstack((rows, pin)), [*values, y[3]])
        assert weights @ np.abs(z - y) == pytest.approx(wanted, abs=1e-8)


def test_no_other_point_is_closest():
    # moves of both signs, which shares that are not negative never make, are farther
    y = np.array([1.0, 2.0, 3.0])
    rows = np.ones((1, 3))
    least = least_distance(y, np.ones(3), rows, [9.0])
    z = y + 3.0 * np.array([1.2, -0.1, -0.1])
    assert z.sum() == pytest.approx(9.0)
    assert np.abs(z - y).sum() > least + 0.1


def test_entries_of_greater_weight_do_not_move():
    y = np.array([1.0, 2.0])
    with pytest.raises(ArgumentError, match="weighs more"):
        cg.project(y, SUM, [1.0, 2.0], norm="l1", beta=0.5)
    assert cg.project(y, SUM, [1.0, 2.0], norm="l1", beta=0.0).tolist() == [8.0, 2.0]
    assert cg.project(y, SUM, [1.0, 2.0], norm="l1").tolist() == [8.0, 2.0]


def test_an_unmeasured_entry_takes_the_whole_difference():
    z = cg.project([np.nan, 2.0], SUM, [0.0, 1.0], norm="l1", beta=0.0)
    assert z.tolist() == [8.0, 2.0]


@pytest.mark.parametrize(
    ("beta", "told"),
    [
        (1.5, "between 0 and 1"),
        (-0.1, "between 0 and 1"),
        (np.nan, "between 0 and 1"),
        ([0.5, 0.4], "add up to 1"),
        ([1.0], "shape"),
        ("half", "shape"),
    ],
)
def test_wrong_weights_are_refused(beta, told):
    with pytest.raises(ArgumentError, match=told):
        cg.project([1.0, 2.0], SUM, norm="l1", beta=beta)


def test_beta_belongs_to_real_l1_images_of_sums():
    for wrong in ({"norm": "l2"}, {"norm": "l1", "integer": True}):
        with pytest.raises(ArgumentError, match="beta"):
            cg.project([1.0, 2.0], SUM, beta=0.5, **wrong)
    with pytest.raises(UnsupportedError, match="beta"):
        cg.project([1.0, 2.0], SUM & cg.nonnegative(), norm="l1", beta=0.5)
    with pytest.raises(UnsupportedError, match="beta"):
        cg.project([10.0, 1.0, 2.0], cg.consistent(PAIR), norm="l1", beta=0.5)
    with pytest.raises(ArgumentError, match="3 free entries"):
        cg.project([1.0, 2.0, 3.0], cg.linear([[1, 1, 1]], [4]), norm="l1", beta=0.5)
    with pytest.raises(ArgumentError, match="in no sum"):
        cg.project([1.0, 2.0, 3.0], cg.linear([[1, 1, 0]], [4]), norm="l1", beta=[0.5, 0.5, 0.1])
    with pytest.raises(ArgumentError, match="beta"):
        cg.image(cg.Additive(cg.Laplace(1.0), PAIR), TOTAL, beta=0.5)


def densities(beta, scale, at):
    """Density of beta u_1 - (1 - beta) u_2, by quadrature over u_2; 0 < beta < 1."""
    nodes, weights = np.polynomial.legendre.leggauss(24)
    total = np.zeros(at.size)
    for k, v in enumerate(at):
        # the integrand bends at 0 and where u_1 is 0
        bends = np.unique([-60 * scale, 0.0, -v / (1 - beta), 60 * scale])
        edges = np.concatenate([np.linspace(a, b, 40) for a, b in itertools.pairwise(bends)])
        half = 0.5 * np.diff(edges)
        u = edges[:-1, None] + half[:, None] * (nodes + 1)
        first = (v + (1 - beta) * u) / beta
        f = np.exp(-(np.abs(first) + np.abs(u)) / scale) / (4 * scale**2 * beta)
        total[k] = (half[:, None] * weights * f).sum()
    return total


@pytest.mark.parametrize("beta", [0.1, 0.3, 0.6, 0.8, 0.95])
def test_the_claim_for_real_noise_is_the_loss(beta):
    scale = 0.9
    imaged = cg.image(cg.Additive(cg.Laplace(scale), 2), SUM, norm="l1", beta=beta)
    claim = imaged.guarantee("substitute")
    assert claim.epsilon == pytest.approx(1 / (scale * max(beta, 1 - beta)))
    assert claim.ideal_only
    at = np.linspace(-12.0, 12.0, 241)
    loss = np.abs(np.log(densities(beta, scale, at + 1) / densities(beta, scale, at)))
    assert loss.max() <= claim.epsilon + 1e-9
    assert loss.max() > 0.99 * claim.epsilon


def test_the_loss_is_that_of_the_noise_unless_less_is_proved():
    noise = cg.Additive(cg.Laplace(0.9), 3)
    plain = cg.image(cg.Additive(cg.Laplace(0.9), 2), SUM, norm="l1")
    assert plain.guarantee("substitute").epsilon == pytest.approx(2 / 0.9)
    half = cg.image(cg.Additive(cg.Laplace(0.9), 2), SUM, norm="l1", beta=0.5)
    assert half.guarantee("substitute").epsilon == pytest.approx(2 / 0.9)
    three = cg.image(noise, cg.linear([[1, 1, 1]], [4]), norm="l1", beta=[0.8, 0.1, 0.1])
    assert three.guarantee("substitute").epsilon == pytest.approx(2 / 0.9)
    apart = cg.image(noise, cg.linear([[1, 1, 0]], [4]), norm="l1", beta=[0.1, 0.9, 0])
    assert apart.guarantee("substitute").epsilon == pytest.approx(2 / 0.9)
    uneven = cg.image(cg.Additive(cg.Laplace([0.5, 0.9]), 2), SUM, norm="l1", beta=1.0)
    assert uneven.guarantee("substitute").epsilon == pytest.approx(1 / 0.5 + 1 / 0.9)
    normal = cg.image(cg.Additive(cg.Gaussian(0.9), 2), SUM, norm="l1", beta=1.0)
    assert normal.guarantee("substitute").rho == pytest.approx(1 / 0.9**2)
    with pytest.raises(EmptyNeighbourhoodError):
        half.guarantee("add-remove")


def integer_loss(share, scale, reach=40):
    """Largest loss of beta u_1 - (1 - beta) u_2 with beta = share / 4 and integer noise."""
    u = np.arange(-6 * reach, 6 * reach + 1)
    mass = np.exp(-np.abs(u) / scale)
    v = (share * u[:, None] - (4 - share) * u[None, :]).ravel()
    law = np.bincount(v - v.min(), weights=np.outer(mass, mass).ravel())
    middle = -int(v.min())
    near = np.arange(middle - 4 * reach, middle + 4 * reach + 1)
    here, moved = law[near], law[near + 4]
    assert ((here > 0) == (moved > 0)).all()
    kept = here > 0
    return np.abs(np.log(here[kept] / moved[kept])).max()


@pytest.mark.parametrize("share", [0, 1, 2, 3, 4])
def test_the_claim_for_integers_covers_the_enumerated_loss(share):
    scale = 1.5
    imaged = cg.image(
        cg.Additive(cg.DiscreteLaplace(scale), PAIR), TOTAL, norm="l1", beta=share / 4
    )
    claim = imaged.guarantee("substitute").epsilon
    loss = integer_loss(share, scale)
    assert loss <= claim + 1e-9
    assert loss > 0.85 * claim
    if share in (1, 3):  # what holds for real noise does not for integers
        assert loss > 1.2 / (scale * 0.75)
    assert claim == pytest.approx((1 if share in (0, 4) else 2) / scale)


def test_draws_have_the_weight_asked_for():
    mechanism = cg.Additive(cg.DiscreteLaplace(2.0), PAIR)
    x = np.array([50, 20, 30])
    draws = {
        beta: cg.image(mechanism, TOTAL, norm="l1", beta=beta).sample(x, 3000, cg.seeded(3))
        for beta in (0.5, 1.0)
    }
    noise = mechanism.sample(x, 3000, cg.seeded(3))
    assert (draws[1.0][:, 1] == noise[:, 1]).all()
    assert (draws[0.5].sum(axis=1) == 100).all()
    a = math.exp(-0.5)
    variance = 2 * a / (1 - a) ** 2
    for beta, share in ((0.5, 0.5), (1.0, 1.0)):
        assert draws[beta][:, 1].var() == pytest.approx(share * variance, rel=0.2)
