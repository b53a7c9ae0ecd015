"""Public lower and upper bounds in plans: kept by every method, stated, verified and audited."""

from __future__ import annotations

import numpy as np
import pytest

import congenial as cg
from congenial.auditing.pairs import chosen_pairs
from congenial.auditing.space import Space
from congenial.errors import InfeasibleError, PlanError
from congenial.plan.plan import bounds_by_node, parse_plan
from congenial.preview.plan_audit import audit_plan
from congenial.randomness import seeded
from congenial.releases.model import build_model, choose_method
from congenial.releases.sentences import mandate
from support.cross_tables import TOWN, plan_of, random_rows, text_of, write_rows

EXACT = 'publish_exactly = ["root: total"]\nnonnegative = true\n'
NESTED = '{ root = ["total"], area = ["total", "sex"], block = ["sex"] }'
CROSSING = '["total", "sex", "voting", "sex by age"]'
# Rows of seed 3 have 368 people, 117 in North with 49 women, and 50 to 91 in a block.
LIMITS = EXACT + (
    'at_least = { "area: total" = 130 }\n'
    'at_most = { "block: total" = 90, "Town/North: sex=F" = 40 }'
)
WITH_MEASUREMENTS = '\n[release]\npublish = ["table", "measurements"]'


@pytest.fixture
def place(tmp_path):
    write_rows(tmp_path, random_rows(3))
    return tmp_path


@pytest.mark.parametrize(
    ("margins", "method"),
    [
        (NESTED, "posterior"),
        (NESTED, "topdown"),
        (NESTED, "imaging"),
        (CROSSING, "topdown"),
        (CROSSING, "imaging"),
    ],
)
def test_images_keep_bounds_that_the_rows_break(place, margins, method):
    limits = LIMITS if margins == CROSSING else LIMITS.replace("block: total", "block: sex")
    more = f'[method]\nname = "{method}"{WITH_MEASUREMENTS}'
    plan = plan_of(margins=margins, invariants=limits, more=more)
    cg.release(plan, place / "out", base=place)
    found = cg.read_release(place / "out")
    assert all(check.passed for check in cg.verify(place / "out"))
    low, high = bounds_by_node(plan, found.domain)
    assert ((low <= found.values) & (found.values <= high)).all()
    checked = {check.name: check.text for check in cg.verify(place / "out")}
    assert checked["bounds"] == "no value is negative and every value is within the plan's bounds"
    stated = [mandate(one) for one in found.certificate.invariants]
    assert stated[-2] == "lower bounds hold (2 counts: area: total at least 130)"
    assert stated[-1].startswith("upper bounds hold (")
    assert "Town/North: sex=F at most 40" in stated[-1]


def test_conditioning_keeps_bounds_and_pays_for_them(place):
    limits = EXACT + 'at_least = { "area: total" = 100 }\nat_most = { "block: sex" = 70 }'
    plan = plan_of(margins=NESTED, invariants=limits, more='[method]\nname = "conditioning"')
    cg.release(plan, place / "out", base=place)
    found = cg.read_release(place / "out")
    assert all(check.passed for check in cg.verify(place / "out"))
    assert found.certificate.guarantee.gamma > 0.0
    assert found.certificate.guarantee.datasets.satisfy_bounds
    low, high = bounds_by_node(plan, found.domain)
    assert ((low <= found.values) & (found.values <= high)).all()


def test_conditioning_refuses_rows_beyond_a_bound_without_a_count(place):
    limits = EXACT + 'at_most = { "block: total" = 80 }'
    plan = plan_of(
        margins='{ root = ["total"], block = ["total"] }',
        invariants=limits,
        more='[method]\nname = "conditioning"',
    )
    with pytest.raises(cg.CongenialError) as caught:
        cg.release(plan, place / "out", base=place)
    assert not {"83", "91", "S1", "S3"} & set(str(caught.value).replace("'", " ").split())
    assert not (place / "out").exists()


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("margins", [NESTED, CROSSING])
def test_random_bounds_are_kept_or_refused_before_the_draw(place, margins, seed):
    rng = np.random.default_rng(seed)
    area, block = rng.integers(0, 180, 2), rng.integers(20, 160, 2)
    limits = EXACT * bool(rng.integers(2)) + (
        f'at_least = {{ "area: total" = {area[0]}, "Town/South: sex=M" = {area[1]} }}\n'
        f'at_most = {{ "block: sex" = {block[0]}, "Town/South: total" = {2 * block[1]} }}'
    )
    plan = plan_of(margins=margins, invariants=limits)
    steps = []
    try:
        cg.release(plan, place / "out", base=place, notify=steps.append)
    except InfeasibleError:
        assert "drawing" not in steps
        return
    values = cg.read_release(place / "out").values
    low, high = bounds_by_node(plan, plan.domain(_tree(place, plan)))
    assert ((low <= values) & (values <= high)).all()
    if plan.invariants.nonnegative:
        assert (values >= 0).all()


def _tree(place, plan):
    found = cg.read_release(place / "out").domain
    return found.tables[0].geography


def test_intervals_reach_beyond_bounds_that_the_rows_break(place):
    limits = EXACT + 'at_most = { "block: sex" = 20 }'
    more = f'[method]\nname = "topdown"{WITH_MEASUREMENTS}'
    privacy = 'neighbours = "substitute"\nepsilon = 8.0'
    rows = place / "people.csv"
    rows.write_text(
        "area,block,sex,age,status,people\nNorth,N1,F,18-64,single,300\nSouth,S1,M,18-64,single,1\n"
    )
    # the total stays free, so that the rows may break the bound
    limits = limits.replace('["root: total"]', "[]")
    plan = plan_of(margins=NESTED, invariants=limits, more=more, privacy=privacy)
    cg.release(plan, place / "out", base=place)
    found = cg.read_release(place / "out")
    at = found.domain.names.index("sex=F in table at Town/North/N1")
    assert found.values[at] <= 20
    assert found.rows.column("lower")[at] <= found.values[at]
    assert found.rows.column("upper")[at] >= 300 - 20


@pytest.mark.parametrize("name", ["topdown", "imaging", "posterior", "conditioning"])
def test_plans_with_bounds_are_audited(place, name):
    limits = EXACT + 'at_least = { "area: total" = 60 }\nat_most = { "block: sex" = 70 }'
    plan = plan_of(margins=NESTED, invariants=limits, more=f'[method]\nname = "{name}"')
    found = audit_plan(plan, place, draws=300)
    assert found.passed
    model = build_model(plan, plan.domain(TOWN))
    pairs = chosen_pairs(Space(model.mechanism, (model.resolved,)), "substitute", seeded(1))
    assert len(pairs) > 10
    choose_method(model)


@pytest.mark.parametrize(
    ("limits", "parts"),
    [
        ('at_least = { "area: total" = -1 }', ["at_least.area: total is -1", "whole number"]),
        ('at_most = { "area: total" = 1.5 }', ["at_most.area: total is 1.5", "whole number"]),
        ('at_most = { "area: total" = true }', ["at_most.area: total is", "whole number"]),
        ('at_most = { "area: total" = "cap.csv" }', ["at_most.area: total is 'cap.csv'"]),
        ("at_most = 5", ["invariants.at_most is 5", "such as { zone = 500 }"]),
        (
            'at_least = { "area: total" = 9 }\nat_most = { "area: total" = 8 }',
            ["at_least.area: total is 9, and invariants.at_most gives it 8"],
        ),
        (
            'publish_exactly = ["root: total"]\nat_most = { "root: total" = 8 }',
            ["at_most.root: total bounds a level that invariants.publish_exactly holds"],
        ),
    ],
)
def test_wrong_bounds_get_one_sentence(limits, parts):
    with pytest.raises(PlanError) as caught:
        parse_plan(text_of(invariants=limits))
    text = str(caught.value)
    assert all(part in text for part in parts), text
    assert "\n" not in text


def test_an_unknown_name_of_a_bound_is_refused_with_those_known():
    plan = plan_of(invariants=EXACT + 'at_most = { "blok: total" = 9 }')
    with pytest.raises(PlanError, match=r"at_most.*'blok: total'.*did you mean 'block: total'"):
        bounds_by_node(plan, plan.domain(TOWN))
