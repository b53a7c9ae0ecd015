"""Index sets: which entries are proposed, how the others follow, and which choice accepts most."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import congenial as cg
from congenial.conditioning.proposal import place
from congenial.errors import ArgumentError, UnsupportedError
from congenial.invariants.written import resolve_invariant
from support.enumeration import enumerate_law


@st.composite
def systems(draw, entries=(-1, 0, 1)):
    n = draw(st.integers(2, 7))
    m = draw(st.integers(1, n - 1))
    rows = [[draw(st.sampled_from(entries)) for _ in range(n)] for _ in range(m)]
    scales = [draw(st.sampled_from((0.3, 0.5, 1.0, 2.0))) for _ in range(n)]
    return np.array(rows), np.array(scales)


def placed_for(rows, scales, noise=cg.DiscreteLaplace, **proposal):
    n = rows.shape[1]
    mechanism = cg.Additive(noise(scales), n)
    resolved = resolve_invariant(cg.linear(rows, np.zeros(len(rows))), n)
    return place(mechanism, resolved, cg.conditioning.Proposal(**proposal) if proposal else None)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(systems(entries=(-2, -1, 0, 1, 3)))
def test_entries_that_follow_from_an_automatic_index_set_solve_the_equalities(system):
    rows, scales = system
    try:
        placed = placed_for(rows, scales)
    except UnsupportedError as refused:
        assert "no index set" in str(refused)  # noqa: PT017
        return
    solve = placed.solve
    assert (solve == np.rint(solve)).all()
    assert sorted([*placed.index, *placed.rest]) == list(range(rows.shape[1]))
    assert placed.rest.size == np.linalg.matrix_rank(rows)
    moved = rows[:, placed.index] + rows[:, placed.rest] @ solve
    assert (moved == 0).all()


@settings(max_examples=100, deadline=None, derandomize=True)
@given(systems())
def test_sums_and_differences_of_rank_one_or_two_are_placed(system):
    rows, scales = system
    rows = rows[:1]
    placed = placed_for(rows, scales)
    if rows.any():  # the widest entry of a single sum follows
        assert scales[placed.rest[0]] == scales[rows[0] != 0].max()


MARGINS = np.array([[1, 1, 1, 0, 0, 0], [0, 0, 0, 1, 1, 1], [1, 0, 0, 1, 0, 0]])


def test_the_automatic_index_set_has_the_largest_acceptance():
    scales = np.array([0.4, 1.1, 0.6, 0.5, 0.9, 1.3])
    mechanism = cg.Additive(cg.DiscreteLaplace(scales), 6)
    x = np.array([1, 2, 0, 1, 1, 3])
    invariant = cg.linear(MARGINS, MARGINS @ x)
    chances = {}
    for index in itertools.combinations(range(6), 3):
        try:
            made = cg.condition(
                mechanism, invariant, "rejection", proposal=cg.conditioning.Proposal(index=index)
            )
        except ArgumentError:
            continue
        chances[index] = made.acceptance(x)
    chosen = cg.condition(mechanism, invariant, "rejection")
    assert len(chances) > 8
    assert chosen.acceptance(x) == pytest.approx(max(chances.values()))
    assert max(chances.values()) > 3 * min(chances.values())
    # with one scale for all entries, it does not matter
    alike = cg.Additive(cg.DiscreteLaplace(0.8), 6)
    same = [
        cg.condition(
            alike, invariant, "rejection", proposal=cg.conditioning.Proposal(index=i)
        ).acceptance(x)
        for i in chances
    ]
    assert np.ptp(same) < 1e-9


def test_redundant_rows_are_accepted():
    placed = placed_for(np.array([[1, 1, 0], [0, 0, 1], [2, 2, 2]]), np.ones(3))
    assert placed.index.size == 1 and placed.rest.size == 2
    fixed = placed.solve[placed.rest.tolist().index(2)]
    assert (fixed == 0).all()  # the third entry cannot move


def test_the_solution_may_need_fractions():
    rows = np.array([[2.0, 3.0]])
    with pytest.raises(UnsupportedError, match="no index set"):
        placed_for(rows, np.ones(2))
    with pytest.raises(ArgumentError, match="do not follow as integers"):
        placed_for(rows, np.ones(2), index=[0])
    assert placed_for(rows, np.ones(2), cg.Laplace, index=[0]).solve[0, 0] == -2 / 3
    whole = placed_for(np.array([[2.0, 4.0]]), np.ones(2))  # the same as 1, 2
    assert whole.index.tolist() == [1] and whole.solve.tolist() == [[-2.0]]
    with pytest.raises(UnsupportedError, match="not an integer"):
        placed_for(np.array([[0.5, 1.0]]), np.ones(2))


ROWS = np.array([[1, 1, 0, 0], [0, 1, 1, 0]])


@pytest.mark.parametrize(
    ("proposal", "told"),
    [
        ({"index": [0, 4]}, "has 4; give entries from 0 to 3"),
        ({"index": [-1, 2]}, "has -1"),
        ({"index": [0]}, "has 1 entries from which"),
        ({"index": [0, 1]}, "has 2 entries from which"),
        ({"index": [0, 1, 3]}, "give 2 whose complement"),
        ({"scale": [1.0, 2.0]}, "has 2 scales; give one, or 4"),
    ],
)
def test_a_proposal_that_does_not_fit_is_refused(proposal, told):
    with pytest.raises(ArgumentError, match=told) as caught:
        placed_for(ROWS, np.ones(4), **proposal)
    assert str(caught.value).endswith(".")


@pytest.mark.parametrize(
    ("proposal", "told"),
    [
        ({"index": [0, 0]}, "twice"),
        ({"index": "ab"}, "entries that are proposed"),
        ({"index": 1.5}, "entries that are proposed"),
        ({"index": [True]}, "entries that are proposed"),
        ({"scale": -1.0}, "proposal's scale is -1"),
        ({"scale": np.inf}, "proposal's scale is inf"),
        ({"scale": "wide"}, "proposal's scale is 'wide'"),
    ],
)
def test_an_invalid_proposal_is_refused(proposal, told):
    with pytest.raises(ArgumentError, match=told):
        cg.conditioning.Proposal(**proposal)


def test_too_large_or_impossible_proposals_are_refused(monkeypatch):
    long = cg.Additive(cg.DiscreteLaplace(1.0), 20_001)
    with pytest.raises(UnsupportedError, match="there are 20001"):
        cg.condition(long, cg.bounds(0, 9), "rejection")
    flat = cg.Additive(cg.Laplace(1.0), 3)
    total = cg.linear([[1, 1, 1]], 6)
    with pytest.raises(UnsupportedError, match="with probability 0"):
        cg.condition(flat, total, "rejection", proposal=cg.conditioning.Proposal(index=range(3)))
    wide = cg.condition(cg.Additive(cg.DiscreteLaplace(2.0**45), 3), total, "rejection")
    many = cg.linear(np.ones((1, 3)) * [1, 2**10, 2**10], 6)
    wider = cg.condition(cg.Additive(cg.DiscreteLaplace(2.0**45), 3), many, "rejection")
    assert wide.sample([1, 2, 3], rng=cg.seeded(1)).sum() == 6
    with pytest.raises(UnsupportedError, match="too wide for exact sums"):
        wider.sample([6, 0, 0], 50, cg.seeded(1))
    monkeypatch.setattr("congenial.conditioning.proposal._MOST_SOLVED", 1)
    with pytest.raises(UnsupportedError, match="a matrix of"):
        cg.condition(flat, total, "rejection")


def test_pins_are_not_proposed_and_noise_must_exist():
    tree = cg.Tree.from_parents([-1, 0, 0, 0])
    resolved = cg.consistent(tree) & cg.exactly([0])
    mechanism = cg.Additive(cg.DiscreteLaplace(1.0), tree)
    with pytest.raises(ArgumentError, match="published exactly"):
        cg.condition(
            mechanism, resolved, "rejection", proposal=cg.conditioning.Proposal(index=[0, 1])
        )
    part = cg.Additive(cg.DiscreteLaplace([1.0, np.inf, np.inf, 1.0]), tree)
    with pytest.raises(UnsupportedError, match="node '0/2' is not measured"):
        cg.condition(part, resolved, "rejection")
    wide = cg.condition(
        part,
        resolved & cg.bounds(0, 9),
        "independence",
        proposal=cg.conditioning.Proposal(scale=3.0),
    )
    x = tree.roll_up([3, 4, 2])
    draws = wide.run(x, 4000, 4, cg.seeded(2), thin=10)[0].values[:, :, 1].ravel()
    law = enumerate_law([[0, 1, 1, 1]], "laplace", [1, np.inf, np.inf, 1.0], x, lo=0, hi=9, flat=9)
    for value, chance in law.marginal(1).items():
        assert abs((draws == value).mean() - chance) < 0.02


def test_proposals_are_for_their_samplers():
    mechanism = cg.Additive(cg.DiscreteLaplace(1.0), 2)
    total = cg.linear([[1, 1]], 3)
    for sampler in ("auto", "exact", "gibbs"):
        with pytest.raises(ArgumentError, match=f"sampler '{sampler}' takes no proposal"):
            cg.condition(mechanism, total, sampler, proposal=cg.conditioning.Proposal())
    with pytest.raises(ArgumentError, match="the proposal is a list"):
        cg.condition(mechanism, total, "rejection", proposal=[0])
    with pytest.raises(UnsupportedError, match="neither mixtures nor unions"):
        cg.condition(mechanism, total | cg.linear([[1, 1]], 4), "rejection")
    with pytest.raises(ArgumentError, match="sampler is 'perfection'"):
        cg.condition(mechanism, total, "perfection")


def test_the_table_of_the_paper():
    """2 x 23 cells; total, female and voting-age totals; cells >= 0 (Gong and Meng, Section 3)."""
    counts = [int(v) for v in FEMALE.split()] + [int(v) for v in MALE.split()]
    x = np.array(counts)
    adult = np.tile(np.arange(23) >= 4, 2)
    rows = np.array([np.ones(46), np.arange(46) < 23, adult])
    invariant = cg.linear(rows, rows @ x) & cg.nonnegative()
    mechanism = cg.Additive(cg.DiscreteLaplace(2.0), 46)
    index = [i - 1 for i in (*range(2, 23), *range(24, 46))]
    made = cg.condition(
        mechanism,
        invariant,
        "independence",
        proposal=cg.conditioning.Proposal(index=index, scale=1 / 0.6),
    )
    assert made.placed.rest.tolist() == [0, 22, 45]
    draw, info = made.run(x, 5000, 4, cg.seeded(1))
    assert (draw.values @ rows.T == rows @ x).all()
    assert draw.values.min() >= 0
    assert 0.002 < info.acceptance.mean() < 0.05
    assert made.exact is not None  # whose law it is
    means = [values @ p for values, p in (made.marginal(v, x) for v in range(46))]
    error = draw.values.mean(axis=(0, 1)) - means
    spread = draw.values.std(axis=(0, 1)) / np.sqrt(info.bulk_ess)
    assert np.abs(error / spread).max() < 8.0


FEMALE = "8 6 3 6 4 4 4 8 5 7 7 6 1 5 4 4 9 6 2 8 8 8 7"
MALE = "3 4 5 8 6 4 5 5 5 6 10 7 3 2 5 11 6 4 7 4 5 3 8"
