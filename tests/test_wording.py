"""Values, choices and numbers in messages, and tables of them in notebooks."""

from __future__ import annotations

import numpy as np
import pytest

from congenial.exhibits.exhibit import Exhibit
from congenial.wording import (
    MOST_ROWS,
    cell_text,
    escaped,
    html_facts,
    html_table,
    joined,
    left_out,
    many,
    nearest,
    on_a_line,
    one_of,
    reason_of,
    rounded_up,
    show,
)
from support.notebook import HOSTILE, parsed, texts


def test_values_are_short_and_on_one_line():
    assert [show(value) for value in (True, 1.5, "a\nb")] == ["true", "1.5", r"'a\nb'"]
    assert len(show("9" * 500)) == 60
    assert [on_a_line(name) for name in ("a b", "a\nb", " ")] == ["a b", r"'a\nb'", "' '"]


def test_bounds_are_never_shown_as_less_than_they_are():
    assert [rounded_up(b, 2) for b in (0.0, 1e-7, 1.21e-7, 0.3, 10.0)] == [
        "0",
        "1e-07",
        "1.3e-07",
        "0.3",
        "10",
    ]
    assert rounded_up(1.0 + 2.0**-52, 6) == "1"
    assert rounded_up(float("inf"), 3) == "inf"
    source = np.random.default_rng(1)
    for digits in (2, 3, 6):
        for bound in (10.0 ** source.uniform(-12.0, 12.0, 2000)).tolist():
            shown = float(rounded_up(bound, digits))
            assert bound * (1.0 - 2e-12) <= shown <= bound * (1.0 + 10.0 ** (1 - digits))


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
    assert nearest("INT", ("BIGINT", "INTEGER")) == " (did you mean 'INTEGER'?)"
    assert nearest("BIGIN", ("INTEGER", "BIGINT")) == " (did you mean 'BIGINT'?)"
    known = ("place: income", "place: income by race", "place: sex by race")
    assert nearest("place: race by income", known) == " (did you mean 'place: income by race'?)"


def test_numbers_with_nouns():
    assert [many(1, "row"), many(2000, "row")] == ["1 row", "2,000 rows"]
    assert [many(n, "query", "queries") for n in (1, 2)] == ["1 query", "2 queries"]


def test_bytes_that_are_not_text_are_escaped():
    assert escaped("a\udc80") == r"a\udc80"


def test_every_text_is_escaped():
    for html in (
        html_table(HOSTILE, [HOSTILE], [[HOSTILE]], 1, [HOSTILE]),
        html_facts(HOSTILE, {HOSTILE: HOSTILE}, [HOSTILE]),
    ):
        assert "<script" not in html
        assert texts(html) == [HOSTILE] * 4


def test_a_long_table_shows_its_first_rows_and_says_so():
    html = html_table("t", ["n"], ((k,) for k in range(1_000)), 1_000)
    assert len(parsed(html).findall(".//tbody/tr")) == MOST_ROWS
    assert texts(html)[-1] == "The first 20 of 1,000 rows."
    assert left_out(20, 20) == ()
    table = Exhibit("t", "Many", ("n",), tuple((k,) for k in range(30)))
    assert repr(table).splitlines()[-1] == "The first 20 of 30 rows."


@pytest.mark.parametrize(
    ("value", "text"),
    [(1234567, "1,234,567"), (0.123456, "0.1235"), (None, ""), (True, "True"), ("a", "a")],
)
def test_cells_are_written_for_people(value, text):
    assert cell_text(value) == text
