"""Sections of a plan, each key checked."""

from __future__ import annotations

from typing import get_args

import msgspec
import pytest

from congenial.accounting.calibration.target import METHODS
from congenial.accounting.neighbours.single_moves import RELATIONS
from congenial.conditioning.sampler import sampler_names
from congenial.errors import PlanError
from congenial.imaging.closest import Norm
from congenial.plan import sections
from congenial.plan.sections import OWN_COLUMNS, Accuracy, Publication
from congenial.releases.intervals import interval_columns
from congenial.releases.measurements import COLUMNS
from congenial.releases.rows import columns_of
from support.plan_texts import GOOD, changed, refusal


def test_the_values_accepted_here_are_those_of_lower_layers() -> None:
    assert get_args(sections.Neighbours) == RELATIONS
    # the guarantees of the last two are those of images
    assert (*METHODS, "topdown", "posterior") == get_args(sections.MethodName)
    assert get_args(Norm) == get_args(sections.Norm)
    # a chain is for studies: a plan makes releases, and no release comes from one
    assert sampler_names()[:2] == get_args(sections.SamplerName)


GOAL = ("split = {", "goal = {")


MISTAKES: list[tuple[str, list[tuple[str, str]], list[str]]] = [
    ("unknown section", [("[privacy]", "[privasy]")], ["privasy", "did you mean 'privacy'"]),
    ("unknown key", [("epsilon =", "epsilom =")], ["privacy.epsilom", "did you mean 'epsilon'"]),
    ("key outside a section", [("\n[data]", "speed = 3\n[data]")], ["speed", "sections"]),
    ("unknown lookup key", [("key =", "kee =")], ["data.lookup.kee", "did you mean 'key'"]),
    ("missing key", [('source = "trips.parquet"\n', "")], ["data.source is missing"]),
    ("missing lookup key", [('key = "LocationID", ', "")], ["data.lookup.key is missing"]),
    ("missing root", [('root = "New York City"\n', "")], ["hierarchy.root is missing"]),
    (
        "missing levels",
        [('levels = ["Borough", "PULocationID"]\n', "")],
        ["hierarchy.levels is mis"],
    ),
    ("missing domain", [('domain = "lookup"\n', "")], ["hierarchy.domain is missing", "'data'"]),
    (
        "missing neighbours",
        [('neighbours = "substitute"\n', "")],
        ["privacy.neighbours", "add-rem"],
    ),
    ("epsilon in quotes", [("epsilon = 1.0", 'epsilon = "1.0"')], ["1.0, without quotes."]),
    ("missing epsilon", [("epsilon = 1.0\n", "")], ["privacy.epsilon is missing"]),
    ("text for a number", [("1.0", '"1.0"')], ["privacy.epsilon", "'1.0'", "number"]),
    ("bool for a number", [("1.0", "true")], ["privacy.epsilon", "true", "number"]),
    ("number for text", [('"trips.parquet"', "3")], ["data.source is 3", "text in quotes"]),
    ("text for a list", [('["root"]', '"root"')], ["publish_exactly is 'root'", "list"]),
    ("numbers in a list", [('["root"]', "[1]")], ["publish_exactly holds 1", "text"]),
    (
        "text for a bool",
        [("nonnegative = true", 'nonnegative = "yes"')],
        ["'yes'", "true or false"],
    ),
    ("number for a bool", [("nonnegative = true", "nonnegative = 1")], ["nonnegative is 1"]),
    (
        "text for a table",
        [("split = {", 'split = "half" # {')],
        ["privacy.split is 'half'", "table"],
    ),
    ("date for text", [('"New York City"', "2022-02-01")], ["hierarchy.root", "text in quotes"]),
    (
        "negative epsilon",
        [("1.0", "-1.5")],
        ["privacy.epsilon is -1.5", "number from 1e-06 to 16"],
    ),
    ("zero epsilon", [("1.0", "0")], ["privacy.epsilon is 0", "number from 1e-06 to 16"]),
    ("NaN epsilon", [("1.0", "nan")], ["privacy.epsilon is nan", "number from 1e-06 to 16"]),
    ("infinite epsilon", [("1.0", "inf")], ["privacy.epsilon is inf", "number from 1e-06 to 16"]),
    ("unknown neighbours", [('"substitute"', '"subsitute"')], ["'subsitute'", "mean 'substitute'"]),
    (
        "unknown noise",
        [('"discrete-laplace"', '"laplace"')],
        ["privacy.noise is 'laplace'", "discr"],
    ),
    (
        "unknown method",
        [('"conditioning"', '"projection"')],
        ["method.name is 'projection'", "imag"],
    ),
    ("unknown sampler", [('"auto"', '"nuts"')], ["method.sampler is 'nuts'", "'exact'"]),
    (
        "a norm that is none",
        [('name = "conditioning"\nsampler = "auto"', 'name = "imaging"\nnorm = "linf"')],
        ["method.norm is 'linf'", "'l2' or 'l1'"],
    ),
    (
        "a norm for conditioning",
        [('sampler = "auto"', 'norm = "l1"')],
        ["method.norm is 'l1'", "'conditioning'", "leave it out"],
    ),
    (
        "sampler for topdown",
        [('"conditioning"', '"topdown"'), ('"auto"', '"exact"')],
        ["method.sampler is 'exact'", "topdown"],
    ),
    (
        "sampler for imaging",
        [('"conditioning"', '"imaging"'), ('"auto"', '"exact"')],
        ["method.sampler is 'exact'", "imaging"],
    ),
    ("unknown level in split", [("{ Borough", "{ Boroug")], ["privacy.split.Boroug", "'Borough'"]),
    ("split below 1", [("0.4", "0.39")], ["privacy.split", "0.99", "1"]),
    ("split above 1", [("0.4", "0.400001")], ["privacy.split", "1.000001"]),
    ("negative share", [("0.4", "-0.4")], ["privacy.split.Borough is -0.4", "between 0 and 1"]),
    ("NaN share", [("0.4", "nan")], ["privacy.split.Borough is nan"]),
    ("bool share", [("0.4", "true")], ["privacy.split.Borough is true"]),
    ("text share", [("0.4", '"a"')], ["privacy.split.Borough is 'a'"]),
    ("empty split", [("{ Borough = 0.4, PULocationID = 0.6 }", "{}")], ["privacy.split", "0", "1"]),
    (
        "budget for a level published exactly",
        [("{ Borough = 0.4", "{ root = 0.4")],
        ["privacy.split.root is 0.4", "the level is published exactly and needs no share"],
    ),
    (
        "budget for a level that follows from an exact one",
        [("{ Borough = 0.4", "{ root = 0.4"), ('["root"]', '["Borough"]')],
        ["privacy.split.root is 0.4", "'Borough'", "the level needs no share"],
    ),
    (
        "deepest level unmeasured",
        [("Borough = 0.4, PULocationID = 0.6", "Borough = 1.0"), ("= true", "= false")],
        ["privacy.split", "'PULocationID'", "a share"],
    ),
    (
        "deepest level unmeasured, nothing negative",
        [("Borough = 0.4, PULocationID = 0.6", "Borough = 1.0")],
        ["privacy.split", "'PULocationID'", "a share"],
    ),
    (
        "a split and a goal",
        [("noise = ", "goal = { PULocationID = 1.0 }\nnoise = ")],
        ["privacy.goal is {'PULocationID': 1.0}", "privacy.split", "one of them"],
    ),
    ("unknown level in goal", [GOAL, ("{ B", "{ b")], ["privacy.goal.borough", "mean 'Borough'"]),
    ("negative weight", [GOAL, ("0.4", "-4")], ["privacy.goal.Borough is -4", "nonnegative"]),
    ("NaN weight", [GOAL, ("0.4", "nan")], ["privacy.goal.Borough is nan", "finite"]),
    ("infinite weight", [GOAL, ("0.4", "inf")], ["privacy.goal.Borough is inf", "finite"]),
    ("bool weight", [GOAL, ("0.4", "true")], ["privacy.goal.Borough is true"]),
    ("text for a goal", [("split = {", 'goal = "x" # {')], ["privacy.goal is 'x'", "table"]),
    (
        "a weight for a level published exactly",
        [GOAL, ("{ Borough", "{ root")],
        ["privacy.goal.root is 0.4", "the level is published exactly and needs no weight"],
    ),
    (
        "a weight for a level that follows from an exact one",
        [GOAL, ("{ Borough", "{ root"), ('["root"]', '["Borough"]')],
        ["privacy.goal.root is 0.4", "'Borough'", "needs no weight", "weigh the finer levels"],
    ),
    (
        "deepest level without a weight",
        [GOAL, ("0.6", "0")],
        ["privacy.goal", "'PULocationID'", "a weight"],
    ),
    (
        "empty goal",
        [GOAL, ("{ Borough = 0.4, PULocationID = 0.6 }", "{}")],
        ["privacy.goal", "'PULocationID'", "a weight"],
    ),
    ("epsilon that says nothing", [("epsilon = 1.0", "epsilon = 50.0")], ["epsilon", "50", "16"]),
    (
        "epsilon that leaves nothing",
        [("epsilon = 1.0", "epsilon = 1e-300")],
        ["epsilon", "1e-300", "1e-06"],
    ),
    (
        "deepest level given nothing",
        [
            ("Borough = 0.4, PULocationID = 0.6", "Borough = 1, PULocationID = 0"),
            ("= true", "= false"),
        ],
        ["privacy.split", "'PULocationID'", "a share"],
    ),
    ("everything exact", [('["root"]', '["PULocationID"]')], ["publish_exactly", "'PULocationID'"]),
    ("misspelt exact level", [('["root"]', '["borough"]')], ["'borough'", "mean 'Borough'"]),
    ("exact twice", [('["root"]', '["root", "root"]')], ["publish_exactly", "'root'", "once"]),
    ("blank exact", [('["root"]', '[" "]')], ["publish_exactly", "' '"]),
    (
        "add-remove with an exact root",
        [('"substitute"', '"add-remove"')],
        ["'root'", "'substitute'"],
    ),
    (
        "no levels",
        [('["Borough", "PULocationID"]', "[]")],
        ["hierarchy.levels is empty", "or, in a plan with a table of attributes, leave"],
    ),
    (
        "a level twice",
        [('["Borough", ', '["PULocationID", ')],
        ["levels", "'PULocationID' twice", "once"],
    ),
    (
        "a level twice but for case",
        [('["Borough", ', '["pulocationid", ')],
        ["levels holds 'PULocationID' twice", "once"],
    ),
    ("a level called root", [('["Borough", ', '["root", ')], ["hierarchy.levels", "'root'"]),
    ("a blank level", [('["Borough", ', '["", ')], ["hierarchy.levels", "''"]),
    ("a blank root", [('"New York City"', '" "')], ["hierarchy.root is empty"]),
    (
        "an unknown domain",
        [('= "lookup"', '= "lokup"')],
        ["hierarchy.domain is 'lokup'", "'lookup'?"],
    ),
    ("lookup domain without lookup", [("lookup = {", "# {")], ["hierarchy.domain", "data.lookup"]),
    ("a source of another kind", [("trips.parquet", "trips.xlsx")], ["data.source", "trips.xlsx"]),
    (
        "a database without table",
        [("trips.parquet", "t.duckdb")],
        ["data.table is missing", "t.duck"],
    ),
    ("a table of no database", [("where =", 'table = "t"\nwhere =')], ["data.table is 't'"]),
    (
        "a short name of a type",
        [("where =", 'types = { age = "INT" }\nwhere =')],
        ["data.types.age is 'INT'", "(did you mean 'INTEGER'?)"],
    ),
    ("a blank where", [('"PULocationID <= 263"', '""')], ["data.where is empty"]),
    ("a lookup of another kind", [("lookup.csv", "lookup.json")], ["data.lookup.source", ".csv"]),
]


@pytest.mark.parametrize(
    ("pairs", "words"), [m[1:] for m in MISTAKES], ids=[m[0].replace(" ", "-") for m in MISTAKES]
)
def test_a_mistake_is_refused_in_one_sentence(
    pairs: list[tuple[str, str]], words: list[str]
) -> None:
    message = refusal(changed(*pairs))
    for word in words:
        assert word in message


@pytest.mark.parametrize("section", ["data", "hierarchy", "privacy"])
def test_a_missing_section_is_named(section: str) -> None:
    sections = GOOD.split("\n[")
    text = "\n[".join(s for s in sections if not s.startswith(f"{section}]"))
    assert f"{section} is missing; add the section [{section}] with" in refusal(text)


def test_a_long_value_is_shortened() -> None:
    message = refusal(changed(("1.0", f'"{"9" * 500}"')))
    assert len(message) < 200


def test_a_table_is_always_published_and_measurements_on_request():
    assert not Publication().measurements
    assert Publication(("table", "measurements")).measurements
    for publish in (("measurements",), ()):
        with pytest.raises(PlanError, match="does not hold 'table'"):
            Publication(publish)
    with pytest.raises(PlanError, match=r"release\.publish"):
        Publication(("table", "table"))


def test_the_share_of_misses_is_what_confidence_leaves():
    assert Accuracy().alpha == pytest.approx(0.1, abs=1e-15)
    for confidence in (0.499, 0.9991, float("nan")):
        with pytest.raises(msgspec.ValidationError, match=r"confidence"):
            msgspec.convert({"confidence": confidence}, Accuracy)


def test_sums_have_names_and_name_each_node_once():
    Accuracy(sums={"both": ("North", "South")})
    with pytest.raises(PlanError, match="a sum called ' '"):
        Accuracy(sums={" ": ("North",)})
    with pytest.raises(PlanError, match=r"accuracy\.sums\.both"):
        Accuracy(sums={"both": ("North", "North")})


def test_a_level_may_not_have_the_name_of_a_column_of_the_files():
    made = {
        name
        for ends in map(interval_columns, (False, True))
        for name, _ in (
            *columns_of((), ("value", *ends, "truth"), readings=(), stamped=True),
            *columns_of((), COLUMNS, readings=(), stamped=True),
        )
    }
    assert made == set(OWN_COLUMNS)
