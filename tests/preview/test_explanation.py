"""The explanation of a plan, before anything is spent."""

from __future__ import annotations

import numpy as np
import pytest

import congenial as cg
from congenial.conditioning.laws.forest_sampler import Conditioned
from congenial.errors import (
    ArgumentError,
    CongenialError,
    NumericalError,
    PlanError,
    PrivacyError,
    UnsupportedError,
)
from congenial.plan.plan import read_plan
from congenial.preview.comparison.comparing import compare
from congenial.preview.comparison.expected import NotSimulated, forecast
from congenial.preview.explanation import (
    as_text,
    expected_noise,
    explain,
)
from congenial.releases.accuracy import ByPosterior
from congenial.releases.making.make_release import release
from congenial.releases.model import build_model, choose_method
from congenial.report.write import report
from support.city import listing, make_city

EQUALITIES = 'publish_exactly = ["root"]'


def test_no_row_is_needed_and_nothing_is_written(tmp_path):
    plan = make_city(tmp_path)
    (tmp_path / "rows.csv").unlink()
    before = listing(tmp_path)
    text = as_text(explain(read_plan(plan), tmp_path))
    assert text.startswith("data.source is 'rows.csv', and there is no such file;")
    assert "Nothing was spent or written: no row was read" in text
    assert "was not opened" not in text
    assert listing(tmp_path) == before


def test_the_source_is_not_opened_and_the_explanation_says_so(tmp_path):
    plan = make_city(tmp_path)
    (tmp_path / "rows.csv").write_bytes(b"no table")
    assert "rows.csv was not opened" in as_text(explain(read_plan(plan), tmp_path))
    data = 'source = "rows.csv"'
    levels = 'root = "City"\nlevels = ["borough", "zone"]\ndomain = "data"'
    plan = make_city(tmp_path, data=data, hierarchy=levels)
    (tmp_path / "rows.csv").write_text("borough,zone\nArden,1\nBrook,4\n")
    text = as_text(explain(read_plan(plan), tmp_path))
    assert "not opened" not in text
    assert "rows were read only for the nodes' names" in text


@pytest.mark.parametrize(
    ("neighbours", "pins", "split", "unused"),
    [
        ("substitute", "", "{ root = 0.2, borough = 0.3, zone = 0.5 }", ("root",)),
        ("substitute", "", "{ borough = 0.4, zone = 0.6 }", ()),
        ("substitute", EQUALITIES, "{ borough = 0.4, zone = 0.6 }", ()),
        ("add-remove", "", "{ root = 0.2, borough = 0.3, zone = 0.5 }", ()),
    ],
)
def test_a_useless_share_is_reported(tmp_path, neighbours, pins, split, unused):
    privacy = f'neighbours = "{neighbours}"\nepsilon = 1.0\nsplit = {split}'
    plan = make_city(tmp_path, privacy=privacy, invariants=pins)
    found = explain(read_plan(plan), tmp_path)
    assert found.unused == unused
    assert found.guarantee.epsilon == pytest.approx(0.8 if unused else 1.0)
    assert ("Not used: the share 0.2 of level root" in as_text(found)) is bool(unused)
    assert ("uses 0.8 of" in as_text(found)) is bool(unused)


def test_the_shares_for_a_goal_are_shown_and_give_the_same_noise(tmp_path):
    privacy = 'neighbours = "substitute"\nepsilon = 1.0\n'
    plan = read_plan(make_city(tmp_path, privacy=privacy + "goal = { borough = 3, zone = 1 }"))
    found = explain(plan, tmp_path)
    assert list(found.found) == ["borough", "zone"]
    assert 0.5 < found.found["borough"] < 3**0.5 / (1 + 3**0.5)
    text = as_text(found)
    assert "weights borough 3, zone 1. It gives the same noise as split = { borough = 0." in text
    [line] = [line for line in text.splitlines() if "split = {" in line]
    split = line[line.index("split = {") :].removesuffix(".")
    again = explain(read_plan(make_city(tmp_path, privacy=privacy + split)), tmp_path)
    assert again.found is None
    assert "The plan's goal" not in as_text(again)
    assert [f.level.scale for f in again.forecasts] == [f.level.scale for f in found.forecasts]
    assert again.guarantee == found.guarantee


def test_a_goal_for_a_level_that_cannot_change_is_refused(tmp_path):
    privacy = 'neighbours = "substitute"\nepsilon = 1.0\ngoal = { root = 1, zone = 1 }'
    plan = read_plan(make_city(tmp_path, privacy=privacy, invariants=""))
    with pytest.raises(PlanError, match=r"privacy.goal gives 1 to 'root', .*; leave it out"):
        explain(plan, tmp_path)


def test_every_promise_is_named(tmp_path):
    found = explain(read_plan(make_city(tmp_path)), tmp_path)
    text = as_text(found)
    assert found.nodes == 10
    assert [f.level.nodes for f in found.forecasts] == [1, 3, 6]
    assert [f.level.scale for f in found.forecasts] == [
        None,
        pytest.approx(2 / (0.4 * found.guarantee.base_epsilon)),
        pytest.approx(2 / (0.6 * found.guarantee.base_epsilon)),
    ]
    assert "The noise costs 0.566566; bounds multiply that by 1 + gamma, gamma = 0.766" in text
    assert "(proved bound: proofs/inequalities.md)" in text
    assert "Exact sampler" in text
    assert "Not protected: the exact count of City" in text
    assert "1-differentially private" in text
    assert "made-up counts" in text


def test_the_row_filter_is_stated(tmp_path):
    data = """
        source = "rows.csv"
        where = "zone < 90"
        lookup = { source = "zones.csv", key = "zone_id", on = "zone" }
        """
    assert "zone < 90" in as_text(explain(read_plan(make_city(tmp_path, data=data)), tmp_path))


@pytest.mark.parametrize("scale", [0.05, 0.3, 1.0, 6.7, 250.0])
def test_expected_noise_is_that_of_the_law(scale):
    noise = np.arange(-40_000, 40_001)
    a = np.exp(-1 / scale)
    pmf = (1 - a) / (1 + a) * np.exp(-np.abs(noise) / scale)
    assert expected_noise(scale) == pytest.approx((np.abs(noise) * pmf).sum(), rel=1e-9)


def test_expected_noise_of_tiny_scales_is_zero():
    assert expected_noise(1e-4) == 0.0


def test_errors_under_equalities_are_those_of_the_exact_law(tmp_path):
    """Simulated errors against the marginal law, and not against noise 30% larger."""
    plan = read_plan(make_city(tmp_path, invariants=EQUALITIES))
    found = explain(plan, tmp_path)
    from congenial.data.counts import build_domain

    model = build_model(plan, build_domain(plan, base=tmp_path))
    zeros = np.zeros(len(model.tree), dtype=np.int64)

    def mean_error(mechanism):
        law = cg.condition(mechanism, model.invariant)
        out = []
        for node in range(len(model.tree)):
            value, probability = law.marginal(node, zeros)
            out.append((np.abs(value) * probability).sum())
        return np.array(out)

    exact = mean_error(model.mechanism)
    larger = mean_error(cg.Additive(cg.DiscreteLaplace(1.3 * model.mechanism.scales), model.tree))
    drawn = forecast(model, choose_method(model), zeros, seed=1)
    assert not isinstance(drawn, NotSimulated)
    assert drawn.levels[0].l1 == exact[0] == 0.0
    # 200 draws of 6 zones: the mean is within 15% unless something is wrong
    zone = model.tree.level == 2
    assert drawn.levels[2].l1 == pytest.approx(exact[zone].mean(), rel=0.15)
    assert drawn.levels[2].l1 != pytest.approx(larger[zone].mean(), rel=0.15)
    assert "the same for all counts" in found.basis
    assert found.sizes == () and found.default == ""
    # adding up makes every level better than its noise alone
    assert all(f.release_error < f.noise_error for f in found.forecasts[1:])


def test_each_step_is_named_as_it_begins(tmp_path):
    said = []
    cg.explain(read_plan(make_city(tmp_path)), tmp_path, notify=said.append)
    assert said == [
        "reading the domain",
        "working out the noise and the guarantee",
        "working out error margins",
        "simulating releases",
    ]


def test_two_explanations_are_the_same(tmp_path):
    plan = read_plan(make_city(tmp_path))
    assert as_text(explain(plan, tmp_path)) == as_text(explain(plan, tmp_path))


def test_explain_refuses_what_a_release_refuses(tmp_path):
    plan = make_city(tmp_path, invariants='publish_exactly = ["Nowhere"]')
    with pytest.raises(CongenialError, match="Nowhere"):
        explain(read_plan(plan), tmp_path)


@pytest.mark.parametrize(
    ("levels", "told"),
    [
        ('["zone", "borough"]', True),
        ('["borough", "zone"]', False),
        # attributes that cross are in no order
        ('["zone", "sex"]', False),
    ],
)
def test_levels_that_seem_reversed_are_reported(tmp_path, levels, told):
    listed = "borough,zone,sex\n" + "".join(
        f"{'NS'[zone % 2]},z{zone},{sex}\n" for zone in range(6) for sex in "fm"
    )
    (tmp_path / "places.csv").write_text(listed)
    hierarchy = f"""
        root = "City"
        levels = {levels}
        domain = "places.csv"
        names_repeat = true
        """
    privacy = 'neighbours = "substitute"\nepsilon = 1.0'
    data = 'source = "rows.csv"'
    plan = read_plan(make_city(tmp_path, hierarchy=hierarchy, data=data, privacy=privacy))
    assert ("Check the order: most counts of zone" in as_text(explain(plan, tmp_path))) is told


def test_facts_that_substitution_never_protects_are_stated_with_a_row_filter(tmp_path):
    (tmp_path / "places.csv").write_text("borough,zone\nN,1\nN,2\nS,3\n")
    data = 'source = "rows.csv"\nwhere = "zone IS NOT NULL"'
    for relation, told in (
        ("substitute", "Not protected: the number of all rows"),
        ("add-remove", "Not protected: nothing is published outside the guarantee."),
    ):
        plan = make_city(
            tmp_path,
            data=data,
            hierarchy='root = "City"\nlevels = ["borough", "zone"]\ndomain = "places.csv"',
            privacy=f'neighbours = "{relation}"\nepsilon = 1.0',
            invariants="nonnegative = false",
        )
        assert told in as_text(explain(read_plan(plan), tmp_path))


def test_a_sum_that_counts_a_place_twice_is_reported(tmp_path):
    accuracy = """
        sums = { once = ["Arden", "4"], twice = ["Arden", "2"], all = ["root", "5"] }
        """
    plan = make_city(tmp_path, accuracy=accuracy)
    text = as_text(explain(read_plan(plan), tmp_path))
    told = {line.split(":")[0]: line for line in text.splitlines() if line.startswith("The sum")}
    twice = "It names a place and a part of that place, so the part counts twice."
    assert [twice in told[f"The sum {name}"] for name in ("once", "twice", "all")] == [0, 1, 1]


SPARSE = {zone: f"b{zone % 2}" for zone in range(80)}


def test_errors_are_those_that_compare_finds_of_the_same_counts(tmp_path):
    plan = read_plan(make_city(tmp_path, zones=SPARSE))
    found = explain(plan, tmp_path)
    again = compare(plan, tmp_path, replicates=200)
    by_name = {result.contender.name: result for result in again.results}
    own, default = by_name["exact conditioning"], by_name["posterior"]
    assert found.default == "posterior"
    for forecast_, one, other in zip(
        found.forecasts[1:], own.levels[1:], default.levels[1:], strict=True
    ):
        assert abs(forecast_.release_error - one.l1) < 8.0 * one.l1_error
        assert abs(forecast_.default_error - other.l1) < 8.0 * other.l1_error
    listed = [(size.level, size.low, size.nodes) for size in found.sizes]
    assert listed == [(size.level, size.low, size.nodes) for size in own.sizes]
    for size, one in zip(found.sizes, own.sizes, strict=True):
        apart = np.hypot(size.standard_error, one.standard_error)
        assert abs(size.bias - one.bias) < 6.0 * apart
    assert f"{80 * 20:,} records (by default 20 a leaf)" in found.basis


def test_errors_of_empty_leaves_are_shown_with_those_of_the_default_method(tmp_path):
    found = explain(read_plan(make_city(tmp_path, zones=SPARSE)), tmp_path)
    empty = next(s for s in found.sizes if (s.level, s.high) == ("zone", 0))
    assert empty.nodes > 10
    assert empty.bias > 10 * empty.standard_error > 0
    assert empty.bias > empty.default_bias > 0
    assert found.forecasts[1].release_error > 1.5 * found.forecasts[1].default_error
    text = as_text(found)
    assert f"{empty.bias:+.3g} ± " in text
    assert "noise by 1.77, so the noise must be wider" in text
    assert "the tables above show the errors of both" in text
    plain = explain(
        read_plan(make_city(tmp_path, zones=SPARSE, method='name = "posterior"')), tmp_path
    )
    assert plain.default == "" and plain.sizes[0].default_error is None
    assert plain.forecasts[1].release_error == pytest.approx(found.forecasts[1].default_error)
    assert "by posterior" not in as_text(plain)


@pytest.mark.parametrize("bounds", ["at_most = { zone = 1000 }", "at_least = { borough = 0 }"])
def test_bounds_that_inversion_does_not_cover_are_promised_no_proved_interval(tmp_path, bounds):
    sums = 'sums = { two = ["Arden", "Brook"] }'  # a sum has no interval by a posterior
    plan = read_plan(make_city(tmp_path, invariants=bounds, accuracy=sums))
    found = explain(plan, tmp_path)
    assert found.margins.basis == ByPosterior("inversion-does-not-cover-bounds")
    text = as_text(found)
    assert "No interval here is proved, because proofs (by inversion) cover lower bounds of" in text
    assert "only exact counts have intervals" in text
    assert "The sum two: no margin is known." in text
    assert "whatever the true counts are" not in text


def test_counts_or_a_total_may_be_given(tmp_path):
    plan = read_plan(make_city(tmp_path))
    (tmp_path / "public.csv").write_text("borough,zone,count\nArden,1,5000\nBrook,4,2\n")
    found = explain(plan, tmp_path, counts=tmp_path / "public.csv")
    zones = [(s.low, s.nodes) for s in found.sizes if s.level == "zone"]
    assert zones == [(0, 4), (1, 1), (1000, 1)]
    assert "from public.csv" in found.basis
    assert "77 records" in explain(plan, tmp_path, total=77).basis
    with pytest.raises(ArgumentError, match="give one"):
        explain(plan, tmp_path, total=77, counts=tmp_path / "public.csv")


@pytest.mark.parametrize(
    ("error", "why"),
    [
        (NumericalError("no bound; use less."), "no bound; use less"),
        (UnsupportedError("3 GiB of tables; use less."), "3 GiB of tables; use less"),
        (MemoryError(), "more memory than there is"),
    ],
)
def test_where_nothing_can_be_simulated_explain_says_so_and_goes_on(
    tmp_path, monkeypatch, error, why
):
    def refused(*_, **__):
        raise error

    plan = make_city(tmp_path)
    monkeypatch.setattr(Conditioned, "sample", refused)
    found = explain(read_plan(plan), tmp_path)
    assert [f.release_error for f in found.forecasts] == [None] * 3
    text = as_text(found)
    assert f"Will not run on 120 records: {why}." in text.replace("this takes ", "")
    assert "may fail for the same reason" in text and "Guarantee: 1-diff" in text
    assert found.sizes == ()
    assert "Errors of posterior are means over" in text


def test_where_nothing_can_be_simulated_a_page_says_so(tmp_path, monkeypatch):
    release(read_plan(make_city(tmp_path)), tmp_path / "out", base=tmp_path, simulate=1)

    def refused(*_, **__):
        raise UnsupportedError("3 GiB of tables; use less.")

    monkeypatch.setattr(Conditioned, "sample", refused)
    text = report(tmp_path / "out").read_text(encoding="utf-8")
    assert "Expected errors are not known, as no release could be simulated: 3 GiB" in text
    assert "<td class=number>not known</td>" in text


def test_a_fault_of_the_plan_is_still_reported_in_a_simulation(tmp_path, monkeypatch):
    def refused(*_, **__):
        raise PrivacyError("none.")

    monkeypatch.setattr(Conditioned, "sample", refused)
    with pytest.raises(PrivacyError):
        explain(read_plan(make_city(tmp_path)), tmp_path)
