"""The dataset whose budget is spent, and the sums of its entries."""

from __future__ import annotations

from dataclasses import replace

import congenial as cg
from congenial.accounting.amounts import Amount
from congenial.ledger.records import (
    RESERVED,
    SPENT,
    Account,
    Entry,
    Ledger,
    as_text,
    dataset_of,
)
from support.city import SECTIONS, make_city, plan_text

ONE = Entry("aa", "out", "2026-01-02T00:00:00Z", Amount(10**12, 5), SPENT, "x")
TWO = replace(ONE, entry="bb", made="2026-01-03T00:00:00Z", state=RESERVED, fixes="")


def account(*entries):
    return Account("print", "trips", entries)


def test_rows_are_identified_by_their_name_or_their_real_path(tmp_path):
    plan = cg.read_plan(make_city(tmp_path))
    (tmp_path / "Link").symlink_to(tmp_path)
    here, there = dataset_of(plan, tmp_path), dataset_of(plan, tmp_path / "Link")
    assert here.identity == there.identity
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    assert dataset_of(plan, elsewhere).identity != here.identity
    named = cg.parse_plan(plan_text(data=f"{SECTIONS['data']}\nname = 'trips'\n"))
    assert (
        dataset_of(named, elsewhere).identity
        == dataset_of(named, tmp_path).identity
        != here.identity
    )


def test_entries_add_up_by_state():
    both = account(ONE, TWO)
    assert both.total() == Amount(2 * 10**12, 10)
    assert both.total(SPENT) == both.total(RESERVED) == ONE.cost


def test_entries_share_neighbours_if_one_fixes_everything_that_others_fix():
    other = replace(TWO, fixes="y")
    unknown = replace(TWO, fixes=None)
    assert account(ONE, TWO).adds_up
    assert account(ONE, replace(TWO, fixes="x")).adds_up
    assert not account(ONE, other).adds_up
    assert not account(ONE, unknown).adds_up


def test_a_clock_that_went_back_is_reported():
    assert not account(ONE, TWO).clock_jumped
    assert account(TWO, ONE).clock_jumped


def test_the_text_names_every_entry_and_the_remaining_budget():
    text = as_text(Ledger(Amount(3 * 10**12, 10**12), "substitute", (account(ONE, TWO),)))
    assert "trips" in text
    assert all(entry in text for entry in ("aa", "bb"))
    assert "remaining  epsilon 1 and" in text  # of 3, two are gone
    assert "clock went back" not in text
