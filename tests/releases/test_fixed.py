"""What releases hold fixed decides which sums of their costs hold."""

from __future__ import annotations

import pytest

from congenial.ledger.debits import read_ledger, settle
from congenial.ledger.records import Dataset, as_text
from support.ledgers import debit, make_ledger

OTHER = Dataset(None, "path:/adults.csv", "adults.csv")


@pytest.fixture
def path(tmp_path):
    """Return a ledger of two datasets, some of whose entries are finished."""
    made = make_ledger(tmp_path)
    for at in range(4):
        entry = debit(made, 0.25, dataset=OTHER if at == 2 else Dataset("name:a", "path:/a", "a"))
        if at % 2:
            settle(made, entry.entry)
    return made


@pytest.mark.parametrize(
    ("fixes", "adds_up"),
    [
        (["", ""], True),
        (["a", "", "a"], True),
        (["a", "b"], False),
        (["", "a", "", "b"], False),
        ([None], True),
        ([None, ""], False),
    ],
)
def test_sums_hold_where_one_release_fixes_all_that_the_others_do(tmp_path, fixes, adds_up):
    path = make_ledger(tmp_path)
    made = [debit(path, 0.25, fixes=one) for one in fixes]
    assert made[-1].adds_up == adds_up
    ledger = read_ledger(path)
    assert ledger.accounts[0].adds_up == adds_up
    assert ("may promise nothing" in as_text(ledger)) != adds_up
