"""Methods compared by simulation: which counts are used, what is summed up, what is written."""

from __future__ import annotations

import re

import numpy as np
import pytest

import congenial as cg
from congenial.data.counts import build_domain, count
from congenial.errors import (
    ArgumentError,
    DataError,
    EmptyNeighbourhoodError,
    PrivacyError,
)
from congenial.plan.plan import read_plan
from congenial.preview.comparison import comparing, methods
from congenial.preview.comparison import pages as report
from congenial.preview.comparison.comparing import compare, simulate
from congenial.preview.comparison.methods import WAYS, build, contenders
from congenial.preview.comparison.outcome import QUANTILES, Contender
from congenial.preview.explanation import expected_noise
from congenial.releases.directory import STAMP
from congenial.releases.making.make_release import release
from support.city import ZONES, listing, make_city

SMALL = dict(zip(ZONES, (0, 0, 1, 2, 0, 40), strict=True))
EQUALITIES = 'publish_exactly = ["root"]'
NAMES = [name for name, _, _ in WAYS]


def plan_at(place, **sections):
    """Return the plan of the small city, whose rows are not there."""
    plan = read_plan(make_city(place, **sections))
    (place / "rows.csv").unlink()
    return plan


def public_counts(place, trips=SMALL):
    """Write public counts of the zones and return the file."""
    file = place / "public.csv"
    rows = "".join(f"{ZONES[zone]},{zone},{n}\n" for zone, n in trips.items())
    file.write_text("borough,zone,count\n" + rows)
    return file


def by_name(found):
    """Return results by the name of their method."""
    return {r.contender.name: r for r in found.results}


def test_no_row_is_read_by_default(tmp_path):
    plan = plan_at(tmp_path, privacy='neighbours = "substitute"\nepsilon = 1.0\nledger = "none"')
    before = listing(tmp_path)
    found = compare(plan, tmp_path, replicates=4)
    assert [r.contender.name for r in found.results] == NAMES
    assert (found.stamp, found.refused) == (None, ())
    assert "no row was read" in found.basis
    # nothing is written, and no ledger is opened or made
    assert listing(tmp_path) == before
    for rows in ("public", "confidential"):
        with pytest.raises(DataError, match="no such file"):
            compare(plan, tmp_path, rows=rows, replicates=4)


def test_node_names_from_the_rows_are_reported(tmp_path):
    hierarchy = 'root = "City"\nlevels = ["borough", "zone"]\ndomain = "data"'
    plan = read_plan(make_city(tmp_path, hierarchy=hierarchy))
    found = compare(plan, tmp_path, replicates=2)
    assert found.basis.endswith("for the names of the nodes, which the plan leaves unprotected")
    assert found.stamp is None


@pytest.mark.parametrize("method", ["total", "counts", "public", "truth"])
def test_confidential_counts_are_read_only_on_demand(tmp_path, monkeypatch, method):
    """A spy stands where rows are counted."""
    plan = read_plan(make_city(tmp_path))
    read = []
    monkeypatch.setattr(
        "congenial.preview.comparison.trial_counts.count",
        lambda *a, **k: read.append(1) or count(*a, **k),
    )
    given = {
        "total": {"total": 50},
        "counts": {"counts": public_counts(tmp_path)},
        "public": {"rows": "public"},
        "truth": {"rows": "confidential"},
    }[method]
    found = compare(plan, tmp_path, **given, replicates=2)
    assert bool(read) is (method in ("public", "truth"))
    assert found.stamp == (STAMP if method == "truth" else None)


def test_every_method_has_the_same_final_epsilon(tmp_path):
    privacy = 'neighbours = "substitute"\nepsilon = 1.5\nsplit = { borough = 0.4, zone = 0.6 }'
    found = compare(plan_at(tmp_path, privacy=privacy), tmp_path, delta=1e-6, replicates=2)
    assert len(found.results) + len(found.refused) == 2 * len(WAYS)
    assert all(r.epsilon == pytest.approx(1.5, rel=1e-9) for r in found.results)
    gaussian = [r for r in found.results if r.contender.noise == "discrete-gaussian"]
    assert {r.delta for r in gaussian} == {1e-6}
    assert all(r.delta < 1e-7 for r in found.results if r not in gaussian)
    satisfied = {r.contender.name: r.satisfied for r in found.results}
    assert satisfied == {name: name != "noise alone" for name in NAMES}
    # bounds are charged to conditioning alone, by more of this noise
    scale = {r.contender.name: r.levels[2].scale for r in found.results if r not in gaussian}
    assert scale["exact conditioning"] > scale["imaging L2"] == scale["noise alone"]


def test_without_bounds_no_method_is_biased(tmp_path):
    plan = plan_at(tmp_path, invariants=EQUALITIES)
    file = public_counts(tmp_path)
    found = compare(plan, tmp_path, counts=file, replicates=600)
    for name, result in by_name(found).items():
        for size in result.sizes:
            # several L1 images may be as close; estimates are drawn towards others
            if name not in ("imaging L1", "posterior"):
                assert abs(size.bias) < 5.0 * size.standard_error, (name, size)


@pytest.fixture(scope="module")
def empty(tmp_path_factory):
    """Return what 400 releases by each method make of the zones without a row."""
    place = tmp_path_factory.mktemp("compared")
    plan = plan_at(place)
    results = by_name(compare(plan, place, counts=public_counts(place), replicates=400))
    return {key: r.sizes[-3] for key, r in results.items()}


@pytest.mark.parametrize("name", [n for n in NAMES if n != "noise alone"])
def test_bounds_bias_empty_zones_upwards(empty, name):
    assert {(s.level, s.low, s.high, s.nodes) for s in empty.values()} == {("zone", 0, 0, 3)}
    assert empty[name].bias > 8.0 * empty[name].standard_error
    assert abs(empty["noise alone"].bias) < 5.0 * empty["noise alone"].standard_error


def test_progress_never_goes_back(tmp_path):
    said = []
    compare(plan_at(tmp_path), tmp_path, replicates=25, notify=said.append)
    shares = [int(m[1]) for m in (re.match(r"(\d+)% of all releases", s) for s in said) if m]
    assert shares == sorted(shares)
    assert (shares[0], shares[-1]) == (0, 100)
    assert len(set(shares)) > 20


def test_a_method_that_does_not_fit_is_left_out_with_a_reason(tmp_path, monkeypatch):
    """The numerical error of conditioning on a union is above what this delta leaves for it."""
    plan, refuse = plan_at(tmp_path), PrivacyError("privacy.delta is 1e-10, which is too small.")
    contender = Contender("exact conditioning", "conditioning", "discrete-gaussian")
    stated = methods.claim

    def claim(model, error):
        if model.plan.method.name == "conditioning" and model.plan.privacy.noise == contender.noise:
            raise refuse
        return stated(model, error)

    monkeypatch.setattr(methods, "claim", claim)
    found = compare(plan, tmp_path, delta=1e-10, replicates=2)
    (refused,) = found.refused
    assert refused.contender == contender
    assert "delta" in refused.reason
    text = str(found)
    assert "Left out: exact conditioning, Gaussian. privacy.delta is 1e-10" in text
    page = report.as_markdown(found, "c")
    assert "not drawn" in page


def test_the_comparison_says_so_if_no_method_fits(tmp_path):
    zones = ", ".join(f'"{borough}/{zone}"' for zone, borough in ZONES.items())
    plan = plan_at(
        tmp_path,
        invariants=f"publish_exactly = [{zones}]",
        privacy='neighbours = "substitute"\nepsilon = 1.0',
    )
    with pytest.raises(EmptyNeighbourhoodError):
        compare(plan, tmp_path, replicates=2)


def test_bad_numbers_are_refused(tmp_path):
    plan = plan_at(tmp_path)
    for given, message in (
        ({"replicates": 1}, "replicates is 1"),
        ({"total": 0}, "total is 0"),
        ({"spread": -1.0}, "spread is -1.0"),
        ({"spread": float("nan")}, "spread is nan"),
        ({"rows": "mine"}, "rows is 'mine'; give 'public' or 'confidential'"),
        ({"total": 3, "rows": "public"}, "total and rows both say"),
    ):
        with pytest.raises(ArgumentError, match=message):
            compare(plan, tmp_path, **given)


def test_an_earlier_release_may_give_the_counts(tmp_path):
    plan = read_plan(make_city(tmp_path))
    release(plan, tmp_path / "out", base=tmp_path)
    found = compare(plan, tmp_path, counts=tmp_path / "out/release.csv", replicates=2)
    assert found.basis.startswith("public counts of level zone from release.csv;")
    release(plan, tmp_path / "sham", base=tmp_path, simulate=1, with_truth=True)
    for name in ("release.csv", "release.parquet"):
        with pytest.raises(DataError, match="is stamped 'SIMULATION"):
            compare(plan, tmp_path, counts=tmp_path / "sham" / name, replicates=2)


def result_of(plan, base, contender, replicates, seed=7):
    """Return what one contender's releases are like."""
    tree = build_domain(plan, base=base)
    x = tree.roll_up(np.array(list(SMALL.values())))
    source = cg.seeded(seed)
    return simulate(plan, tree, contender, x, replicates=replicates, source=source)


def test_the_errors_of_noise_alone_are_those_of_the_law(tmp_path):
    plan = plan_at(tmp_path)
    contender = next(c for c in contenders(plan) if c.name == "noise alone")
    found = result_of(plan, tmp_path, contender, 3000)
    zone = found.levels[2]
    assert abs(zone.l1 - expected_noise(zone.scale)) < 5.0 * zone.l1_error
    assert abs(zone.l1 - expected_noise(1.3 * zone.scale)) > 5.0 * zone.l1_error
    u = np.arange(0, 400)
    law = np.exp(-u / zone.scale)
    law[1:] *= 2.0
    share = np.cumsum(law / law.sum())
    for q, value in zip(QUANTILES, zone.quantiles, strict=True):
        assert abs(value - np.searchsorted(share, q)) <= 1.0 + 0.02 * value


@pytest.mark.parametrize("name", NAMES)
def test_the_tally_equals_that_of_the_draws(tmp_path, name):
    """The same draws again, kept whole, with errors worked out one by one."""
    plan = plan_at(tmp_path)
    contender = next(c for c in contenders(plan) if c.name == name)
    found = result_of(plan, tmp_path, contender, 30)
    tree = build_domain(plan, base=tmp_path)
    x = tree.roll_up(np.array(list(SMALL.values())))
    source = cg.seeded(7)
    _, _, engine = build(plan, tree, contender)
    for _ in range(2):
        engine.sample(x, rng=source)
    calls = 1 if contender.method == "conditioning" else 10
    drawn = np.concatenate([engine.sample(x, size=30 // calls, rng=source) for _ in range(calls)])
    error = drawn - x
    for level in found.levels:
        here = np.abs(error[:, tree.level == plan.level_names.index(level.level)])
        assert level.nodes == here.shape[1]
        assert level.l1 == pytest.approx(here.mean())
        assert level.l1_error == pytest.approx(here.mean(axis=1).std(ddof=1) / np.sqrt(30))
        assert level.l2 == pytest.approx(np.sqrt((here.astype(float) ** 2).mean()))
        exact = np.quantile(here, QUANTILES, method="inverted_cdf")
        assert level.quantiles == tuple(exact.tolist())
    for size in found.sizes:
        depth = plan.level_names.index(size.level)
        nodes = np.flatnonzero((tree.level == depth) & (x >= size.low) & (x <= size.high))
        assert size.nodes == nodes.size
        assert size.l1 == pytest.approx(np.abs(error[:, nodes]).mean())
        assert size.bias == pytest.approx(error[:, nodes].mean())
    listed = [(s.level, s.low) for s in found.sizes]
    assert len(set(listed)) == len(listed)
    assert "root" not in {s.level for s in found.sizes}


def test_fewer_releases_of_large_trees_are_made_by_default(tmp_path, monkeypatch):
    plan = plan_at(tmp_path)
    monkeypatch.setattr(
        comparing, "_MOST_COUNTS", 150
    )  # of 10 counts: the root, 3 boroughs, 6 zones
    found = compare(plan, tmp_path)
    assert (found.replicates, compare(plan, tmp_path, replicates=2).replicates) == (15, 2)
    assert "--replicates 15" in found.options
    monkeypatch.setattr(comparing, "_MOST_COUNTS", 0)
    assert compare(plan, tmp_path).replicates == 10
