"""Tables of least expected error as releases: against all tables, and in plans."""

from __future__ import annotations

from itertools import product

import msgspec
import numpy as np
import pytest

import congenial as cg
from congenial.errors import UnsupportedError
from congenial.imaging.following import follows
from congenial.inference import best_table as module
from congenial.inference.best_table import best_table
from congenial.inference.laws import evidence_of
from congenial.inference.point_tables import level_weights
from congenial.plan.plan import read_plan
from congenial.preview.explanation import as_text, explain
from congenial.preview.plan_audit import audit_model
from congenial.releases import sentences
from congenial.releases.certificate import read_certificate, write_certificate
from congenial.releases.making.make_release import release
from congenial.releases.model import build_model
from congenial.releases.specification import ByBestTable
from congenial.verification.verdict import verify
from support.city import TRIPS, ZONES, make_city
from support.seeds import for_each_seed

TREE = cg.Tree.from_paths([("City", borough, str(zone)) for zone, borough in ZONES.items()])
X = TREE.roll_up(np.array(list(TRIPS.values())))
METHOD = 'name = "posterior"'
BOTH = 'publish = ["table", "measurements"]'


def made(tree, scale, *, loss="l1"):
    """A mechanism on a tree whose root is exact and whose counts are not negative."""
    invariant = cg.consistent(tree) & cg.nonnegative() & cg.exactly([0])
    mechanism = cg.Additive(cg.DiscreteLaplace(scale), tree)
    return best_table(mechanism, invariant, loss)


@for_each_seed(25)
def test_no_other_table_has_a_smaller_expected_error(seed):
    rng = np.random.default_rng(seed)
    tree = cg.Tree.from_parents([-1, 0, 0, 1, 1, 1, 1])
    engine = made(tree, 10.0 ** rng.uniform(-0.3, 0.5))
    x = tree.roll_up(rng.integers(0, 3, 5))
    y = engine.measure(x, rng=cg.seeded(seed))
    law = engine.law(y)
    table = engine.apply(y, cg.seeded(seed))
    assert table[0] == x[0]
    leaves = (z for z in product(range(int(x[0]) + 1), repeat=5) if sum(z) == x[0])
    weights = np.where(tree.level == 1, 2.0, 1.0)  # two counts, and four below them
    least = min(law.expected_error(tree.roll_up(np.array(z)), weights) for z in leaves)
    assert law.expected_error(table, weights) == pytest.approx(least, abs=1e-9)
    drawn = law.sample(4000, cg.seeded(seed))
    error = np.abs(drawn - table) @ weights
    assert abs(error.mean() - least) < 5.0 * error.std() / np.sqrt(4000.0) + 1e-9


@pytest.mark.parametrize("loss", ["l1", "l2"])
def test_a_table_follows_from_its_measurements_and_another_does_not(loss):
    engine = made(TREE, 4.0, loss=loss)
    y = engine.measure(X, rng=cg.seeded(2))
    table = engine.fitted(y).apply(y, cg.seeded(3))
    assert engine.follows(y, table, cg.seeded(9))
    leaf = TREE.leaves
    other = table[leaf].copy()
    # two zones of different boroughs
    other[int(np.argmax(other))] -= 6
    other[int(np.argmin(other))] += 6
    assert not engine.follows(y, TREE.roll_up(other), cg.seeded(9))


@pytest.mark.parametrize("published", [None, BOTH])
def test_a_plan_is_explained_released_and_verified(tmp_path, published):
    sections = {} if published is None else {"release": published}
    plan = read_plan(make_city(tmp_path, method=METHOD, **sections))
    text = as_text(explain(plan, tmp_path))
    assert "Method: posterior. Adds discrete-" in text
    assert "bounds add nothing (computing with noisy counts costs no privacy)" in text
    done = release(plan, tmp_path / "out", base=tmp_path)
    certificate = done.certificate
    assert certificate.method == ByBestTable("l1")
    assert certificate.guarantee.epsilon == pytest.approx(1.0)
    assert [level.level for level in certificate.prior] == list(plan.level_names[1:])
    assert all(check.passed for check in verify(tmp_path / "out"))
    assert certificate.accuracy.source == ("none" if published is None else "measurements")


def test_a_release_read_back_has_the_posterior_that_its_table_was_made_with(tmp_path):
    """Its prior and bounds by default: the table has the least expected error, up to the gap."""
    plan = read_plan(make_city(tmp_path, method=METHOD, release=BOTH))
    release(plan, tmp_path / "out", base=tmp_path, simulate=8)
    read = cg.read_release(tmp_path / "out")
    law, weights = read.posterior(), level_weights(read.tree, read.model.resolved.pinned)
    least = law.expected_error(law.point(rng=cg.seeded(1), weights=weights), weights)
    assert law.expected_error(read.values, weights) <= least * (1.0 + 2e-6)
    assert law.prior is not None
    # sums and all counts at once: the shares of draws that their intervals hold
    draws = law.sample(20_000, cg.seeded(2))
    free = np.flatnonzero(~read.model.determined)
    low, high = law.intervals(0.1, together=free.size)
    held = ((low <= draws) & (draws <= high)).all(axis=1).mean()
    alone = np.array(law.intervals(0.1))
    once = ((alone[0] <= draws) & (draws <= alone[1])).all(axis=1).mean()
    slack = 5.0 * np.sqrt(0.09 / 20_000)
    assert once + slack < 0.9 - slack < held
    first, last = law.interval_of_sum(read.tree.leaves[:2].tolist(), size=20_000, rng=cg.seeded(3))
    total = draws[:, read.tree.leaves[:2]].sum(axis=1)
    assert abs(((first <= total) & (total <= last)).mean() - 0.9) < 0.1
    with pytest.raises(cg.errors.ArgumentError, match="together is 0"):
        law.intervals(together=0)


def test_an_invalid_prior_is_refused(tmp_path):
    plan = read_plan(make_city(tmp_path, method=METHOD, release=BOTH))
    release(plan, tmp_path / "out", base=tmp_path)
    path = tmp_path / "out" / "certificate.json"
    stated = read_certificate(path)
    damaged = tuple(msgspec.structs.replace(level, alpha=0.0) for level in stated.prior)
    write_certificate(path, msgspec.structs.replace(stated, prior=damaged))
    failed = [check for check in verify(tmp_path / "out") if not check.passed]
    assert any("alpha" in check.text for check in failed)


def test_a_plan_is_audited(tmp_path):
    plan = read_plan(make_city(tmp_path, method=METHOD))
    assert audit_model(build_model(plan, TREE), draws=100).passed


def test_method_loss_is_accepted_with_the_posterior_only(tmp_path):
    with pytest.raises(cg.errors.PlanError, match=r"method\.loss"):
        read_plan(make_city(tmp_path, method='name = "imaging"\nloss = "l2"'))


def test_crossing_sums_are_refused():
    mechanism = cg.Additive(cg.DiscreteLaplace(1.0), 3)
    with pytest.raises(cg.errors.UnsupportedError, match="that form a tree"):
        best_table(mechanism, cg.linear([1.0, 1.0, 1.0], 4))


def test_where_the_posterior_cannot_be_worked_out_the_closest_table_is_released(
    tmp_path, monkeypatch
):
    """The noise has been paid for by then."""

    def refused(*_):
        raise cg.errors.NumericalError("no error bound; use less.")

    plan = read_plan(make_city(tmp_path, method=METHOD, release=BOTH))
    monkeypatch.setattr(module, "splits_at", refused)
    made = cg.release(plan, tmp_path / "out", base=tmp_path, simulate=3)
    assert made.certificate.prior is None
    measured = cg.read_release(tmp_path / "out").measurements
    imaged = cg.image(
        measured.mechanism, measured.invariant & cg.nonnegative(), norm="l2", integer=True
    )
    table = cg.read_release(tmp_path / "out").values
    assert follows(imaged, measured.y, table, cg.seeded(1))
    assert [check.name for check in cg.verify(tmp_path / "out") if not check.passed] == []
    # a closest table where the posterior can be computed is told
    monkeypatch.undo()
    failed = [check for check in cg.verify(tmp_path / "out") if not check.passed]
    assert [check.name for check in failed] == ["prior"]
    assert "the posterior can be computed" in failed[0].text
    drawn = dict(sentences.details(made.certificate))["How it was drawn"]
    assert "could not be computed" in drawn[0] and "imaging: " in drawn[1]
    assert sentences.not_by_posterior(made.certificate) == drawn[:1]
    # a mechanism in Python does the same
    monkeypatch.setattr(module, "splits_at", refused)
    tree = cg.Tree.from_parents([-1, 0, 0])
    known = cg.consistent(tree) & cg.exactly([0]) & cg.nonnegative()
    drawn_table = best_table(cg.Additive(cg.DiscreteLaplace(2.0), tree), known)
    assert drawn_table.sample([4, 3, 1], rng=cg.seeded(2)).sum() == 8


def test_a_release_with_noise_too_wide_for_its_posterior_fits_no_prior(tmp_path, monkeypatch):
    def fitted(*_):
        raise AssertionError("a prior is fitted to measurements that take too long")

    budget = 'neighbours = "substitute"\nepsilon = 1e-5'
    plan = read_plan(make_city(tmp_path, method=METHOD, privacy=budget))
    monkeypatch.setattr(module, "fit_splits", fitted)
    made = cg.release(plan, tmp_path / "out", base=tmp_path, simulate=1)
    assert made.certificate.prior is None


def test_noise_too_wide_for_its_posterior_gives_the_closest_table_at_once():
    tree = cg.Tree.from_parents([-1] + [0] * 500)
    known = cg.consistent(tree) & cg.exactly([0]) & cg.nonnegative()
    wide = best_table(cg.Additive(cg.DiscreteLaplace(1e6), tree), known)
    x = tree.roll_up(np.full(500, 1_000_000))
    y = wide.measure(x, rng=cg.seeded(1))
    for ask in (wide.law, wide.fitted):  # before the prior is fitted, which takes many passes
        with pytest.raises(cg.errors.UnsupportedError, match="products in each pass"):
            ask(y)
    table = wide.apply(y, cg.seeded(2))
    assert table[0] == x[0] and (table >= 0).all() and table[1:].sum() == table[0]


def test_small_counts_take_less_work_than_large_ones():
    """Washington's blocks by race and voting age are released at scale 20 in six minutes."""
    tree = cg.Tree.from_parents([-1] + [0] * 8)
    engine = made(tree, 20.0)
    large, small = (
        module.work(evidence_of(engine._problem(tree.roll_up(np.array(counts)))))
        for counts in ([1000] * 8, [0] * 7 + [5])
    )
    # the root is exact
    assert large == 8 * 801.0**2 and module.most_work(engine.mechanism) == 9 * 801.0**2
    assert small == 7.0 + 406.0**2


def test_a_posterior_that_may_take_too_long_is_told_beforehand():
    told = "the closest table is released instead"
    assert told not in made(TREE, 2.0).explain()
    assert told in made(TREE, 1e6).explain()


def test_crossing_margins_and_a_grid_are_refused_each_for_its_own_reason():
    table = cg.Table({"sex": ("F", "M"), "age": ("0", "1")})
    workload = cg.Workload.of(table, ["sex", "age"])
    noise = cg.DiscreteLaplace(1.0)
    with pytest.raises(UnsupportedError, match="each of which divides the one before") as no:
        best_table(cg.Additive(noise, workload), cg.consistent(workload))
    assert "granularity" not in str(no.value)
    grid = cg.Additive(cg.DiscreteLaplace(1.0, granularity=0.5), TREE)
    with pytest.raises(UnsupportedError, match=r"has granularity 0\.5, .* noise of granularity 1"):
        best_table(grid, cg.consistent(TREE))
    with pytest.raises(UnsupportedError, match="of a workload ask for margins each of which"):
        cg.posterior(np.ones(len(workload)), cg.Additive(noise, workload), cg.consistent(workload))
