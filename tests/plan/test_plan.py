"""Every mistake in a plan is answered by one sentence: the key, the value, the remedy."""

from __future__ import annotations

import copy
from pathlib import Path

import msgspec
import pytest

import congenial as cg
from congenial.domain.tree import Tree
from congenial.errors import ArgumentError, CongenialError, PlanError
from congenial.plan import plan as plans
from congenial.plan import sections
from congenial.plan.plan import exact_nodes, parse_plan, read_plan
from support.plan_texts import GOOD, changed, one_sentence, refusal


def test_the_good_plan_is_understood() -> None:
    plan = parse_plan(GOOD)
    assert plan.level_names == ("root", "Borough", "PULocationID")
    assert plan.exact_levels == ("root",)
    assert plan.unmeasured_levels == ()
    assert plan.data.lookup == sections.Lookup("taxi_zone_lookup.csv", "LocationID", "PULocationID")
    assert plan.privacy.epsilon == 1.0 and isinstance(plan.privacy.epsilon, float)


def test_a_plan_is_plain_data_and_back() -> None:
    plan = parse_plan(GOOD)
    assert msgspec.convert(msgspec.to_builtins(plan), plans.Plan) == plan


def test_the_optional_parts_may_be_left_out() -> None:
    text = GOOD[: GOOD.index("[invariants]")].replace("split = {", "# {")
    plan = parse_plan(text)
    assert plan.privacy.split is None
    assert plan.invariants == sections.Invariants() and plan.method == sections.Method()


def test_without_a_method_the_default_is_the_best_for_the_invariants() -> None:
    text = GOOD[: GOOD.index("[method]")]
    assert parse_plan(text).method == sections.best_method(bounded=True)
    assert parse_plan(text).method.name == "posterior"
    equal = text.replace("nonnegative = true", "nonnegative = false")
    assert parse_plan(equal).method == sections.best_method(bounded=False)
    assert parse_plan(text + '[method]\nloss = "l2"').method == sections.Method(
        name="posterior", loss="l2"
    )
    # a sampler is one of conditioning
    sampled = parse_plan(text + '[method]\nsampler = "exact"').method
    assert sampled == sections.Method(sampler="exact") and sampled.name == "conditioning"
    named = parse_plan(text + '[method]\nname = "conditioning"').method
    assert named.name == "conditioning"


def test_a_method_that_is_no_table_is_refused_where_none_is_named() -> None:
    text = GOOD[: GOOD.index("[method]")]
    assert "method is 3" in refusal("method = 3\n" + text)


def test_a_stored_plan_without_a_method_keeps_its_meaning() -> None:
    plain = msgspec.to_builtins(parse_plan(GOOD))
    del plain["method"]
    assert msgspec.convert(plain, plans.Plan).method.name == "conditioning"


GOAL = ("split = {", "goal = {")


@pytest.mark.parametrize(
    "text",
    ["[data", "a = ", "a = 1\na = 2", "a = '\x00'", f"a = {'[' * 5000}", f"a = 1{'0' * 5000}"],
)
def test_bad_toml_is_refused_in_one_sentence(text: str) -> None:
    assert refusal(text).startswith("the plan is not valid TOML: ")


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "latin.toml").write_bytes(b"a = '\xe9'")
    cases = {
        "none.toml": "cannot be read (no such file or directory)",
        "": "cannot be read (is a directory)",
        "latin.toml": "not UTF-8",
        "\0": "cannot be read",
    }
    for name, words in cases.items():
        with pytest.raises(PlanError) as caught:
            read_plan(str(tmp_path / name))
        assert words in str(caught.value) and one_sentence(str(caught.value))
    (tmp_path / "good.toml").write_text(GOOD)
    assert read_plan(tmp_path / "good.toml") == parse_plan(GOOD)


def test_a_plan_made_in_python_is_checked_too() -> None:
    good = parse_plan(GOOD)
    with pytest.raises(PlanError, match=r"privacy\.epsilon is -1"):
        plans.Plan(
            good.data,
            good.hierarchy,
            sections.Privacy("substitute", -1.0),
            good.invariants,
            good.method,
        )
    assert copy.deepcopy(good) == good


def test_a_split_may_miss_one_by_rounding() -> None:
    plan = parse_plan(changed(("0.4", "0.3333333333"), ("0.6", "0.6666666667")))
    assert plan.privacy.split == {"Borough": 0.3333333333, "PULocationID": 0.6666666667}


def test_a_goal_weighs_levels_and_need_not_add_up() -> None:
    plan = parse_plan(changed(GOAL, ("0.4", "3"), ("0.6", "7.5")))
    assert plan.privacy.split is None
    assert plan.privacy.goal == {"Borough": 3.0, "PULocationID": 7.5}
    assert plan.unmeasured_levels == ()
    plan = parse_plan(changed(GOAL, ("0.4", "0")))
    assert plan.unmeasured_levels == ("Borough",)


def test_an_unmeasured_level_is_allowed_where_the_law_stays_proper() -> None:
    middle = parse_plan(
        changed(
            ("Borough = 0.4, PULocationID = 0.6", "PULocationID = 1, Borough = 0"),
            ("= true", "= false"),
        )
    )
    assert middle.unmeasured_levels == ("Borough",)


def nodes(entries: str, paths: list[tuple[str, ...]], domain: str = "lookup") -> tuple[int, ...]:
    text = changed(('["root"]', entries), ('domain = "lookup"', f'domain = "{domain}"'))
    text = text.replace("split = {", "# {")
    return exact_nodes(parse_plan(text), Tree.from_paths(paths))


CITY = "New York City"
PATHS = [
    (CITY, "Bronx", "3"),
    (CITY, "Bronx", "a/b"),
    (CITY, "Queens", "2"),
    (CITY, "Queens", "Bronx"),
]


def test_exact_nodes_by_level_path_and_name() -> None:
    # 0 city, 1 Bronx, 2 its 3, 3 its a/b, 4 Queens, 5 its 2, 6 its Bronx
    assert nodes('["root"]', PATHS) == (0,)
    assert nodes('["Borough"]', PATHS) == (1, 4)
    assert nodes('["Bronx"]', PATHS) == (1,)
    assert nodes('["Queens/Bronx", "3"]', PATHS) == (2, 6)
    assert nodes('["Bronx/a/b"]', PATHS) == (3,)
    assert nodes('["New York City/Queens"]', PATHS) == (4,)
    assert nodes("[]", PATHS) == ()


def test_exact_nodes_that_are_not_there() -> None:
    with pytest.raises(PlanError) as caught:
        nodes('["Qeens"]', PATHS)
    assert one_sentence(str(caught.value))
    assert "'Qeens'" in str(caught.value) and "did you mean 'Queens'?" in str(caught.value)
    with pytest.raises(PlanError) as caught:
        nodes('["Qeens"]', PATHS, domain="data")
    assert "Queens" not in str(caught.value)
    with pytest.raises(PlanError, match=r"names '7', and 2 nodes are called so; .* 'Bronx/7'"):
        nodes('["7"]', [(CITY, "Bronx", "7"), (CITY, "Queens", "7")])


@pytest.mark.parametrize("call", [cg.release, cg.explain, cg.compare])
def test_a_path_instead_of_a_plan_is_refused_with_a_remedy(call):
    more = {"out": "never"} if call is cg.release else {}
    with pytest.raises(
        ArgumentError, match=r"a str, not a plan; give cg\.read_plan\('plan\.toml'\)"
    ):
        call("plan.toml", **more)


@pytest.mark.parametrize("call", [cg.read_plan, cg.verify, cg.read_release])
def test_a_number_instead_of_a_path_is_refused(call):
    with pytest.raises(CongenialError, match=r"is 3; give the path of a"):
        call(3)


@pytest.mark.parametrize("text", [None, 3, b"x", Path("plan.toml")])
def test_what_is_no_text_of_a_plan_is_refused(text):
    with pytest.raises(PlanError) as caught:
        parse_plan(text)
    said = f"text is {text!r}; give a plan's text, or its file to read_plan."
    assert str(caught.value) == said
