"""From a plan and a tree to noise, invariant and claim."""

from __future__ import annotations

import math

import numpy as np
import pytest

import congenial as cg
from congenial.accounting.amounts import amount_of, budget
from congenial.errors import EmptyNeighbourhoodError, PlanError, PrivacyError
from congenial.plan.plan import parse_plan
from congenial.releases.model import build_model, claim
from congenial.releases.specification import specify
from support.city import ZONES, plan_text
from support.claims import guaranteed

TREE = cg.Tree.from_paths([("City", borough, str(zone)) for zone, borough in ZONES.items()])


def build(**sections):
    """Return the model of a plan on the small city."""
    return build_model(parse_plan(plan_text(**sections)), TREE)


def exactly(*entries, nonnegative=True):
    """Return the section that publishes entries exactly."""
    listed = ", ".join(f'"{entry}"' for entry in entries)
    return f"publish_exactly = [{listed}]\nnonnegative = {str(nonnegative).lower()}"


PRIVACY = 'neighbours = "substitute"\nepsilon = 1.0\n'


def test_scales_and_claim_of_the_plan():
    model = build()
    assert [v.name for v in model.levels] == ["root", "borough", "zone"]
    assert [v.nodes for v in model.levels] == [1, 3, 6]
    assert [v.exact for v in model.levels] == [1, 0, 0]
    found = claim(model, 0.0)
    base = found.base_epsilon
    assert [v.scale for v in model.levels] == [
        None,
        pytest.approx(2 / (0.4 * base)),
        pytest.approx(2 / (0.6 * base)),
    ]
    # the leaves have 0.6 of the base, and bounds cost what the theorem says
    assert base + math.log(1 + math.exp(0.4 * base) * (1 - math.exp(-base))) == pytest.approx(1.0)
    assert (found.epsilon, found.gamma) == (pytest.approx(1.0), pytest.approx(1 / base - 1))
    assert found.gamma_source == "proved bound: proofs/inequalities.md"
    assert found.unprotected == ("the exact count of City",)


def test_the_numerical_error_is_inside_delta():
    model = build()
    assert claim(model, 0.0).delta == 0.0
    assert claim(model, 1e-9).delta == pytest.approx((1 + math.e) * 1e-9)
    assert guaranteed(model).delta == guaranteed(model).sampler_error == 0.0


def test_a_level_or_a_node_can_be_published_exactly():
    privacy = PRIVACY + "split = { zone = 1.0 }"
    levels = build(invariants=exactly("root", "borough"), privacy=privacy)
    assert levels.resolved.pinned.tolist() == (TREE.level < 2).tolist()
    assert "the exact counts of all 3 nodes of level borough" in guaranteed(levels).unprotected
    for entry in ("Brook/5", "City/Brook/5", "5"):
        model = build(invariants=exactly("root", entry))
        assert np.flatnonzero(model.resolved.pinned).tolist() == [0, TREE.find("5")]
        assert "the exact count of City/Brook/5" in guaranteed(model).unprotected
        assert [v.exact for v in model.levels] == [1, 0, 1]


def test_counts_that_no_neighbours_differ_in_are_named_by_level_and_path():
    privacy = PRIVACY + "split = { zone = 1.0 }"
    free = build(invariants="nonnegative = true", privacy=privacy)
    assert guaranteed(free).unprotected == ("the number of records",)
    # a record moves within a borough only, and the third has one zone
    stuck = build(invariants=exactly("Arden", "Brook"), privacy=privacy)
    assert guaranteed(stuck).unprotected == (
        "the number of records",
        "the exact count of City/Arden",
        "the exact count of City/Brook",
        "the count of City/Combe, which is the same in all neighbouring datasets",
        "the count of City/Combe/6, which is the same in all neighbouring datasets",
    )
    # one that the rule leaves out may be replaced by one that it does not
    ruled = build(
        invariants=exactly("Arden", "Brook"),
        privacy=privacy,
        data='source = "rows.csv"\nwhere = "hour < 9"\n'
        'lookup = { source = "zones.csv", key = "zone_id", on = "zone" }',
    )
    assert guaranteed(ruled).unprotected == guaranteed(stuck).unprotected[1:3]


def test_equal_shares_where_the_plan_gives_none():
    model = build(privacy=PRIVACY)
    scale = 4 / claim(model, 0.0).base_epsilon
    assert [v.scale for v in model.levels] == [None, pytest.approx(scale), pytest.approx(scale)]


def test_nodes_from_the_rows_are_listed_as_unprotected():
    hierarchy = 'root = "City"\nlevels = ["borough", "zone"]\ndomain = "data"'
    assert any(
        "which nodes exist" in text for text in guaranteed(build(hierarchy=hierarchy)).unprotected
    )
    assert not any("which nodes exist" in text for text in guaranteed(build()).unprotected)


@pytest.mark.parametrize(
    ("sections", "message"),
    [
        ({"invariants": exactly("Boro")}, "'Boro'.*neither a level nor a node"),
        ({"invariants": exactly("Arden/5")}, "'Arden/5'.*neither a level nor a node"),
        ({"privacy": PRIVACY + "split = { county = 1.0 }"}, "county"),
        ({"privacy": PRIVACY + "split = { borough = 0.4, zone = 0.5 }"}, "0.9"),
        ({"privacy": PRIVACY + "split = { root = 0.4, zone = 0.6 }"}, "published exactly"),
        (
            {"hierarchy": 'root = "City"\nlevels = ["borough", "value"]\ndomain = "lookup"'},
            "'value'.*column",
        ),
    ],
)
def test_mistakes_are_refused_in_one_sentence(sections, message):
    with pytest.raises(PlanError, match=message) as caught:
        sections = {"privacy": PRIVACY} | sections if "hierarchy" in sections else sections
        build(**sections)
    assert str(caught.value).endswith(".")
    assert "\n" not in str(caught.value)


def test_a_tree_of_another_depth_is_refused():
    with pytest.raises(PlanError, match="3 levels"):
        build_model(parse_plan(plan_text()), cg.Tree.from_parents([-1, 0, 0]))


def test_no_neighbours_left_is_refused():
    zones = [f"{borough}/{zone}" for zone, borough in ZONES.items()]
    with pytest.raises(EmptyNeighbourhoodError, match="publish fewer"):
        build(invariants=exactly(*zones), privacy=PRIVACY)


def test_under_a_row_filter_the_substituted_record_may_leave_the_count():
    """Under a noisy total a record may go from a counted zone to one that is left out."""
    privacy = PRIVACY + "split = { root = 0.8, zone = 0.2 }"
    inside = build(privacy=privacy, invariants="nonnegative = false")
    # between zones only the zone level changes, twice
    assert claim(inside, 0.0).epsilon == pytest.approx(0.2)
    data = """
        source = "rows.csv"
        where = "zone < 90"
        lookup = { source = "zones.csv", key = "zone_id", on = "zone" }
        """
    ruled = build(privacy=privacy, invariants="nonnegative = false", data=data)
    scale = {v.name: v.scale for v in ruled.levels}
    assert claim(ruled, 0.0).epsilon == pytest.approx(1 / scale["root"] + 1 / scale["zone"])
    assert claim(ruled, 0.0).epsilon == pytest.approx(1.0)
    # with the total pinned nobody can leave
    pinned = build(data=data)
    assert claim(pinned, 0.0).epsilon == pytest.approx(1.0)


def test_bounds_are_charged_for_a_record_that_leaves_the_count():
    """The base alone is not what decides: one pair may pay more for the bounds than another."""
    privacy = PRIVACY + "split = { root = 0.8, zone = 0.2 }"
    data = """
        source = "rows.csv"
        where = "zone < 90"
        lookup = { source = "zones.csv", key = "zone_id", on = "zone" }
        """
    plan = "nonnegative = true"
    inside = build(privacy=privacy, invariants=plan)
    ruled = build(privacy=privacy, invariants=plan, data=data)
    scale = {v.name: v.scale for v in ruled.levels}
    within = 1 / {v.name: v.scale for v in inside.levels}["zone"]
    leaf = 1 / scale["zone"]

    def loss(base, alpha):
        return base + math.log(1 + math.exp(base - 2 * alpha) * (1 - math.exp(-base)))

    # the root's share protects nothing where no record can leave; where one can, all is spent
    assert claim(inside, 0.0).epsilon == pytest.approx(loss(2 * within, within))
    assert claim(inside, 0.0).epsilon < 1.0
    assert claim(ruled, 0.0).epsilon == pytest.approx(loss(1 / scale["root"] + leaf, leaf))
    assert claim(ruled, 0.0).epsilon == pytest.approx(1.0)
    assert claim(ruled, 0.0).epsilon > loss(2 * leaf, leaf)


def test_imaging_pays_nothing_for_bounds():
    model = build(method='name = "imaging"')
    assert claim(model, 0.0).gamma == 0.0
    assert claim(model, 0.0).epsilon == pytest.approx(1.0)
    assert [v.scale for v in model.levels] == [None, pytest.approx(5.0), pytest.approx(10 / 3)]


@pytest.mark.parametrize("method", ["imaging", "conditioning"])
def test_pure_noise_costs_a_ledger_no_delta(method):
    for epsilon in (0.1, 0.2, 0.3, 0.4, 0.7, 0.8, 1.1, 2.3):
        privacy = f'neighbours = "substitute"\nepsilon = {epsilon}\n'
        found = claim(build(privacy=privacy, method=f'name = "{method}"'), 0.0)
        assert amount_of(found.epsilon, found.delta) == budget(str(epsilon), "0")


def model_under_a_filter(method, *, table, shares=None, goal=None, delta=None):
    """Return the model of a small plan whose rows a filter chooses."""
    tree = cg.Tree.from_paths([("all", f"zone {i}") for i in range(3)])
    names = ("root: total", "root: sex") if table else ("root", "zone")
    given = shares if goal is None else goal
    key = "split" if goal is None else "goal"
    listed = ", ".join(f'"{name}" = {one:.3f}' for name, one in zip(names, given, strict=True))
    noise = "" if delta is None else f', noise = "discrete-gaussian", delta = {delta}'
    levels = "[]" if table else '["zone"], domain = "places.csv"'
    plan = parse_plan(f"""
        data = {{ source = "rows.csv", where = "age < 90" }}
        hierarchy = {{ root = "all", levels = {levels} }}
        privacy = {{ neighbours = "substitute", epsilon = 1.0, {key} = {{ {listed} }}{noise} }}
        invariants = {{ nonnegative = true }}
        method = {{ name = "{method}" }}
        {'table = { attributes.sex = ["F", "M"], margins = ["total", "sex"] }' if table else ""}
        """)
    return build_model(plan, plan.domain(cg.Tree.from_parents([-1], ["all"]) if table else tree))


@pytest.mark.parametrize("method", ["imaging", "conditioning", "topdown"])
@pytest.mark.parametrize("delta", [None, 1e-6])
@pytest.mark.parametrize("table", [False, True])
def test_with_a_row_filter_every_split_spends_the_epsilon_of_the_plan(method, delta, table):
    """A record that enters or leaves changes the root, too, however large its share is."""
    for root in (0.0, 0.1, 0.5, 0.6, 0.9, 0.999):
        model = model_under_a_filter(method, table=table, shares=(root, 1.0 - root), delta=delta)
        assert claim(model, 0.0).epsilon == pytest.approx(1.0, rel=1e-6)
        assert claim(model, 0.0).epsilon <= 1.0


@pytest.mark.parametrize("method", ["imaging", "conditioning"])
@pytest.mark.parametrize("delta", [None, 1e-6])
def test_with_a_row_filter_a_goal_has_the_least_noise(method, delta):
    def weighted(model):
        scale = [one.scale for one in model.levels]
        return 3.0 * scale[0] + scale[1]

    found = model_under_a_filter(method, table=False, goal=(3.0, 1.0), delta=delta)
    assert claim(found, 0.0).epsilon == pytest.approx(1.0, rel=1e-6)
    for root in np.arange(0.05, 1.0, 0.05):
        other = model_under_a_filter(method, table=False, shares=(root, 1.0 - root), delta=delta)
        assert weighted(found) <= weighted(other) * (1.0 + 1e-6)


@pytest.mark.parametrize("delta", [None, 1e-6])
def test_with_a_row_filter_the_root_costs_what_one_record_changes_there(delta):
    model = model_under_a_filter("imaging", table=False, shares=(0.6, 0.4), delta=delta)
    found = specify(model, claim(model, 0.0)).noise.levels
    for units, level in zip((1.0, 2.0), found, strict=True):
        cost = units / level.scale if delta is None else units * 0.5 / level.scale**2
        assert (level.epsilon if delta is None else level.rho) == pytest.approx(cost)


def test_a_plan_in_which_no_record_can_change_alone_is_refused():
    plan = parse_plan("""
        data = { source = "rows.csv" }
        hierarchy = { root = "all", levels = ["zone"], domain = "places.csv" }
        privacy = { neighbours = "substitute", epsilon = 1.0 }
        invariants = { publish_exactly = ["root: sex", "zone: total"], nonnegative = true }
        table = { attributes.sex = ["F", "M"], margins = ["total", "sex"] }
        """)
    model = build_model(plan, plan.domain(cg.Tree.from_paths([("all", "a"), ("all", "b")])))
    with pytest.raises(PrivacyError, match="at least 2 would have to be, together"):
        claim(model, 0.0)
