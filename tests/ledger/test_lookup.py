"""Looking up a debit: none, another amount, an unfinished entry, a spent entry."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from congenial.ledger.debits import settle
from congenial.ledger.lookup import beside, look_up
from support.ledgers import debit, execute, make_ledger


def later(hours):
    return (datetime.now(UTC) + timedelta(hours=hours)).isoformat()


def test_a_debit_is_found_with_its_amount_and_state(tmp_path):
    path = make_ledger(tmp_path)
    made = debit(path, 1.5, 1e-9)
    told = {
        "epsilon": made.cost.epsilon_text,
        "delta": made.cost.delta_text,
        "neighbours": "substitute",
        "made": later(0),
    }
    passed, before = look_up(path, made.entry, **told)
    assert passed
    settle(path, made.entry)
    passed, after = look_up(path, made.entry, **told)
    assert passed
    assert before != after
    assert after.endswith("lists the entry as spent")
    assert look_up(path, "nosuch", **told) == (False, f"the ledger {path.name} has no entry nosuch")
    passed, text = look_up(path, made.entry, **(told | {"epsilon": "1.4"}))
    assert not passed
    assert "epsilon 1.5" in text
    assert not look_up(path, made.entry, **(told | {"neighbours": "add-remove"}))[0]
    assert not look_up(path, made.entry, **(told | {"made": later(-9)}))[0]
    execute(path, "UPDATE entries SET epsilon = 1")
    assert not look_up(path, made.entry, **told)[0]


def test_nothing_is_looked_up_where_there_is_no_ledger():
    passed, text = look_up(
        None, "entry", epsilon="1", delta="0", neighbours="substitute", made=later(0)
    )
    assert passed
    assert "not looked up" in text


def test_a_ledger_is_looked_up_only_beside_the_release(tmp_path):
    path = make_ledger(tmp_path)
    release = tmp_path / "release"
    assert beside(release, "ledger") == path
    for name in (None, str(path), "../ledger", "other"):
        assert beside(release, name) is None
