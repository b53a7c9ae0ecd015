"""Answers to questions: what is understood, and what is refused in a sentence."""

from __future__ import annotations

import click
import pytest

from congenial.cli.asking import (
    column,
    columns,
    listed,
    number,
    split,
    yes_or_no,
)

KNOWN = ("zone", "hour, of day", "age")


def test_columns_are_known_by_name_or_number():
    assert column(KNOWN)("age") == column(KNOWN)("3") == "age"
    assert columns(KNOWN)("1, age") == ("zone", "age")
    assert columns(KNOWN)(listed(KNOWN)) == KNOWN
    for wrong in ("4", "0", "nosuch", ""):
        with pytest.raises(click.UsageError):
            column(KNOWN)(wrong)


@pytest.mark.parametrize("names", [("a",), ("a", "b c"), ("a, b", "c"), ('say "a"', "b")])
def test_listed_names_are_split_again(names):
    assert split(listed(names)) == names


def test_numbers_and_words():
    assert number(0.5, 2.0)("1.5") == 1.5
    assert (yes_or_no("y"), yes_or_no("no")) == (True, False)
    for understand, wrong in (
        (number(0.5, 2.0), "3"),
        (number(0.5, 2.0), "x"),
        (number(0.5, 2.0), "nan"),
        (yes_or_no, "maybe"),
    ):
        with pytest.raises(click.UsageError):
            understand(wrong)
