"""Moves along a lattice: its basis, that they reach everything, and the laws of chains by them."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

import congenial as cg
from congenial.conditioning.samplers.gibbs import GibbsConditioned
from congenial.kernels.chains import lattice
from congenial.kernels.numerics import laws
from congenial.sum_network.cutset.lattice import Lattice, integer_kernel
from support.crossing_tables import crossing
from support.enumeration import Law
from support.goodness_of_fit import FAILS, fit
from support.table_cases import masks

pytestmark = pytest.mark.kernels

INF = np.inf
LAWS = {"laplace": cg.DiscreteLaplace, "gaussian": cg.DiscreteGaussian}


def dense(found: Lattice, size: int) -> np.ndarray:
    """The first so many entries of all vectors, a row each."""
    out = np.zeros((found.start.size - 1, max(size, found.at.max() + 1)), dtype=np.int64)
    for j in range(out.shape[0]):
        part = slice(found.start[j], found.start[j + 1])
        out[j, found.at[part]] = found.by[part]
    return out[:, :size]


def generated(vectors, basis) -> bool:
    """Whether all vectors are sums of whole multiples of a basis."""
    times = np.rint(np.linalg.lstsq(basis.T.astype(float), vectors.T.astype(float))[0])
    return bool((times.astype(np.int64).T @ basis == vectors).all())


# the basis


@pytest.mark.parametrize("largest", [1, 3])
def test_a_basis_generates_every_integer_solution(largest):
    rng = np.random.default_rng(17)
    seen = 0
    for _ in range(60):
        n, m = int(rng.integers(2, 6)), int(rng.integers(1, 4))
        matrix = rng.integers(-largest, largest + 1, (m, n))
        rows = tuple({v: int(a) for v, a in enumerate(row) if a} for row in matrix)
        basis = integer_kernel(rows, list(range(n)))
        assert basis.shape == (n - np.linalg.matrix_rank(matrix), n)
        assert not (matrix @ basis.T).any()
        box = np.array(list(itertools.product(range(-3, 4), repeat=n)))
        solutions = box[~(box @ matrix.T).any(axis=1)]
        assert generated(solutions, basis)
        if basis.size:
            assert not generated(basis, 2 * basis)
            weight = rng.uniform(0.1, 3.0, n)
            short = basis.copy()
            lattice.shorten(short, weight)
            assert generated(basis, short) and generated(short, basis)
            assert (short**2 @ weight).sum() <= (basis**2 @ weight).sum() + 1e-9
            seen += bool((short**2 @ weight).sum() < (basis**2 @ weight).sum())
    assert seen > 5


def test_sums_too_large_for_a_basis_are_reported(monkeypatch):
    monkeypatch.setattr("congenial.sum_network.cutset.lattice._MOST_ROWS", 3)
    _, x, mechanism, invariant, _ = CASES["2x2x2x2, total"].world("laplace")
    made = cg.condition(mechanism, invariant, "gibbs")
    assert made.lattice is None
    assert made.run(x, 10, 2, cg.seeded(1))[1].irreducible is None
    assert "the sums are too large to say" in made.explain()


# moves along a line


@pytest.mark.parametrize("bounded", [False, True])
@pytest.mark.parametrize("kind", [laws.LAPLACE, laws.GAUSSIAN])
def test_moves_along_a_line_leave_its_law_as_it_is(kind, bounded):
    scale, by = np.array([2.0, 1.5, INF, 4.0]), np.array([1, -2, 1, 1])
    kinds = np.where(np.isfinite(scale), kind, laws.FLAT)
    lo = np.array([-3.0, -INF, -INF, -2.0]) if bounded else np.full(4, -INF)
    hi = np.array([INF, 6.0, 2.0, INF]) if bounded else np.full(4, INF)
    t = np.arange(-25, 26)
    points = np.array([1, 0, 0, 0]) + t[:, None] * by
    t = t[((points >= lo) & (points <= hi)).all(axis=1)]
    points = np.array([1, 0, 0, 0]) + t[:, None] * by
    grid = ((np.arange(128) + 0.5) * 2.0**57).astype(np.uint64)
    words = np.zeros((128 * 128, 3), dtype=np.uint64)  # the first adds the vector once
    words[:, 1], words[:, 2] = np.repeat(grid, 128), np.tile(grid, 128)
    words.setflags(write=False)  # as drawn ones are, for which the kernel is compiled
    step = np.zeros((t.size, t.size))
    for i, point in enumerate(points):
        state = np.tile(point, (len(words), 1))
        lattice.walk(
            *(np.array([0, 4]), np.arange(4), by, 1),
            *((kinds, scale, np.zeros(4)), (lo, hi), words),
            *(np.zeros_like(state), np.ones(len(state), dtype=bool), state),
        )
        at = np.clip(state[:, 0] - 1 - t[0], 0, t.size - 1)
        step[i] = np.bincount(at, minlength=t.size) / len(words)
    assert (step[np.ix_(np.abs(t) < 2, np.abs(t) < 2)] > 0).all()

    def law(scale):
        off = np.abs(points[:, [0, 1, 3]]) / scale[[0, 1, 3]]
        weight = np.exp(-(off if kind == laws.LAPLACE else 0.5 * off**2).sum(axis=1))
        return weight / weight.sum()

    right = law(scale)
    balance = right[:, None] * step
    np.testing.assert_allclose(balance, balance.T, atol=4e-3)
    np.testing.assert_allclose(right @ step, right, atol=4e-3)
    for off in (0.7, 1.3):
        wrong = law(off * scale)
        assert np.abs(wrong @ step - wrong).max() > 0.01


# tables by brute force


@dataclass(frozen=True)
class Table:
    """A small table whose possible values are few enough to list.

    All one-way margins and the total are counted, `exact` ones exactly; no cell is below 0 or
    above `highest`, the total is at most `records`, and two cells in `holes` are impossible.
    """

    sizes: tuple[int, ...]
    exact: tuple = ((),)
    records: int = 4
    highest: float = INF
    holes: int = 0
    unmeasured: tuple = ()
    pinned: int = 0
    scale: float = 1.0
    alone: bool = False

    def world(self, kind):
        rng = np.random.default_rng(5)
        cells = int(np.prod(self.sizes))
        impossible = np.zeros(cells, dtype=bool)
        impossible[rng.permutation(cells)[: self.holes]] = True
        workload = crossing(*self.sizes, impossible=impossible.reshape(self.sizes))
        each = masks(workload).astype(np.int64)
        counts = np.zeros(each.shape[1], dtype=np.int64)
        for place in rng.integers(0, counts.size, self.records):
            counts[place] += counts[place] < self.highest
        x = each @ counts
        scales = np.full(len(workload), self.scale)
        for margin in self.unmeasured:
            scales[workload.block(margin).entries] = INF
        invariant = cg.consistent(workload) & cg.nonnegative()
        every, hi = np.arange(len(workload)), np.full(len(workload), INF)
        hi[workload.cells] = self.highest
        pins = [int(v) for v in workload.cells[: self.pinned]]
        if self.exact:
            invariant = invariant & cg.exactly(margins=list(self.exact))
            for margin in self.exact:
                pins += every[workload.block(margin).entries].tolist()
        else:
            hi[0] = self.records
        if self.pinned:
            invariant = invariant & cg.exactly(pins[: self.pinned])
        if np.isfinite(hi).any():
            invariant = invariant & cg.bounds(np.full(len(workload), -INF), hi)
        return workload, x, cg.Additive(LAWS[kind](scales), workload), invariant, (each, hi, pins)

    def values(self, x, given):
        """All values of all entries, by listing tables record by record."""
        each, hi, pins = given
        found = []
        for total in range(self.records + 1):
            places = [*itertools.combinations_with_replacement(range(each.shape[1]), total)]
            tables = np.array(places, dtype=np.int64).reshape(len(places), total)
            counts = np.zeros((len(tables), each.shape[1]), dtype=np.int64)
            for column in tables.T:
                counts[np.arange(len(tables)), column] += 1
            z = counts @ each.T
            inside = (z <= hi).all(axis=1) & (z[:, pins] == x[pins]).all(axis=1)
            found.append(z[inside])
        return np.concatenate(found)

    def law(self, kind, x, scales, values):
        """The law of the values, and of how far they lie from `x`, as a last entry."""
        free = np.isfinite(scales)
        off = np.abs(values - x)[:, free] / scales[free]
        log_weight = -off.sum(axis=1) if kind == "laplace" else -0.5 * (off**2).sum(axis=1)
        weight = np.exp(log_weight - log_weight.max())
        return Law(self.with_distance(values, x), weight / weight.sum(), 0.0)

    @staticmethod
    def with_distance(values, x):
        return np.column_stack((values, np.abs(values - x).sum(axis=1)))


CUBE, CORNERS = (3, 3, 3), (2, 2, 2, 2)
CASES = {
    "2x2x2, nothing": Table((2, 2, 2), (), records=5),
    "2x2x2, total, at most 2 a cell": Table((2, 2, 2), records=6, highest=2),
    "2x2x2, one, three impossible": Table((2, 2, 2), ("axis1",), 6, holes=3),
    "2x2x2, all, scale 3": Table((2, 2, 2), ("axis0", "axis1", "axis2"), 9, scale=3.0),
    "2x2x2x2, nothing, at most 1 a cell": Table(CORNERS, (), 4, highest=1, alone=True),
    "2x2x2x2, total": Table(CORNERS, alone=True),
    "2x2x2x2, one, alone": Table(CORNERS, ("axis2",), alone=True, scale=2.0),
    "2x2x2x2, three, four impossible": Table(CORNERS, ("axis0", "axis1", "axis3"), 6, holes=4),
    "2x2x2x2, all, two pinned": Table(CORNERS, ("axis0", "axis1", "axis2", "axis3"), 5, pinned=2),
    "3x3x3, one": Table(CUBE, ("axis0",), 3, alone=True),
    "3x3x3, two, alone": Table(CUBE, ("axis0", "axis2"), 4, alone=True, scale=2.0),
    "3x3x3, one, a margin unmeasured": Table(
        CUBE, ("axis1",), 3, unmeasured=("axis0",), alone=True
    ),
    "3x3x3, all, 9 impossible": Table(CUBE, ("axis0", "axis1", "axis2"), 6, holes=9),
    "2x3x4, total, alone": Table((2, 3, 4), ((),), 3, alone=True),
    "2x3x4, two, six impossible": Table((2, 3, 4), ("axis1", "axis2"), 5, holes=6, alone=True),
    "2x3x4, all": Table((2, 3, 4), ("axis0", "axis1", "axis2"), 4, alone=True),
}


def chained(case, mechanism, invariant):
    made = cg.condition(mechanism, invariant, "gibbs")
    assert isinstance(made, GibbsConditioned)
    return replace(made, blocks=()) if case.alone else made


@pytest.mark.parametrize("name", CASES)
def test_chains_have_the_enumerated_law_and_fail_at_a_wrong_scale(name):
    case = CASES[name]
    kind = sorted(LAWS)[list(CASES).index(name) % 2]
    _, x, mechanism, invariant, given = case.world(kind)
    values = case.values(x, given)
    assert len(values) > 10
    made = chained(case, mechanism, invariant)
    draw, info = made.run(x, 500, 4, cg.seeded(11))
    assert info.irreducible is True and not info.certified
    drawn = case.with_distance(draw.values.reshape(-1, x.size), x)
    apart = case.with_distance(draw.values[:, ::2].reshape(-1, x.size), x)
    moving = np.flatnonzero(values.std(axis=0))
    scales = mechanism.scales
    law = case.law(kind, x, scales, values)
    for nodes in ([x.size], moving[:3], moving[-3:], [*moving[::5], x.size]):
        assert fit(apart, law, nodes) > FAILS
    for off in (0.7, 1.3):
        assert fit(drawn, case.law(kind, x, off * scales, values), [x.size]) < FAILS


def pieces(values, moves):
    """Number of parts that moves leave apart."""
    key = np.random.default_rng(1).integers(-(2**62), 2**62, values.shape[1])
    order = np.argsort(values @ key)
    sorted_keys = (values @ key)[order]
    one, two = [], []
    for move in moves:
        wanted = values @ key + move @ key
        at = np.minimum(np.searchsorted(sorted_keys, wanted), len(values) - 1)
        met = np.flatnonzero(sorted_keys[at] == wanted)
        one.append(met)
        two.append(order[at[met]])
    ends = (np.concatenate(one), np.concatenate(two))
    graph = csr_array((np.ones(ends[0].size), ends), shape=(len(values), len(values)))
    return connected_components(graph, directed=False)[0]


@pytest.mark.parametrize("name", CASES)
def test_moves_connect_all_tables(name):
    case = CASES[name]
    _, x, mechanism, invariant, given = case.world("laplace")
    values = case.values(x, given)
    found = chained(case, mechanism, invariant).lattice
    # one direction joins any two: what lies between is within the bounds
    basis = dense(found, len(x))[: found.dimension]
    assert generated(values - values[0], basis)
    # where there are few cells, short ones suffice
    assert pieces(values, dense(found, len(x))) == 1
    if name in ("2x2x2x2, total", "2x3x4, all"):
        assert pieces(values, basis) > 10  # which a basis alone does not


def test_sums_of_vectors_cross_regions_that_single_vectors_cannot():
    """Two tables of all the same two-way margins, between which every third one is below 0."""
    names = ["axis0", "axis1", "axis2"]
    plain = crossing(3, 3, 3).tables[0]
    pairs = list(itertools.combinations(names, 2))
    workload = cg.Workload.of(plain, pairs)
    mechanism = cg.Additive(cg.DiscreteLaplace(12.0), workload)
    invariant = cg.consistent(workload) & cg.nonnegative() & cg.exactly(margins=pairs)
    made = cg.condition(mechanism, invariant, "gibbs")
    cells = dense(made.lattice, made.sums.size)[:, workload.cells]
    both = (cells[:, None] + cells).reshape(-1, 27)
    far = both[(np.abs(both).max(axis=1) == 1) & (np.abs(both).sum(axis=1) == 12)][0]
    x = workload.answers(np.maximum(far, 0).reshape(3, 3, 3))
    times = np.array(list(itertools.product(range(-2, 3), repeat=8)))
    values = x + times @ dense(made.lattice, len(x))[: made.lattice.dimension]
    values = values[(values >= 0).all(axis=1)]
    assert made.lattice.dimension == 8 and len(values) == 2
    assert pieces(values, dense(made.lattice, len(x))) == 2
    draw, info = replace(made, blocks=()).run(x, 1000, 4, cg.seeded(2))
    stays = (draw.values == x).all(axis=2).mean()
    error = 5 * 0.5 / np.sqrt(info.worst[1])
    assert stays == pytest.approx(1 / (1 + np.exp(-1.0)), abs=error)
