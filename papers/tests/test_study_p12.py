"""The study of sex by age: its inputs, its weights against the sampler's own, its findings."""

from __future__ import annotations

import numpy as np
import pytest

import congenial as cg
from congenial.exhibits.exhibit import Exhibit
from congenial.randomness import seeded
from papers.studies import p12, p12_counties, p12_equal, p12_methods
from papers.studies.p12_methods import (
    CELLS,
    EPSILON,
    INDEX,
    READINGS,
)

PRINTED = np.array(p12.PRINTED_TABLE)


def test_the_printed_tables_have_the_printed_totals():
    for table in (PRINTED, np.array(p12.PRINTED_RELEASE)):
        assert table.shape == (CELLS,)
        female, male = table[:23], table[23:]
        assert (female.sum(), male.sum()) == (130, 126)
        assert (female[:4].sum() + male[:4].sum(), female[4:].sum() + male[4:].sum()) == (43, 213)


def test_simulated_cells_have_the_stated_mean_and_variance():
    cells = p12_methods.simulate(2000, seeded(1)).ravel()
    error = 6.0 / np.sqrt(cells.size)
    assert abs(cells.mean() - 100 * 0.05 / 0.95) < np.sqrt(5.54) * error
    assert abs(cells.var() - 100 * 0.05 / 0.95**2) < 2 * 5.54 * error
    # the check would see a law with 30% more variance
    assert abs(1.3 * 5.54 - cells.var()) > 2 * 5.54 * error


def test_every_method_keeps_what_it_must():
    table = p12_methods.simulate(1, seeded(2))[0]
    for reading in READINGS:
        chain = p12_methods.algorithm_one(table, reading, 0.6)
        draws = chain.run(table, 50, 1, seeded(3))[0].values[0]
        exact = cg.condition(p12_methods.mechanism(2.0), reading.invariant(table))
        assert np.isfinite(exact.log_prob(draws, table)).all()


def test_the_rate_in_equilibrium_is_that_of_a_long_chain():
    # a small table of the same kind would not have the paper's index set; so a long chain here
    reading = READINGS[1]
    made = p12_methods.rates(PRINTED, reading, 20_000, seeded(4))
    at = p12_methods.TILDES.index(EPSILON)
    _, info = p12_methods.algorithm_one(PRINTED, reading, EPSILON).run(
        PRINTED, 20_000, 4, seeded(5), warmup=2_000
    )
    error = np.hypot(made.errors[at], info.acceptance.std(ddof=1) / 2.0)
    assert abs(made.rates[at] - info.acceptance.mean()) < 5.0 * error
    assert 0.3 * made.rates[at] > 5.0 * error  # a rate 30% off would be seen


def test_the_papers_index_set_leaves_one_solution():
    chain = p12_methods.algorithm_one(PRINTED, READINGS[0], 0.6)
    assert chain.placed.index.tolist() == list(INDEX)
    assert chain.placed.rest.tolist() == [0, 22, 45]


def test_equal_error_is_found_between_the_epsilons_tried():
    rows = (("TopDown", None, 6, 30.0), ("exact", 0.1, 6, 100.0), ("exact", 1.0, 6, 10.0))
    table = Exhibit("t", "T", ("release", "e", "counties", "mean"), rows)
    assert p12_counties.equal_error(table) == pytest.approx(10 ** (-0.4771), rel=1e-3)


@pytest.fixture(scope="module")
def study():
    return p12.run(7, 0.01)


def test_the_study_says_what_its_tables_hold(study):
    tables = {table.name: table for table in study.tables}
    names = {"equal", "distances", "acceptance", "chains", "traces", "table-1", "counties"}
    names |= {"california"}
    assert set(tables) == names
    means = {row[1]: row[2] for row in tables["distances"].rows if row[0] == "L1"}
    assert means["noise, ε = 1"] < means["exact, ε = 0.5"] < means["noise, ε = 0.5"]
    assert f"{means['exact, ε = 0.5']:.1f} (L1)" in study.findings[1]
    kept = {row[0]: row[2] - row[6] for row in tables["california"].rows}
    assert kept["exact conditioning"] == 0 < kept["TopDown, March 2022"]


def test_the_same_seed_gives_the_same_study(study):
    again = p12.run(7, 0.01)
    assert again.tables == study.tables and again.findings == study.findings


def test_conditioning_claims_the_final_epsilon_that_its_scale_was_chosen_for(study):
    (equal,) = (table for table in study.tables if table.name == "equal")
    assert len(equal.rows) == 2 * len(p12_equal.FINALS)
    for row in equal.rows:
        bounded = row[0] != "totals"
        assert row[2] == p12_equal.scale_of(float(row[1]), bounded=bounded)
        # bounds take wider noise for the same claim, and equalities none
        assert (row[2] > row[3]) is bounded
    assert p12_equal.cost_of_bounds(1e-6) == pytest.approx(2.0, abs=1e-5)
