"""Checks of the numbers of pieces, and their sums."""

from __future__ import annotations

from congenial.verification.pieces import Faults, Plain


def test_the_first_fault_of_several_pieces_is_named():
    none, late, early = Faults(), Faults(2, 9, "r/b"), Faults(1, 4, "r/a")
    assert none + none == none
    assert none + late == late + none == late
    assert late + early == early + late == Faults(3, 4, "r/a")


def test_what_pieces_show_adds_up():
    none, bad = Faults(), Faults(1, 4, "r/a")
    one = Plain(3, 1, 2, bad, none, none, none)
    other = Plain(4, 0, 1, bad, bad, none, none, "no such node")
    both = one + other
    assert both == Plain(7, 1, 3, Faults(2, 4, "r/a"), bad, none, none, "no such node")
