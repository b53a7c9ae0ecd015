"""The section `table` of a plan: its queries, its defaults, and one sentence for each mistake."""

from __future__ import annotations

import re
from types import UnionType
from typing import Annotated, Union, get_args, get_origin

import msgspec
import pytest

from congenial.errors import CongenialError
from congenial.plan.cross_table import crossing
from congenial.plan.fields import Section
from congenial.plan.plan import Plan, exact_nodes, named_nodes, parse_plan
from congenial.releases.model import build_model, choose_method
from support.cross_tables import AGE, SEX, TOWN, VOTING, plan_of, text_of

NESTED = '["total", "sex", "sex by age"]'


def test_queries_are_named_by_level_and_margin():
    plan = plan_of(margins='{ root = ["total"], block = ["sex by age", "sex"] }')
    assert plan.level_names == (
        "root: total",
        "block: sex",
        "block: sex by age",
        "block: sex by age by status",
    )
    assert plan.place_names == ("root", "area", "block")


def test_the_default_method_follows_from_whether_margins_cross():
    assert plan_of().method.name == "topdown"
    # coarse levels with coarse margins: each query divides the one before it
    nested = '{ root = ["total"], area = ["total", "sex"], block = ["sex"] }'
    plan = plan_of(margins=nested)
    assert not plan.crossing
    assert plan.method.name == "posterior"
    assert plan_of(margins=NESTED).crossing  # sexes of a town cross its areas


@pytest.mark.parametrize("margins", [NESTED, '["total"]', '{ root = ["total"] }', '["voting"]'])
def test_plans_that_do_not_cross_count_a_tree_and_others_do_not(margins):
    plan = plan_of(margins=margins, invariants="")
    workload = plan.domain(TOWN)
    assert plan.crossing == (workload.tree is None) == crossing(workload)


def test_conditioning_is_refused_where_no_sampler_is_certified():
    plan = plan_of(more='[method]\nname = "conditioning"')
    with pytest.raises(CongenialError, match="no sampler with a bounded error"):
        choose_method(build_model(plan, plan.domain(TOWN)))


def test_exact_counts_are_named_by_query_or_one_by_one():
    plan = plan_of(
        invariants='publish_exactly = ["area: total", "Town/South/S2: sex=F", "root: total"]'
    )
    workload = plan.domain(TOWN)
    found = exact_nodes(plan, workload)
    assert [workload.path(v) for v in found] == [
        ("Town",),
        ("Town", "North"),
        ("Town", "South"),
        ("Town", "South", "S2", "sex=F"),
    ]


FAULTS = {
    "an attribute that is a level": (
        text_of().replace("status =", "AREA =", 1),
        "table.attributes has 'AREA'",
    ),
    "an unknown margin": (text_of(margins='["sexe"]'), "table.margins.root holds 'sexe'"),
    "an attribute twice": (
        text_of(margins='["age by voting"]'),
        "table.margins.root holds 'age by voting'",
    ),
    "an unknown level": (text_of(margins='{ state = ["total"] }'), "table.margins.state names"),
    "no margin": (text_of(margins="[]"), "table.margins is empty"),
    "no value": (text_of().replace("['F', 'M']", "[]"), "table.attributes.sex is empty"),
    "a value twice": (text_of().replace("['F', 'M']", "['F', 'F']"), "table: "),
    "a group that leaves a value out": (
        text_of().replace('["18-64", "65+"]', '["18-64"]'),
        "table: ",
    ),
    "an impossible value": (text_of(impossible='[{ age = "100" }]'), "table: "),
    "nothing possible": (text_of(impossible='[{ sex = ["F", "M"] }]'), "table: "),
    "a condition without a value": (
        text_of(impossible="[{ sex = [] }]"),
        "table.impossible gives no value of 'sex'",
    ),
    "a number in a condition": (text_of(impossible="[{ sex = 1 }]"), "table.impossible holds"),
    "impossible cells as text": (text_of(impossible='"sex"'), "table.impossible is 'sex'"),
    "groups as text": (text_of().replace(VOTING, '"x"'), "table.groups.voting is 'x'"),
    "no groups but a number": (
        text_of().replace(f"groups.voting = {VOTING}", "groups = 3"),
        "table.groups is 3",
    ),
    "a name with a colon": (text_of().replace("status =", '"a:b" =', 1), "table.attributes has"),
    "a posterior of crossing margins": (
        text_of(more='[method]\nname = "posterior"'),
        "method.name is 'posterior'",
    ),
    "a goal of crossing margins": (
        text_of(privacy='neighbours = "substitute"\nepsilon = 1.0\ngoal = { "root: sex" = 1.0 }'),
        "privacy.goal is given",
    ),
    "a share of an unknown query": (
        text_of(privacy='neighbours = "substitute"\nepsilon = 1.0\nsplit = { "area: se" = 1.0 }'),
        "privacy.split.area: se names no query",
    ),
    "shares above one": (
        text_of(
            privacy='neighbours = "substitute"\nepsilon = 1.0\n'
            'split = { "area: sex" = 0.6, "block: sex by age by status" = 0.6 }'
        ),
        "privacy.split adds up to 1.2",
    ),
    "a weight that is an attribute": (
        text_of().replace('weight = "people"', 'weight = "sex"'),
        "data.weight is 'sex'",
    ),
    "no levels and a domain": (
        text_of().replace('["area", "block"]', "[]"),
        "hierarchy.domain is 'blocks.csv' while",
    ),
    "levels and no domain": (
        text_of().replace('domain = "blocks.csv"', ""),
        "hierarchy.domain is missing",
    ),
    "neither levels nor a table": (
        '[data]\nsource = "a.csv"\n[hierarchy]\nroot = "Town"\nlevels = []\n'
        '[privacy]\nneighbours = "substitute"\nepsilon = 1.0\n',
        "hierarchy.levels is empty",
    ),
    "everything exact": (
        text_of(invariants='publish_exactly = ["block: sex by age by status"]'),
        "invariants.publish_exactly holds",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_wrong_table_is_refused_in_one_sentence(fault):
    text, start = FAULTS[fault]
    with pytest.raises(CongenialError) as caught:
        parse_plan(text)
    said = str(caught.value)
    assert said.startswith(start)
    assert re.search(r"; .*\.$", said)
    assert "\n" not in said


def test_a_table_of_too_many_cells_is_refused_before_it_is_made():
    many = [str(value) for value in range(8000)]
    plan = text_of(impossible="[]")
    for values in (SEX, AGE):
        plan = plan.replace(str(list(values)), str(many))
    with pytest.raises(CongenialError, match=r"makes 128,000,000 single cells at 1 places"):
        parse_plan(plan)


def test_no_text_with_a_pattern_may_be_a_list_instead():
    # msgspec 0.22 frees the pattern of such a type each time that it is given, and then crashes
    def parts(kind):
        yield kind
        for part in get_args(kind):
            yield from parts(part)

    def annotated(kind):
        return get_args(kind) if get_origin(kind) is Annotated else (kind, msgspec.Meta())

    sections = [Plan, *Section.__subclasses__()]
    fields = [field.type for one in sections for field in msgspec.structs.fields(one)]
    unions = [
        [annotated(choice) for choice in get_args(kind)]
        for field in fields
        for kind in parts(field)
        if get_origin(kind) in (Union, UnionType)
    ]
    assert any(kind is str and meta.pattern for union in unions for kind, meta in union)
    for union in unions:
        lists = any(get_origin(kind) is tuple for kind, _ in union)
        assert not (lists and any(kind is str and meta.pattern for kind, meta in union))


def test_a_count_may_be_named_as_the_page_names_it():
    plan = plan_of()
    counts = plan.domain(TOWN)
    cells = [v for v in range(len(counts)) if "=" in counts.path(v)[-1]]
    assert len(cells) > 20
    for v in cells:
        assert named_nodes(plan, counts, "nodes", ("/".join(counts.path(v)),)) == (v,)


def test_an_unknown_exact_count_is_refused_when_places_are_known():
    plan = plan_of(invariants='publish_exactly = ["Town/West: sex=F"]')
    with pytest.raises(CongenialError, match="neither a query nor one of its counts"):
        exact_nodes(plan, plan.domain(TOWN))
