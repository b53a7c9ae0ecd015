"""The examples for analysts: derivatives under JAX, honest fits, the normaliser; their page."""

from __future__ import annotations

import csv
import runpy
from pathlib import Path

import numpy as np
import pytest

import congenial as cg

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "analysts.md"
NUMBERS = ROOT / "docs" / "analysts"
jax = pytest.importorskip("jax")
numpyro = pytest.importorskip("numpyro")


def rows_of(path):
    return list(csv.DictReader(path.read_text(encoding="utf-8").splitlines()))


@pytest.fixture(scope="module")
def example():
    names = runpy.run_path(str(ROOT / "examples" / "inference" / "yellow_zones.py"))
    before = jax.config.jax_enable_x64
    numpyro.enable_x64()
    yield names
    numpyro.enable_x64(before)


@pytest.fixture(scope="module")
def read(example, tmp_path_factory):
    return example["publish"](tmp_path_factory.mktemp("example") / "release", 3)


def test_the_engine_has_exact_derivatives_under_jax(example, read):
    kind = example["kinds"](read.tree)
    value = example["likelihood"](read)
    z = read.values.astype(np.float64)

    def of_parameters(theta):
        mean = jax.numpy.exp(theta[0] + theta[1] * (kind == 1))
        return value(mean, jax.numpy.full(kind.size, jax.numpy.exp(theta[2])), z)

    at = np.array([0.2, 3.1, -0.7])
    found = np.asarray(jax.jit(jax.grad(of_parameters))(at))
    for j in range(3):
        h = 1e-4 * np.eye(3)[j]
        expected = (of_parameters(at + h) - of_parameters(at - h)) / 2e-4
        assert found[j] == pytest.approx(float(expected), rel=1e-5)
    # up to a constant it is the likelihood of the release
    law = cg.condition(read.model.mechanism, read.model.invariant)
    priors = [(np.where(kind == 1, ratio, 1.0), np.full(kind.size, 0.4)) for ratio in (8.0, 40.0)]
    ours = [float(value(*prior, z)) for prior in priors]
    theirs = [
        cg.inference.log_likelihood(read.values, law, cg.inference.Prior(*prior))
        for prior in priors
    ]
    assert ours[1] - ours[0] == pytest.approx(theirs[1] - theirs[0], rel=1e-7)


def test_the_interval_that_models_the_noise_contains_the_truth_and_the_naive_one_does_not(
    example, read
):
    kind = example["kinds"](read.tree)
    truth = np.array(read.rows.column("truth"))[read.tree.leaves]
    models = {
        "naive": example["naive"](kind),
        "honest": example["honest"](kind, example["likelihood"](read)),
    }
    given = example["datasets"](read.tree, truth, read.values)
    finders = {name: example["at_mode"](model) for name, model in models.items()}
    mode, _ = finders["naive"](given["counts"])
    modes = {name: finders[name](given[name]) for name in models}
    fits = {name: example["normal_fit"](*modes[name]) for name in models}
    assert np.exp(mode["yellow"]) == pytest.approx(41.7, abs=0.1)
    assert not fits["naive"].holds(mode["yellow"])
    assert fits["naive"].high < mode["yellow"]
    assert fits["honest"].holds(mode["yellow"])
    # NUTS takes the engine, and moves about the mode
    drawn = example["draws"](
        models["honest"], given["honest"], *modes["honest"], size=4, seed=2, warmup=0
    )
    assert np.unique(drawn).size > 2
    assert np.abs(drawn - fits["honest"].estimate).max() < 2.0
    # its interval is wider than that of the counts themselves
    known = example["normal_fit"](*finders["naive"](given["counts"]))
    assert fits["honest"].high - fits["honest"].low > known.high - known.low


def test_leaving_the_normaliser_out_misses_the_mean(capsys, tmp_path):
    path = ROOT / "examples" / "inference" / "normaliser.py"
    runpy.run_path(str(path))["main"](20, tmp_path)
    rows = rows_of(tmp_path / "normaliser.csv")
    # fewer than 10 of 20 have a probability of 1e-6, and a mean so far off none to speak of
    assert float(rows[0]["coverage"]) >= 0.5
    assert float(rows[1]["coverage"]) <= 0.05
    assert float(rows[0]["mean_estimate"]) == pytest.approx(1.0, abs=0.3)
    assert float(rows[1]["mean_estimate"]) > 2.0


def test_its_laws_are_those_of_releases():
    names = runpy.run_path(str(ROOT / "examples" / "inference" / "normaliser.py"))
    whole, without = names["release_laws"]()
    np.testing.assert_allclose(np.exp(whole[:20]).sum(axis=1), 1.0, atol=1e-5)
    assert np.exp(without[0]).sum() < 0.6
    law = cg.condition(
        cg.Additive(cg.DiscreteLaplace(names["SCALE"]), cg.Tree.from_parents([-1])),
        cg.nonnegative(),
    )
    for x, z in ((0, 0), (0, 7), (3, 1), (20, 26)):
        assert whole[x, z] == pytest.approx(cg.inference.log_likelihood([z], law, [x]))


def test_the_page_shows_the_numbers_of_the_commands():
    text = PAGE.read_text(encoding="utf-8")
    rows = {
        name: {row["fit"]: row for row in rows_of(NUMBERS / f"{name}.csv")}
        for name in ("intervals", "coverage")
    }
    titles = runpy.run_path(str(ROOT / "examples" / "inference" / "yellow_zones.py"))["TOLD"]
    for name, told in titles.items():
        at, held = rows["intervals"][name], rows["coverage"][name]
        coverage = f"{float(held['coverage']):.1%}"
        shown = f"| {told} | {at['estimate']} | {at['low']} to {at['high']} | {coverage} |"
        assert shown in text
    for row in rows_of(NUMBERS / "normaliser.csv"):
        coverage = f"{float(row['coverage']):.1%}"
        assert f"| {row['likelihood']} | {row['mean_estimate']} | {coverage} |" in text
