"""Answers to questions: what is understood, and what is refused in a sentence."""

from __future__ import annotations

import click
import pytest

from congenial.cli.asking import column, columns, listed, split

KNOWN = ("zone", "hour, of day", "age")


def test_columns_are_known_by_name_or_number():
    assert column("age", KNOWN) == column("3", KNOWN) == "age"
    assert column("hour, of day", KNOWN) == "hour, of day"
    assert columns("1, age", KNOWN) == ("zone", "age")
    assert columns(listed(KNOWN), KNOWN) == KNOWN
    for wrong in ("4", "0", "nosuch", ""):
        with pytest.raises(click.UsageError):
            column(wrong, KNOWN)


@pytest.mark.parametrize("names", [("a",), ("a", "b c"), ("a, b", "c"), ('say "a"', "b")])
def test_listed_names_are_split_again(names):
    assert split(listed(names)) == names
