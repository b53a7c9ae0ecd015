"""Whole numbers on the command line, however they are written."""

from __future__ import annotations

import click
import pytest

from congenial.cli.arguments import WholeNumber


@pytest.mark.parametrize(
    ("text", "number"),
    [("1e6", 1_000_000), ("1_000_000", 1_000_000), ("2.5e3", 2_500), ("7", 7), ("7.0", 7)],
)
def test_a_whole_number_may_have_an_exponent(text, number):
    assert WholeNumber(min=1).convert(text, None, None) == number


@pytest.mark.parametrize("text", ["1.5", "ten", "1e-3", "nan", "inf", ""])
def test_any_other_number_is_refused_with_an_example(text):
    with pytest.raises(click.BadParameter, match="is not a whole number; give one such as 12"):
        WholeNumber(min=1).convert(text, None, None)


@pytest.mark.parametrize("text", ["1e999999999", "9" * 40, "-1e30"])
def test_a_number_with_too_many_digits_is_refused(text):
    with pytest.raises(click.BadParameter, match="more than 30 digits; give a smaller number"):
        WholeNumber(min=1).convert(text, None, None)


def test_the_range_is_checked():
    with pytest.raises(click.BadParameter, match="not in the range"):
        WholeNumber(min=2).convert("1e0", None, None)
