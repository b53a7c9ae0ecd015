"""Posteriors and releases in ArviZ's format."""

from __future__ import annotations

import numpy as np
import pytest

import congenial as cg
from congenial.inference.exports import labels
from congenial.plan.plan import read_plan
from congenial.releases.making.make_release import release
from support.city import make_city

EQUALITIES = 'publish_exactly = ["root"]\nnonnegative = false\n'


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Return a directory with a release under equalities alone."""
    found = tmp_path_factory.mktemp("releases")
    (found / "equal").mkdir()
    plan = read_plan(make_city(found / "equal", invariants=EQUALITIES))
    release(plan, found / "equal" / "out", base=found / "equal", simulate=4)
    return found


@pytest.fixture(scope="module")
def read(place):
    return cg.read_release(place / "equal" / "out")


def test_arviz_holds_values_draws_and_the_guarantee(read, tmp_path):
    arviz = pytest.importorskip("arviz")
    data = read.to_arviz(50, prior="negative-binomial", rng=cg.seeded(3))
    path = tmp_path / "release.nc"
    data.to_netcdf(str(path))
    again = arviz.from_netcdf(str(path))
    expected = read.posterior("negative-binomial").sample(50, cg.seeded(3))
    for found in (data, again):
        draws = found["posterior"]["count"]
        assert draws.dims == ("chain", "draw", "node")
        np.testing.assert_array_equal(draws.values[0], expected)
        released = found["observed_data"]["released"]
        assert [int(released.sel(node=name)) for name in labels(read.tree)] == read.values.tolist()
        assert released["level"].values.tolist() == [read.levels[v] for v in read.tree.level]
        told = found["posterior"].attrs
        assert told["guarantee"] == read.certificate.sentence
        assert told["epsilon"] == read.certificate.guarantee.epsilon
        assert told["noise"] == "discrete-laplace"
        assert told["inference_library"] == "congenial"
        exact = found["constant_data"]["published_exactly"].values.astype(bool)
        assert exact.tolist() == (read.tree.level == 0).tolist()
        assert (found["constant_data"]["scale"].values[exact] == 0.0).all()
    # Independent draws: ArviZ's own effective number is near theirs, where it can vary
    whole = read.to_arviz(2000, rng=cg.seeded(5))["posterior"]["count"].values
    size = arviz.ess(whole[:, :, -1])
    assert 1200 < float(np.asarray(size)) < 3000


def test_arviz_accepts_measurements_from_elsewhere():
    pytest.importorskip("arviz")
    tree = cg.Tree.from_paths(["City/North/a", "City/North/b", "City/South/a", "City/South/d"])
    noisy = cg.Additive(cg.DiscreteLaplace([2.0, 2.0, 1.0, 1.0, np.inf, 1.0, 1.0]), tree)
    y = [12, 8.0, 5, 3, np.nan, 2, 2]
    law = cg.posterior(y, noisy, cg.consistent(tree) & cg.nonnegative())
    data = law.to_arviz(40, rng=cg.seeded(1), level_names=("city", "part", "block"))
    draws = data["posterior"]["count"]
    np.testing.assert_array_equal(draws.values[0], law.sample(40, cg.seeded(1)))
    assert draws["node"].values.tolist() == [
        *("City", "North", "City/North/a", "b", "South", "City/South/a", "d")
    ]
    assert draws["level"].values.tolist() == ["city", *("part", "block", "block") * 2]
    measured = data["observed_data"]["measurement"].values
    np.testing.assert_array_equal(measured, y)
    for v, name in enumerate(draws["node"].values.tolist()):
        assert tree.find(name) == v


def test_arviz_knows_the_cells_of_a_table():
    pytest.importorskip("arviz")
    tree = cg.Tree.from_paths(["City/North", "City/South"])
    table = cg.Table({"sex": ("F", "M")}, geography=tree, name="people")
    workload = cg.Workload.of(table, {0: [()], 1: [(), "sex"]})
    law = cg.posterior(
        [9, 5, 4, 2, 3, 1, 3],
        cg.Additive(cg.DiscreteLaplace(1.0), workload),
        cg.consistent(workload) & cg.nonnegative(),
    )
    nodes = law.to_arviz(2, rng=cg.seeded(1))["posterior"]["node"].values
    assert nodes[[0, 1, 6]].tolist() == [
        *("total in people at City", "total in people at City/North"),
        "sex=M in people at City/South",
    ]


def test_arviz_holds_published_measurements(tmp_path):
    pytest.importorskip("arviz")
    sections = {"release": 'publish = ["table", "measurements"]', "method": 'name = "imaging"'}
    release(read_plan(make_city(tmp_path, **sections)), tmp_path / "out", base=tmp_path, simulate=6)
    found = cg.read_release(tmp_path / "out")
    data = found.to_arviz(20, rng=cg.seeded(2))
    expected = found.posterior().sample(20, cg.seeded(2))
    np.testing.assert_array_equal(data["posterior"]["count"].values[0], expected)
    measured = data["observed_data"]["measurement"].values
    np.testing.assert_array_equal(measured, found.measurements.y)
    assert (measured != found.values).any()
