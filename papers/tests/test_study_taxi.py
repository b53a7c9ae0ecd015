"""The study of the taxi trips: its arithmetic, its methods, its findings."""

from __future__ import annotations

import numpy as np
import pytest

from congenial import Additive, DiscreteLaplace, condition, consistent
from congenial.conditioning.chains import arviz_for
from congenial.domain.tree import Tree
from congenial.randomness import seeded
from papers.studies import taxi, taxi_methods
from papers.studies.sources import taxi as trips


def test_errors_are_summed_by_level_and_divided_by_all_queries():
    tree = Tree.from_parents([-1, 0, 0, 1, 1, 2])
    change = np.array([[1.0, -2.0, 3.0, 4.0, -5.0, 6.0]])
    np.testing.assert_allclose(taxi_methods.by_level(tree, change), [[1 / 6, 5 / 6, 15 / 6]])


def test_exact_errors_match_the_exact_law():
    tree, x = trips()
    cells = taxi_methods.errors(tree, x, 1.0, "integer", 400, seeded(3))
    found = next(c for c in cells if c.method == "exact")
    law = condition(Additive(DiscreteLaplace(1.0), tree), consistent(tree))
    for i, depth in enumerate(range(3)):
        expected = 0.0
        for node in np.flatnonzero(tree.level == depth).tolist():
            values, probabilities = law.marginal(node, x)
            expected += float(np.abs(values - x[node]) @ probabilities) / 270
        off = abs(found.mean[i] - expected) / found.standard_error[i]
        assert off < 5.0
        # noise of a scale 30% off would be seen where many queries are summed
        if depth == 2:
            assert 0.3 * expected > 5.0 * found.standard_error[i]


@pytest.fixture(scope="module")
def study():
    return taxi.run(5, 0.01)


def test_the_printed_values_stand_beside_ours(study):
    tables = {table.name: table for table in study.tables}
    summary = tables["summary-continuous"]
    assert summary.column("printed M_MH")[2] == 1.680823
    assert summary.column("printed TopDown")[-1] == 1.260267
    assert len(summary.rows) == 9


def test_a_short_chain_is_not_called_settled(study):
    tables = {table.name: table for table in study.tables}
    assert set(tables["chains"].column("converged")) == {"no"}
    assert "With 10,000 steps a chain, the chains of a run have not converged" in study.findings[3]
    assert "steps they have" not in study.findings[3]


def test_a_chain_that_has_settled_would_be_called_so():
    made = taxi_methods.Chain(1.0, 10, 0.2, 1.001, 900.0, np.zeros(3))
    assert made.settled
    assert not taxi_methods.Chain(1.0, 10, 0.2, 1.06, 900.0, np.zeros(3)).settled
    assert not taxi_methods.Chain(1.0, 10, 0.2, 1.001, 300.0, np.zeros(3)).settled


def test_the_same_seed_gives_the_same_study():
    tree, x = trips()

    def made():
        source = seeded(5)
        chain = taxi_methods.run_chain(tree, x, 1.0, 200, source)
        cells = [
            (c.method, c.mean.tolist(), c.standard_error.tolist())
            for noise in ("continuous", "integer")
            for c in taxi_methods.errors(tree, x, 1.0, noise, 20, source)
        ]
        return cells, chain.r_hat, chain.effective, chain.mean.tolist()

    assert made() == made()


def test_the_largest_r_hat_of_many_settled_entries_passes_the_limit_for_one():
    draw, chains, steps, entries = np.random.default_rng(1), 4, 1000, 270
    rho = (chains * steps / 600 - 1) / (chains * steps / 600 + 1)  # 600 effective draws
    now = draw.standard_normal((chains, entries))
    seen = []
    for _ in range(steps):
        now = rho * now + np.sqrt(1 - rho**2) * draw.standard_normal(now.shape)
        seen.append(now)
    az, _ = arviz_for("r_hat")
    largest = float(az.rhat(az.convert_to_dataset(np.stack(seen, axis=1)))["x"].max())
    assert 1.01 < largest < taxi_methods.R_HAT


def test_how_often_both_printed_ratios_are_reached():
    """Errors at levels 1 and 2 over that at level 3, whose law is the same for every scale."""
    tree, x = trips()
    law = condition(Additive(DiscreteLaplace(1.0, granularity=1 / 32), tree), consistent(tree))
    errors = taxi_methods.by_level(tree, law.sample(x, 20_000, seeded(5)) - x)
    for epsilon, least, most in ((0.5, 0.045, 0.065), (1.0, 0.0003, 0.002), (2.0, 0.24, 0.28)):
        printed = np.array(taxi.PRINTED_MH[epsilon])
        reached = errors[:, :2] / errors[:, 2:] >= printed[:2] / printed[2]
        assert least < reached.all(axis=1).mean() < most
