"""Fields of a plan: valid values become a struct, and invalid values are named by their key."""

from __future__ import annotations

import msgspec
import pytest

from congenial.errors import PlanError
from congenial.plan.fields import Section, check_once, fit, refuse


class Inner(Section, frozen=True):
    size: str


class Outer(Section, frozen=True):
    name: str
    share: float = 0.5
    inner: Inner | None = None


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
def test_an_invalid_value_is_named_by_its_key(raw, key):
    with pytest.raises(PlanError, match=key.replace(".", r"\.")):
        fit(raw, Outer)


def test_valid_values_become_a_struct():
    made = fit({"name": "x", "share": 1, "inner": {"size": "2"}}, Outer)
    assert made == Outer("x", 1.0, Inner("2"))
    assert fit(msgspec.to_builtins(made), Outer) == made


def test_a_refusal_is_one_sentence_with_its_key():
    with pytest.raises(PlanError, match=r"^a\.b is 3; give 4\.$"):
        refuse("a.b", "is 3", "give 4")
    check_once("a.b", ["x", "X"])
    for entries, same in ((["x", "x"], str), (["x", "X"], str.casefold)):
        with pytest.raises(PlanError, match=r"a\.b holds '[xX]' twice"):
            check_once("a.b", entries, same=same)
