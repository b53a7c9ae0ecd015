"""Fields of a plan: how a value is shown, which name was meant, and what does not fit."""

from __future__ import annotations

import msgspec
import pytest

from congenial.errors import PlanError
from congenial.plan.fields import fit, is_number, nearest, on_a_line, one_of, refuse, show


class Inner(msgspec.Struct, frozen=True):
    size: str


class Outer(msgspec.Struct, frozen=True):
    name: str
    share: float = 0.5
    inner: Inner | None = None


EXAMPLES = {"name": '"x"', "share": "0.5", "inner": "{ size = 1 }", "size": "1", "inner.size": "1"}


def test_a_value_is_shown_on_one_line_and_not_too_long():
    for value in ("a\nb", "x" * 5000, {"a": [1, 2]}, True, 0.1, ["x"] * 900):
        text = show(value)
        assert "\n" not in text
        assert len(text) < 300
    assert show(True) == "true"
    assert "root" in show("root")


def test_names_that_would_break_a_line_are_quoted():
    assert on_a_line("Queens") == "Queens"
    for name in ("a\nb", "a\tb", "a\u200bb"):
        assert on_a_line(name) != name
        assert on_a_line(name).isprintable()


def test_the_name_that_was_meant_is_told():
    assert "epsilon" in nearest("epsilom", ("epsilon", "delta"))
    assert nearest("zzzz", ("epsilon", "delta")) == ""
    assert one_of(["a"]).count("a") == 1
    assert " or " in one_of(["a", "b", "c"])


@pytest.mark.parametrize(
    ("raw", "key"),
    [
        ({}, "name"),
        ({"name": 3}, "name"),
        ({"name": "x", "share": "y"}, "share"),
        ({"name": "x", "nome": 1}, "nome"),
        ({"name": "x", "inner": {"size": 2}}, "inner.size"),
        ({"name": "x", "inner": {}}, "inner.size"),
    ],
)
def test_what_does_not_fit_is_named_by_its_key(raw, key):
    with pytest.raises(PlanError, match=key.replace(".", r"\.")):
        fit(raw, Outer, examples=EXAMPLES)


def test_what_fits_passes():
    fit({"name": "x", "share": 1, "inner": {"size": "2"}}, Outer, examples=EXAMPLES)
    assert [is_number(v) for v in (1, 0.5, True, "1")] == [True, True, False, False]
    with pytest.raises(PlanError, match=r"a\.b is 3; give 4"):
        refuse("a.b", "is 3", "give 4")
