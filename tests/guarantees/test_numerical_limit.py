"""One limit on the numerical error of a draw: in `explain`, before the debit, and in `verify`."""

from __future__ import annotations

import pytest

import congenial.releases.model
from congenial.errors import PrivacyError
from congenial.ledger.debits import read_ledger
from congenial.plan.plan import read_plan
from congenial.preview.explanation import explain
from congenial.releases.making.make_release import release
from congenial.verification.verdict import verify
from support.city import make_city
from support.ledgers import make_ledger

# At an epsilon of 1e-4 and a delta of 1e-5, Gaussian noise at each of so many counts is too wide
# for tables of exact integers, and its numerical error is 1e-7.
LIMIT = 5e-8
ZONES = {zone: f"b{zone % 7}" for zone in range(1, 401)}


def plan_for(place, epsilon, method):
    if not (place / "ledger").exists():
        make_ledger(place, delta="0.5")
    privacy = (
        f'neighbours = "substitute"\nepsilon = {epsilon}\nledger = "ledger"\n'
        'noise = "discrete-gaussian"\ndelta = 1e-5'
    )
    path = make_city(
        place, zones=ZONES, trips={1: 4, 9: 7}, privacy=privacy, method=f'name = "{method}"'
    )
    return read_plan(path)


def debits(place):
    return [
        entry for account in read_ledger(place / "ledger").accounts for entry in account.entries
    ]


@pytest.mark.parametrize("method", ["imaging", "topdown"])
def test_plans_that_verify_would_refuse_are_neither_debited_nor_drawn(
    tmp_path, method, monkeypatch
):
    monkeypatch.setattr(congenial.releases.model, "ERROR_LIMIT", LIMIT)
    plan = plan_for(tmp_path, 1e-4, method)
    with pytest.raises(PrivacyError, match=r"the limit is 5e-08, .*; ask for a larger epsilon"):
        explain(plan, tmp_path)
    with pytest.raises(PrivacyError, match="the limit is 5e-08"):
        release(plan, tmp_path / "out", base=tmp_path)
    assert not (tmp_path / "out").exists() and debits(tmp_path) == []

    narrower = plan_for(tmp_path, 1e-3, method)
    explain(narrower, tmp_path)
    release(narrower, tmp_path / "narrower", base=tmp_path)
    assert len(debits(tmp_path)) == 1
    assert all(check.passed for check in verify(tmp_path / "narrower"))

    # made beyond the limit, by a congenial without it
    with monkeypatch.context() as patch:
        patch.setattr(congenial.releases.model, "ERROR_LIMIT", 1.0)
        release(plan, tmp_path / "beyond", base=tmp_path)
        assert all(check.passed for check in verify(tmp_path / "beyond"))
    (failed,) = [check for check in verify(tmp_path / "beyond") if check.name == "guarantee"]
    assert not failed.passed and "the limit is 5e-08" in failed.text
