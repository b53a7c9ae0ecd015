"""Unions with an alternative that contradicts the data's exact counts, against enumeration."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

import congenial as cg
from congenial import sum_network
from congenial.conditioning.laws.cutset_sampler import CutConditioned
from congenial.errors import InfeasibleError, InvariantError, UnsupportedError
from congenial.sum_network import exact
from congenial.sum_network.windows import check_feasible_sums
from support.conditioning_cases import INF
from support.enumeration import enumerate_law, rows_of

CASES = 200
LAWS = {"laplace": cg.DiscreteLaplace, "gaussian": cg.DiscreteGaussian}
Ends = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True)
class Case:
    """A tree, its counts, and a union of alternatives that bound one node or two."""

    kind: str
    tree: cg.Tree
    x: np.ndarray
    pins: list[int]
    scales: np.ndarray
    floor: float
    ends: list[Ends]

    def holds(self, z: np.ndarray, ends: Ends) -> np.ndarray:
        lo, hi = ends
        inside = (z >= np.maximum(lo, self.floor)) & (z <= hi)
        return inside.all(axis=-1)

    def made(self):
        base = cg.consistent(self.tree) & cg.exactly(self.pins)
        if self.floor == 0.0:
            base = base & cg.nonnegative()
        first, *others = (base & cg.bounds(lo, hi) for lo, hi in self.ends)
        union = first | others[0]
        for other in others[1:]:
            union = union | other
        return cg.condition(cg.Additive(LAWS[self.kind](self.scales), self.tree), union)

    @property
    def possible(self) -> bool:
        """Whether every alternative holds for some data."""
        try:
            self.made()
        except InfeasibleError:
            return False
        return True

    def laws(self) -> list:
        """Laws of the alternatives that can hold."""
        found = []
        for lo, hi in self.ends:
            low = np.maximum(lo, self.floor)
            if ((self.x < low) | (self.x > hi))[self.pins].any():
                continue
            parents = self.tree.parents.tolist()
            with np.errstate(divide="ignore"):  # of nothing
                law = enumerate_law(
                    rows_of(parents), self.kind, self.scales, self.x, self.pins, low, hi, flat=30
                )
            if law.states.size:
                found.append(law)
        return found


def split(rng: np.random.Generator, n: int) -> list[Ends]:
    """Bounds of two or three alternatives, which one node's count distinguishes."""
    v, w, at = int(rng.integers(1, n)), int(rng.integers(1, n)), int(rng.integers(0, 8))
    steps = [(-INF, at), (at + 1, INF)]
    if rng.random() < 0.3:
        steps = [(-INF, at), (at + 1, at + 2), (at + 3, INF)]
    ends = []
    for low, high in steps:
        lo, hi = np.full(n, -INF), np.full(n, INF)
        lo[v], hi[v] = low, high
        if w != v and rng.random() < 0.3:
            hi[w] = rng.integers(0, 9)
        ends.append((lo, hi))
    return ends


def cases(kind: str) -> list[Case]:
    rng = np.random.default_rng(1907)
    found = []
    while len(found) < CASES:
        n = int(rng.integers(3, 7))
        parents = [-1] + [int(rng.integers(0, v)) for v in range(1, n)]
        tree = cg.Tree.from_parents(parents)
        x = tree.roll_up(rng.integers(0, 5, size=tree.leaves.size))
        pins = [0] + [v for v in range(1, n) if rng.random() < 0.15]
        scales = rng.choice([0.3, 1.0, 2.0], size=n)
        scales[0] = INF
        floor = 0.0 if rng.random() < 0.75 else -INF
        case = Case(kind, tree, x, pins, scales, floor, split(rng, n))
        if any(case.holds(x, ends) for ends in case.ends) and case.possible:
            found.append(case)
    return found


@pytest.mark.parametrize("kind", LAWS)
def test_an_alternative_that_cannot_hold_is_not_drawn(kind):
    impossible = 0
    for number, case in enumerate(cases(kind)):
        made, laws = case.made(), case.laws()
        impossible += len(laws) < len(case.ends)
        draws = made.sample(case.x, 20, cg.seeded(number))
        assert np.logical_or.reduce([case.holds(draws, ends) for ends in case.ends]).all()
        assert (draws[:, case.pins] == case.x[case.pins]).all()
        total = np.logaddexp.reduce([law.log_total for law in laws])
        assert made.log_normalizer(case.x) == pytest.approx(total, abs=1e-9)
        for law in laws:
            rows = np.argsort(-law.probabilities)[:5]
            want = np.log(law.probabilities[rows]) + law.log_total - total
            np.testing.assert_allclose(made.log_prob(law.states[rows], case.x), want, atol=1e-9)
    assert impossible > CASES // 4


def test_neighbours_agree_on_which_alternatives_can_hold():
    """One total and two alternatives, one of which needs a larger total."""
    tree = cg.Tree.from_parents([-1, 0, 0, 0])
    base = cg.consistent(tree) & cg.nonnegative() & cg.exactly([0])
    low = base & cg.bounds(hi=[INF, 2, INF, INF])
    high = base & cg.bounds(lo=[-INF, 3, -INF, -INF])
    made = cg.condition(cg.Additive(cg.DiscreteLaplace([INF, 20, 20, 20]), tree), low | high)
    for x in ([2, 2, 0, 0], [2, 1, 1, 0], [2, 0, 0, 2]):
        draws = made.sample(x, 1_000, cg.seeded(1))
        assert tree.is_consistent(draws)
        assert (draws.min(), draws[:, 0].max(), draws[:, 1].max()) == (0, 2, 2)


@pytest.mark.parametrize("away", [10, 1_000, 100_000])
@pytest.mark.parametrize("kind", LAWS)
@pytest.mark.parametrize("scale", [0.1, 3.0])
def test_an_alternative_far_from_the_data_does_not_slow_draws(kind, scale, away):
    tree = cg.Tree.from_parents([-1, 0, 0, 1, 1])
    x = tree.roll_up(np.array([200_000, 3, 4]))
    base = cg.consistent(tree) & cg.nonnegative() & cg.exactly([0])
    hi, lo = np.full(5, INF), np.full(5, -INF)
    hi[3], lo[3] = x[3] + away, x[3] + away + 1
    mechanism = cg.Additive(LAWS[kind](np.array([INF, *[scale] * 4])), tree)
    made = cg.condition(mechanism, (base & cg.bounds(hi=hi)) | (base & cg.bounds(lo=lo)))
    assert tree.is_consistent(made.sample(x, 50, cg.seeded(1)))
    near = made.parts[0].log_normalizer(x)
    assert made.log_normalizer(x) >= near - made.error_bound
    # by its law, and not only where it is likely to be drawn
    z = x + (away + 1) * np.array([0, 1, -1, 1, 0])
    assert np.isfinite(made.log_prob(z, x))


def test_the_bound_of_an_alternative_is_at_least_its_probability():
    for case in cases("laplace")[:60] + cases("gaussian")[:60]:
        made = case.made()
        for part, ends in zip(made.parts, case.ends, strict=True):
            pins = case.pins
            if ((case.x < np.maximum(ends[0], case.floor)) | (case.x > ends[1]))[pins].any():
                continue
            try:
                bound = part.log_ceiling(case.x)
            except InfeasibleError:
                continue
            assert bound >= part.log_normalizer(case.x) - 1e-9


def test_sums_excluded_by_bounds_are_refused_for_all_windows():
    """The sampler itself refuses, below the union, and not because of the values of its tables."""
    tree = cg.Tree.from_parents([-1, 0, 0])
    made = cg.condition(
        cg.Additive(cg.DiscreteLaplace([INF, 5.0, 5.0]), tree),
        (cg.consistent(tree) & cg.exactly(0) & cg.bounds(lo=[-INF, 1, 0]))
        | (cg.consistent(tree) & cg.exactly(0) & cg.bounds(hi=[INF, 0, INF])),
    )
    part = made.parts[0]
    weights = part._shared_weights(np.array([0, 0, 0]), part.forest.orientation)
    for check in (check_feasible_sums, sum_network.compile):
        with pytest.raises(InfeasibleError, match="cannot take its fixed value"):
            check(part.forest, weights)


@pytest.mark.parametrize(
    ("parents", "sigma", "x", "node"),
    [
        ((-1, 0, 0), (30.0, 1.9, 0.08), (18, 7, 11), 1),
        ((-1, 0, 0, 1, 2), (3.1, 713.0, 83.0, 0.2, 13.0), (17, 0, 17, 0, 17), 4),
        ((-1, 0, 0, 0), (26.0, 0.25, 0.04, 228.0), (5300, 5140, 145, 15), 3),
    ],
)
def test_an_alternative_far_off_narrow_normal_noise_is_left_out(parents, sigma, x, node):
    # its tables underflow: whether a draw fails must not tell which alternative the data are in
    tree = cg.Tree.from_parents(parents)
    invariant = cg.consistent(tree) & cg.nonnegative() & cg.exactly([0])
    limit = 25 if node == 3 else 0
    hi, lo = np.full(len(tree), np.inf), np.full(len(tree), -np.inf)
    hi[node], lo[node] = limit, limit + 1
    union = (invariant & cg.bounds(hi=hi)) | (invariant & cg.bounds(lo=lo))
    drawn = cg.condition(cg.Additive(cg.DiscreteGaussian(sigma), tree), union).sample(
        x, 100, rng=cg.seeded(3)
    )
    assert ((drawn[:, node] <= limit) == (x[node] <= limit)).all()


@pytest.mark.parametrize("kind", LAWS)
def test_an_alternative_far_off_many_narrow_counts_is_left_out(kind):
    # three thousand counts of 0, none of which may fall: too many sums for dense equations
    tree = cg.Tree.from_parents([-1, *[0] * 3003])
    scales = np.array([26.0, 0.25, 0.04, 228.0, *[0.25] * 3000])
    x = np.array([5300, 5140, 145, 15, *[0] * 3000])
    base = cg.consistent(tree) & cg.nonnegative() & cg.exactly([0])
    lo, hi = np.full(len(tree), -INF), np.full(len(tree), INF)
    hi[3], lo[3] = 25, 26
    union = (base & cg.bounds(hi=hi)) | (base & cg.bounds(lo=lo))
    drawn = cg.condition(cg.Additive(LAWS[kind](scales), tree), union).sample(x, 100, cg.seeded(3))
    assert (drawn[:, 3] <= 25).all()


def test_data_outside_all_alternatives_are_refused():
    tree = cg.Tree.from_parents([-1, 0, 0, 0])
    mechanism = cg.Additive(cg.DiscreteLaplace(5.0), tree)
    held = cg.consistent(tree) & cg.exactly([0])
    low = held & cg.bounds(hi=[INF, 2, INF, INF])
    high = held & cg.bounds(lo=[-INF, 5, -INF, -INF])
    for invariant in (low, low | high):
        drawn = cg.condition(mechanism, invariant)
        for ask in (drawn.sample, drawn.log_normalizer, lambda x, d=drawn: d.log_prob(x, x)):
            with pytest.raises(InvariantError):
                ask([7, 4, 2, 1])


def extreme(rng: np.random.Generator) -> Case:
    """Noise far narrower than a count beside wide noise and none, far from one alternative."""
    n = int(rng.integers(3, 8))
    tree = cg.Tree.from_parents([-1] + [int(rng.integers(0, v)) for v in range(1, n)])
    most = int(rng.choice([5, 30, 300, 6000]))
    leaves = tree.leaves.size
    x = tree.roll_up(rng.integers(0, most, size=leaves) * (rng.random(leaves) < 0.7))
    scales = np.where(rng.random(n) < 0.25, INF, 10.0 ** rng.uniform(-1.5, 3.0, size=n))
    pins = [0] + [v for v in range(1, n) if rng.random() < 0.1]
    v = int(rng.integers(1, n))
    at = int(rng.choice([0, x[v], x[v] // 2, rng.integers(0, most), x[0] * 9 // 10]))
    lo, hi = np.full((2, n), -INF), np.full((2, n), INF)
    hi[0, v], lo[1, v] = at, at + 1
    ends = list(zip(lo, hi, strict=True))
    floor = 0.0 if rng.random() < 0.8 else -INF
    return Case(str(rng.choice(list(LAWS))), tree, x, pins, scales, floor, ends)


def test_no_union_fails_for_an_alternative_far_from_the_data():
    rng, drawn = np.random.default_rng(2), 0
    for number in range(600):
        case = extreme(rng)
        try:
            made = case.made()
        except (InfeasibleError, UnsupportedError):  # for all data alike
            continue
        draws = made.sample(case.x, 3, cg.seeded(number))
        assert np.logical_or.reduce([case.holds(draws, ends) for ends in case.ends]).all()
        drawn += 1
    assert drawn > 500


@pytest.mark.parametrize(
    ("kind", "parents", "scales", "x", "node", "limit"),
    [
        ("laplace", (-1, 0, 0, 1), (INF, 0.0503, INF, 3.6818), (4, 0, 4, 0), 3, 2),
        ("gaussian", (-1, 0, 0, 1), (INF, 0.06, INF, 3.0), (4, 0, 4, 0), 3, 0),
    ],
)
def test_a_possible_alternative_is_weighed_beside_narrow_noise(
    kind, parents, scales, x, node, limit
):
    # its tables are filled, at e^-60 and e^-139 of what the data's own alternative has
    tree = cg.Tree.from_parents(parents)
    base = cg.consistent(tree) & cg.nonnegative() & cg.exactly([0])
    lo, hi = np.full(len(tree), -INF), np.full(len(tree), INF)
    hi[node], lo[node] = limit, limit + 1
    mechanism = cg.Additive(LAWS[kind](np.array(scales)), tree)
    made = cg.condition(mechanism, (base & cg.bounds(hi=hi)) | (base & cg.bounds(lo=lo)))
    near, far = (part.log_normalizer(x) - part.log_mode for part in made.parts)
    # the least that node 1, and node 3 below it, may have
    away = np.array([limit + 1, limit + 2])
    if kind == "laplace":
        cost = away / scales[1] + away / scales[3]
    else:
        cost = 0.5 * (away / scales[1]) ** 2 + 0.5 * (away / scales[3]) ** 2
    assert near == pytest.approx(0.0, abs=1e-6)
    assert far == pytest.approx(np.logaddexp.reduce(-cost), abs=1e-9)


@pytest.mark.parametrize("kind", LAWS)
def test_unions_over_sums_that_cross(kind):
    workload = cg.Workload.of(cg.Table({"a": ("u", "v"), "b": ("x", "y")}), [(), ("a",), ("b",)])
    rows = np.array(  # total, u, v, x, y, ux, uy, vx, vy
        [
            [1, -1, -1, 0, 0, 0, 0, 0, 0],
            [0, 1, 0, 0, 0, -1, -1, 0, 0],
            [0, 0, 1, 0, 0, 0, 0, -1, -1],
            [0, 0, 0, 1, 0, -1, 0, -1, 0],
            [0, 0, 0, 0, 1, 0, -1, 0, -1],
        ]
    )
    rng, cut = np.random.default_rng(5), 0
    for number in range(30):
        x = workload.answers(rng.integers(0, 4, size=(2, 2)))
        scales = rng.choice([0.05, 0.3, 1.0, INF], size=9, p=[0.2, 0.3, 0.3, 0.2])
        v, at = int(rng.integers(1, 9)), int(rng.integers(0, 6))
        lo, hi = np.zeros((2, 9)), np.full((2, 9), INF)
        hi[0, v], lo[1, v] = at, at + 1
        base = cg.consistent(workload) & cg.exactly(0)
        first, other = (base & cg.bounds(*ends) for ends in zip(lo, hi, strict=True))
        made = cg.condition(cg.Additive(LAWS[kind](scales), workload), first | other)
        cut += isinstance(made.parts[0], CutConditioned)
        draws = made.sample(x, 20, cg.seeded(number))
        assert workload.consistent_with(draws).all()
        assert draws.min() >= 0
        assert (draws[:, 0] == x[0]).all()
        with np.errstate(divide="ignore"):  # of nothing
            found = [
                enumerate_law(rows, kind, scales, x, [0], *ends, flat=30)
                for ends in zip(lo, hi, strict=True)
            ]
        total = np.logaddexp.reduce([law.log_total for law in found if law.states.size])
        assert made.log_normalizer(x) == pytest.approx(total, abs=1e-9)
    assert cut > 10


@pytest.mark.parametrize(
    ("kind", "parents", "scales", "x", "node", "limit"),
    [
        ("gaussian", (-1, 0, 0, 2), (95.5, 0.0759, 0.525, 0.198), (834, 834, 0, 0), 2, 0),
        ("gaussian", (-1, 0, 0, 1), (INF, 3.2, 0.0723, 222.0), (2688, 1297, 1391, 1297), 1, 1297),
        (
            "laplace",
            (-1, 0, 1, 1, 1, 3),
            (79.5, INF, 28.3, INF, 0.0396, INF),
            (20, 20, 0, 8, 12, 8),
            2,
            0,
        ),
    ],
)
def test_envelopes_of_an_alternative_far_from_the_data(kind, parents, scales, x, node, limit):
    tree = cg.Tree.from_parents(parents)
    base = cg.consistent(tree) & cg.nonnegative() & cg.exactly([0])
    lo, hi = np.full(len(tree), -INF), np.full(len(tree), INF)
    hi[node], lo[node] = limit, limit + 1
    mechanism = cg.Additive(LAWS[kind](np.array(scales)), tree)
    made = cg.condition(mechanism, (base & cg.bounds(hi=hi)) | (base & cg.bounds(lo=lo)))
    for part in made.parts:
        log = float(exact.mass(part.weighed_envelopes(x))(0)[0].ln())
        assert log == pytest.approx(part.log_normalizer(x) - part.log_mode, abs=1e-6)
