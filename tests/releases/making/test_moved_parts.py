"""Releases by imaging and the posterior in parts: counts, claims, and what is refused."""

from __future__ import annotations

import re

import numpy as np
import pytest

import congenial as cg
from congenial.errors import ArgumentError, DataError, NumericalError, PlanError
from congenial.imaging.following import follows
from congenial.imaging.noisy import precision
from congenial.imaging.update import Imaged
from congenial.releases import directory as files
from congenial.releases.certificate import read_certificate
from congenial.releases.making import moved_parts
from congenial.verification.verdict import verify
from support.city import make_city
from support.part_worlds import make_world
from support.parts import keys_of, make, refused, stated_in, table_of

METHOD = 'name = "imaging"'
PUBLISH = 'publish = ["table", "measurements"]'
MEASURED = {"method": METHOD, "release": PUBLISH}


def numbers(place, column, name=files.CSV):
    return np.array([int(row[column] or 0) for row in table_of(place, name)])


def released_alike(place, seed, level):
    """Make a release at once and in parts, and compare their claims; say whether they were made."""
    problems = [refused(place, "whole", seed), refused(place, "parts", seed, parts=level)]
    if any(problems):
        known = "has a single child|/.* no path"
        assert problems[0] == problems[1] or re.search(known, problems[1])
        return False
    whole, parts = place / "whole", place / "parts"
    assert keys_of(parts) == keys_of(whole)
    # the noise differs, and with it the prior that is fitted
    stated = [stated_in(each) for each in (whole, parts)]
    assert [one.pop("prior") is None for one in stated] in ([True, True], [False, False])
    assert stated[0] == stated[1]
    return True


@pytest.mark.parametrize("seed", range(24))
def test_random_releases_have_the_claims_of_those_at_once_and_their_closest_counts(seed, tmp_path):
    level = make_world(tmp_path, np.random.default_rng([seed, 2031]), method="imaging")
    if not released_alike(tmp_path, seed, level):
        return
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    assert np.array_equal(numbers(parts, "truth"), numbers(whole, "truth"))
    for given in ({}, {"parts": level}):
        assert [check for check in verify(parts, **given) if not check.passed] == []
    model, values = cg.read_release(parts).model, numbers(parts, "value")
    if not model.plan.release.measurements:
        return
    measured = numbers(parts, "measurement", files.MEASUREMENTS_CSV)
    y = np.where(model.resolved.pinned, values, measured)
    weights = np.where(model.resolved.pinned, 0.0, precision(model.mechanism))
    closest = cg.project(y, model.invariant, weights=weights)
    at_once = Imaged(model.mechanism, model.resolved, "l2", integer=True).apply(y, cg.seeded(1))
    # which of several roundings is released is random, but not how far it is from the closest point
    costs = [np.abs(rounded - closest).sum() for rounded in (values, at_once)]
    assert abs(costs[0] - costs[1]) < 1e-4
    assert np.abs(values - y).sum() > 0


@pytest.mark.parametrize("name", ["imaging", "posterior"])
def test_two_processes_move_the_counts_that_one_moves(name, tmp_path):
    make_city(tmp_path, method=f'name = "{name}"', release=PUBLISH)
    steps = []
    given = {"simulate": 4, "parts": "borough"}
    make(tmp_path, "one", **given)
    make(tmp_path, "two", **given, on=2, notify=steps.append)
    assert "moving parts: 3 of 3" in steps
    measured = [
        numbers(tmp_path / out, "measurement", files.MEASUREMENTS_CSV) for out in ("one", "two")
    ]
    assert np.array_equal(*measured)
    stated = [stated_in(tmp_path / out) for out in ("one", "two")]
    assert stated[0] == stated[1]
    for out in ("one", "two"):
        assert [check for check in verify(tmp_path / out) if not check.passed] == []
        # both follow from the measurements; they may differ in ties
        assert verify(tmp_path / out, parts="borough") == verify(tmp_path / out)


def test_processes_that_have_nothing_to_do_are_refused(tmp_path):
    make_city(tmp_path, **MEASURED)
    with pytest.raises(ArgumentError, match="give `parts` a level of the plan, too"):
        make(tmp_path, on=2)
    with pytest.raises(ArgumentError, match="on is 0; give a number of processes from 1 to"):
        make(tmp_path, parts="borough", on=0)
    make_city(tmp_path, **MEASURED | {"method": 'name = "topdown"'})
    with pytest.raises(PlanError, match="'topdown', whose parts are drawn one after another"):
        make(tmp_path, parts="borough", on=2)
    assert not (tmp_path / "out").exists()


def test_the_noise_of_parts_has_the_law_of_the_plan(tmp_path):
    zones = {zone: f"b{zone // 2_000}" for zone in range(10_000)}
    make_city(tmp_path, zones=zones, trips=dict.fromkeys(zones, 1), **MEASURED)
    make(tmp_path, simulate=5, parts="borough")
    rows = [row for row in table_of(tmp_path / "out", files.MEASUREMENTS_CSV) if row["zone"]]
    [scale] = {float(row["scale"]) for row in rows}
    noise = np.abs([int(row["measurement"]) - 1 for row in rows])
    decay = np.exp(-1 / scale)
    # the mean of the absolute value of discrete Laplace noise, and its deviation
    mean, second = 2 * decay / (1 - decay**2), 2 * decay / (1 - decay) ** 2
    deviation = np.sqrt((second - mean**2) / noise.size)
    assert abs(noise.mean() - mean) < 5 * deviation
    assert abs(noise.mean() - 1.3 * mean) > 5 * deviation


def test_no_file_of_the_parts_stays(tmp_path):
    make_city(tmp_path, **MEASURED)
    make(tmp_path, parts="borough")
    names = {path.name for path in (tmp_path / "out").iterdir()}
    make(tmp_path, "whole")
    assert names == {path.name for path in (tmp_path / "whole").iterdir()}


def test_places_that_change_after_the_measurements_are_refused(tmp_path):
    make_city(tmp_path, **MEASURED)
    changed = (tmp_path / "zones.csv").read_text() + "7,Arden\n"

    def change(step):
        if step.startswith("moving part 3 of"):
            (tmp_path / "zones.csv").write_text(changed)

    with pytest.raises(DataError, match="the rows changed"):
        make(tmp_path, parts="borough", notify=change)
    assert not (tmp_path / "out").exists()


def fitted_in(place):
    """Return alpha and spread of each level, as the certificate states them."""
    prior = read_certificate(place / files.CERTIFICATE).prior
    return None if prior is None else np.array([(one.alpha, one.spread) for one in prior])


@pytest.mark.parametrize("seed", range(24))
def test_random_releases_by_the_posterior_have_its_claims_prior_and_table(seed, tmp_path):
    rng = np.random.default_rng([seed, 2047])
    level = make_world(tmp_path, rng, method="posterior")
    if not released_alike(tmp_path, seed, level):
        return
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    for place in (whole, parts):
        found = [verify(place, **given) for given in ({}, {"parts": level})]
        assert found[0] == found[1]
        assert all(check.passed for check in found[0])
    read = cg.read_release(parts)
    if read.measurements is not None:
        # the prior is fitted to all measurements, as it is at once
        splits = read.mechanism.fitted(read.measurements.y).splits
        found = np.stack([splits.alpha, splits.spread], axis=1)[1:]
        np.testing.assert_allclose(fitted_in(parts), found, rtol=1e-5, atol=1e-9)


def test_where_the_posterior_cannot_be_computed_the_closest_counts_are_released(
    tmp_path, monkeypatch
):
    make_city(tmp_path, method='name = "posterior"', release=PUBLISH)

    def refuse(*_):
        raise NumericalError("no error bound; use less.")

    monkeypatch.setattr(moved_parts.LawInParts, "of", refuse)
    make(tmp_path, simulate=3, parts="borough")
    out = tmp_path / "out"
    assert fitted_in(out) is None
    assert [check.name for check in verify(out, parts="borough") if not check.passed] == []
    # it can be computed, and then this is another table
    monkeypatch.undo()
    for given in ({}, {"parts": "borough"}):
        assert [check.name for check in verify(out, **given) if not check.passed] == ["prior"]
    read = cg.read_release(out)
    assert follows(read.mechanism.projection, read.measurements.y, read.values, cg.seeded(1))
