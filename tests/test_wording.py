"""Values, choices and numbers in messages."""

from __future__ import annotations

import pytest

from congenial.wording import (
    escaped,
    joined,
    many,
    nearest,
    on_a_line,
    one_of,
    reason_of,
    show,
)


def test_values_are_short_and_on_one_line():
    assert [show(value) for value in (True, 1.5, "a\nb")] == ["true", "1.5", r"'a\nb'"]
    assert len(show("9" * 500)) == 60
    assert [on_a_line(name) for name in ("a b", "a\nb", " ")] == ["a b", r"'a\nb'", "' '"]


def test_the_reason_of_an_error_is_short_and_keeps_its_end():
    assert reason_of(ValueError("Expected `int` - at `$.a`")) == "Expected 'int' - at '$.a'"
    long = reason_of(ValueError(f"Invalid enum value {'x' * 100_000} - at `$.published[0]`"))
    assert len(long) < 500
    assert long.startswith("Invalid enum value x")
    assert long.endswith("- at '$.published[0]'")


@pytest.mark.parametrize(
    ("words", "told"), [([], ""), (["a"], "a"), (["a", "b"], "a and b"), ("abc", "a, b and c")]
)
def test_lists(words, told):
    assert joined(words) == told
    assert one_of(words) == told.replace("and", "or").translate({ord(c): f"'{c}'" for c in words})


def test_the_nearest_name_is_suggested_and_no_other():
    assert nearest("Privasy", ("data", "privacy")) == " (did you mean 'privacy'?)"
    assert nearest("speed", ("data", "privacy")) == ""


def test_numbers_with_nouns():
    assert [many(1, "row"), many(2000, "row")] == ["1 row", "2,000 rows"]


def test_bytes_that_are_not_text_are_escaped():
    assert escaped("a\udc80") == r"a\udc80"
