"""The ledger: exact sums, debits that never exceed a budget, one budget for the same rows."""

from __future__ import annotations

import math
import sqlite3
import subprocess
import sys
from contextlib import closing
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from congenial.accounting.amounts import (
    NOTHING,
    Amount,
    amount_of,
    budget,
)
from congenial.errors import ArgumentError, BudgetError, LedgerError
from congenial.ledger.debits import read_ledger, reserve, settle
from congenial.ledger.ledger_file import init_ledger
from congenial.ledger.records import (
    RESERVED,
    SPENT,
    Dataset,
    as_text,
    dataset_of,
)
from congenial.plan.plan import parse_plan
from support.city import SECTIONS, plan_text
from support.ledgers import ROWS, debit, make_ledger
from support.rows import refusal

EPSILONS = st.floats(min_value=1e-6, max_value=16.0)
DELTAS = st.floats(min_value=0.0, max_value=1e-3)


def spent_of(path, dataset=0):
    return read_ledger(path).accounts[dataset].total()


# Amounts


@given(EPSILONS, DELTAS)
def test_an_amount_implies_its_guarantee(epsilon, delta):
    cost = amount_of(epsilon, delta)
    charged = Fraction(cost.epsilon, 10**12), Fraction(cost.delta, 10**18)
    assert charged[1] >= Fraction(delta)
    left = Fraction(epsilon) - charged[0]
    assert abs(left) <= Fraction(1, 2 * 10**12)
    # what was rounded off epsilon is paid by delta: e^a (e^(e - a) - 1), a convex function's chord
    if left > 0:
        lower = Fraction(math.exp(epsilon)) * (1 - Fraction(1, 10**11)) * left
        assert charged[1] - Fraction(delta) >= lower * (1 - left)
    # and no more than that and a unit
    most = Fraction(math.exp(epsilon)) * max(left, 0) * (1 + Fraction(1, 10**11))
    assert charged[1] - Fraction(delta) <= most + Fraction(1, 10**18)


@pytest.mark.parametrize("epsilon", [0.1, 0.3, 0.7, 1.1, 2.2])
def test_ten_decimal_epsilons_add_up_to_what_people_expect(epsilon):
    total = sum((amount_of(epsilon, 1e-9) for _ in range(10)), NOTHING)
    assert Decimal(total.epsilon_text) == 10 * Decimal(repr(epsilon))
    assert budget(str(10 * Decimal(repr(epsilon))), "1e-6").covers(total)


def test_an_excess_over_a_decimal_is_charged_to_delta():
    above = math.nextafter(1.0, 2.0)
    assert amount_of(above, 0.0) == Amount(10**12, 604)
    assert (above - 1.0) * math.e * 1e18 == pytest.approx(603.6, abs=0.1)
    assert amount_of(math.nextafter(1.0, 0.0), 0.0) == Amount(10**12, 0)


def test_delta_is_rounded_up_and_a_budget_down():
    assert amount_of(1.0, 1.5e-18).delta == 2
    assert budget("1.9999999999999", "1.9e-18") == Amount(1_999_999_999_999, 1)
    assert str(budget("1e1", "1e-6")) == "epsilon 10 and delta 1e-6"
    assert str(Amount(10**6, 0)) == "epsilon 1e-6 and delta 0"


@pytest.mark.parametrize(
    ("epsilon", "delta"),
    [
        *((e, "1e-6") for e in ("0", "-1", "nan", "inf", "1e7", "1e999999999", "1e-13", "", "one")),
        *(("1", d) for d in ("1", "-1e-9", "nan", "2", "1e-19", "1e-999999999", "tiny")),
    ],
)
def test_an_invalid_budget_is_refused(epsilon, delta):
    told = refusal(lambda: budget(epsilon, delta), ArgumentError)
    assert repr(epsilon) in told or repr(delta) in told


@pytest.mark.parametrize("value", [-1.0, math.nan, math.inf])
def test_a_claim_without_a_cost_is_refused(value):
    refusal(lambda: amount_of(value, 0.0), ArgumentError)
    refusal(lambda: amount_of(1.0, value), ArgumentError)


def test_an_epsilon_beyond_exp_is_rounded_up():
    assert amount_of(800.0000000000001, 0.0).epsilon >= Fraction(800.0000000000001) * 10**12


def bit(epsilon, delta, truth):
    """Law of a bit that is told by chance: (epsilon, delta)-private, and no better."""
    # with probability delta the truth is told and marked as such
    right = (1.0 - delta) / (1.0 + math.exp(-epsilon))
    law = {truth: right, 1 - truth: 1.0 - delta - right}
    return law | {f"surely {truth}": delta}


def transcripts(truth, left, seen=()):
    """Law of all releases together, where each outcome decides how much the next one spends."""
    law = {}
    for outcome, p in bit(left[0] if len(seen) == 2 else spend(seen), left[1] / 2, truth).items():
        rest = left[0] - spend(seen), left[1] / 2
        if len(seen) == 2:
            law[*seen, outcome] = p
            continue
        for path, q in transcripts(truth, rest, (*seen, outcome)).items():
            law[path] = law.get(path, 0.0) + p * q
    return law


def spend(seen):
    return 0.2 + 0.3 * seen.count(1) + 0.1 * len(seen)


def loss(one, other, epsilon):
    """Smallest delta at which two laws are (epsilon, delta)-close."""
    paths = one.keys() | other.keys()
    return math.fsum(
        max(0.0, one.get(y, 0.0) - math.exp(epsilon) * other.get(y, 0.0)) for y in paths
    )


def test_an_adaptive_sequence_keeps_its_budget():
    epsilon, delta = 1.5, 0.02
    laws = [transcripts(truth, (epsilon, delta)) for truth in (0, 1)]
    assert all(math.isclose(math.fsum(law.values()), 1.0) for law in laws)
    for one, other in (laws, laws[::-1]):
        assert loss(one, other, epsilon) <= delta
        # the bound on epsilon is attained, so a check of less would fail
        common = one.keys() & other.keys()
        most = max(math.log(one[y] / other[y]) for y in common)
        assert most == pytest.approx(epsilon)
        assert loss(one, other, 0.9 * epsilon) > loss(one, other, epsilon) + 1e-3


# Debits


def test_debits_add_up_and_are_never_given_back(tmp_path):
    path = make_ledger(tmp_path)
    one, two = debit(path, release="one"), debit(path, 0.5, release="two")
    assert one.first
    assert not two.first
    assert two.remaining == budget("1.5", "1e-6") - Amount(0, 2 * amount_of(1.0, 1e-9).delta)
    settle(path, one.entry)
    [account] = read_ledger(path).accounts
    assert [(e.release, e.state) for e in account.entries] == [("one", SPENT), ("two", RESERVED)]
    assert account.total(SPENT) == one.cost
    assert account.total(RESERVED) == two.cost
    refusal(lambda: settle(path, one.entry), LedgerError)
    refusal(lambda: settle(path, "stranger"), LedgerError)
    assert read_ledger(path).accounts == (account,)


@pytest.mark.parametrize(
    ("cost", "missing"),
    [
        (budget("1.75", "1e-9"), "epsilon 0.75 and delta 0"),
        (budget("1", "2e-6"), "epsilon 0 and delta 0.000001001"),
        (budget("5", "1e-3"), "epsilon 4 and delta 0.000999001"),
    ],
)
def test_over_budget_is_refused_with_the_numbers(tmp_path, cost, missing):
    path = make_ledger(tmp_path)
    reserve(path, ROWS, release="out", cost=budget("2", "1e-9"), neighbours="substitute")
    before = read_ledger(path)
    told = refusal(
        lambda: reserve(path, ROWS, release="out", cost=cost, neighbours="substitute"), BudgetError
    )
    assert f"requested {cost}, remaining epsilon 1 and delta 9.99e-7, missing epsilon" in told
    words = told.split("missing ")[1].split(";")[0].split()
    assert [Decimal(words[i]) for i in (1, 4)] == [Decimal(missing.split()[i]) for i in (1, 4)]
    assert read_ledger(path) == before


def test_the_last_unit_decides(tmp_path):
    path = make_ledger(tmp_path, epsilon="1", delta="0.000000001")
    whole = budget("1", "0.000000001")
    for more in (Amount(1, 0), Amount(0, 1)):
        with pytest.raises(BudgetError):
            reserve(path, ROWS, release="out", cost=whole + more, neighbours="substitute")
    # a refused release leaves no account behind
    assert read_ledger(path).accounts == ()
    made = reserve(path, ROWS, release="out", cost=whole, neighbours="substitute")
    assert made.remaining == NOTHING
    with pytest.raises(BudgetError):
        reserve(path, ROWS, release="out", cost=Amount(0, 1), neighbours="substitute")


def test_each_dataset_has_a_budget_of_its_own(tmp_path):
    path = make_ledger(tmp_path, epsilon="1", delta="1e-8")
    debit(path)
    other = Dataset("name:other", "path:/trips.csv", "trips")
    assert debit(path, dataset=other).first
    assert spent_of(path, 0) == spent_of(path, 1)
    first, second = read_ledger(path).accounts
    assert first.fingerprint != second.fingerprint


DEBITS = st.lists(
    st.tuples(
        st.integers(0, 1),
        st.floats(1e-6, 2.0),
        st.floats(0.0, 1e-6),
        st.sampled_from(("leave", "settle", "kill")),
    ),
    max_size=12,
)


@settings(max_examples=25)
@given(DEBITS, st.integers(1, 3 * 10**12), st.integers(0, 2 * 10**12))
def test_no_order_of_debits_exceeds_a_budget(tmp_path_factory, debits, epsilon, delta):
    path = tmp_path_factory.mktemp("ledger") / "ledger"
    total = Amount(epsilon, delta)
    init_ledger(path, budget=total, neighbours="substitute")
    model = [NOTHING, NOTHING]
    seen: list[int] = []
    for which, e, d, then in debits:
        cost = amount_of(e, d)
        dataset = Dataset(f"name:{which}", "path:/rows", "rows")
        if total.covers(model[which] + cost):
            made = reserve(path, dataset, release="out", cost=cost, neighbours="substitute")
            model[which] += cost
            assert made.remaining == total - model[which]
            seen += [which] if which not in seen else []
            if then == "settle":
                settle(path, made.entry)
        else:
            with pytest.raises(BudgetError):
                reserve(path, dataset, release="out", cost=cost, neighbours="substitute")
        accounts = read_ledger(path).accounts
        assert [a.total() for a in accounts] == [model[i] for i in seen]
        assert all(total.covers(a.total()) for a in accounts)


RACER = """
import sys
from congenial.accounting.amounts import amount_of
from congenial.errors import BudgetError
from congenial.ledger.debits import reserve, settle
from congenial.ledger.records import Dataset
path, done = sys.argv[1], 0
print("ready", flush=True)
sys.stdin.readline()
for i in range(10):
    try:
        made = reserve(path, Dataset("name:trips", "path:/trips.csv", "trips"), release=f"r{i}",
                       cost=amount_of(0.1, 0.0), neighbours="substitute")
    except BudgetError:
        continue
    settle(path, made.entry)
    done += 1
print(done)
"""


def test_processes_at_once_cannot_overspend(tmp_path):
    path = make_ledger(tmp_path, epsilon="2.05", delta="1e-9")
    racers = [
        subprocess.Popen(
            [sys.executable, "-c", RACER, str(path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(4)
    ]
    for racer in racers:
        assert racer.stdout.readline() == "ready\n"
    for racer in racers:
        racer.stdin.write("go\n")
        racer.stdin.flush()
    # forty releases of a tenth each are asked of a budget for twenty
    assert sum(int(racer.communicate(timeout=60)[0]) for racer in racers) == 20
    assert all(racer.returncode == 0 for racer in racers)
    [account] = read_ledger(path).accounts
    assert len({e.entry for e in account.entries}) == 20
    assert account.total(SPENT).epsilon == 2 * 10**12


# Whose budget


def identity(base, data=SECTIONS["data"], **sections):
    return dataset_of(parse_plan(plan_text(data=data, **sections)), base).identity


def test_row_filters_hierarchies_and_spellings_share_a_budget(tmp_path):
    (tmp_path / "deep").mkdir()
    (tmp_path / "rows.csv").write_text("zone\n1\n")
    (tmp_path / "alias.csv").symlink_to("rows.csv")
    lookup = 'lookup = { source = "zones.csv", key = "zone_id", on = "zone" }\n'
    same = {
        identity(tmp_path),
        identity(tmp_path, f'source = "rows.csv"\nwhere = "hour < 5"\n{lookup}'),
        identity(tmp_path, f'source = "./deep/../rows.csv"\n{lookup}'),
        identity(tmp_path / "deep", f'source = "../rows.csv"\n{lookup}'),
        identity(tmp_path, f'source = "{tmp_path}/rows.csv"\n{lookup}'),
        identity(tmp_path, f'source = "alias.csv"\n{lookup}'),
        identity(tmp_path, f'source = "Rows.CSV"\n{lookup}'),
        identity(
            tmp_path,
            'source = "rows.csv"',
            hierarchy='root = "all"\nlevels = ["zone"]\ndomain = "other.csv"',
            privacy='neighbours = "substitute"\nepsilon = 2.0',
            invariants="",
        ),
    }
    assert len(same) == 1
    assert identity(tmp_path, f'source = "other.csv"\n{lookup}') not in same


def test_tables_of_one_database_share_a_budget_unless_named(tmp_path):
    hierarchy = 'root = "all"\nlevels = ["zone"]\ndomain = "zones.csv"'
    by = {
        (table, name): identity(
            tmp_path,
            f'source = "city.duckdb"\ntable = "{table}"\n{name}',
            hierarchy=hierarchy,
            privacy='neighbours = "substitute"\nepsilon = 1.0',
        )
        for table in ("trips", "main.trips", "adults")
        for name in ("", f'name = "{table[-5:]}"')
    }
    assert len({v for (_, name), v in by.items() if not name}) == 1
    assert by["trips", 'name = "trips"'] == by["main.trips", 'name = "trips"']
    assert by["trips", 'name = "trips"'] != by["adults", 'name = "dults"']


def test_a_name_keeps_its_budget_when_the_rows_move(tmp_path):
    named = 'source = "{}"\nname = "trips"\nlookup = { source = "z.csv", key = "a", on = "zone" }'
    (tmp_path / "new").mkdir()
    old = identity(tmp_path, named.replace("{}", "rows.csv"))
    assert old == identity(tmp_path / "new", named.replace("{}", "rows-*.parquet"))


def test_names_that_differ_in_case_are_one(tmp_path):
    one, other = (SECTIONS["data"] + f'name = "{name}"' for name in ("Trips ", "trips"))
    assert identity(tmp_path, one) == identity(tmp_path, other) == "name:trips"


def test_a_name_that_comes_later_brings_no_second_budget(tmp_path):
    path = make_ledger(tmp_path)
    bare = Dataset(None, "path:/a.csv", "a.csv")
    named = Dataset("name:a", "path:/a.csv", "a")
    moved = Dataset("name:a", "path:/b.csv", "a")
    assert debit(path, dataset=bare).first
    for later in (named, moved, bare):
        assert not debit(path, 0.5, dataset=later).first
    assert spent_of(path).epsilon == 25 * 10**11
    # the place that was reached by name alone asks for one
    told = refusal(lambda: debit(path, dataset=Dataset(None, "path:/b.csv", "b.csv")), LedgerError)
    assert "data.name is missing" in told
    assert len(read_ledger(path).accounts) == 1


def test_a_name_and_a_place_with_budgets_of_their_own_are_refused(tmp_path):
    path = make_ledger(tmp_path)
    debit(path, dataset=Dataset(None, "path:/a.csv", "a.csv"))
    debit(path, dataset=Dataset("name:b", "path:/b.csv", "b"))
    before = read_ledger(path)
    mixed = Dataset("name:b", "path:/a.csv", "b")
    assert "a budget under another name" in refusal(lambda: debit(path, dataset=mixed), LedgerError)
    assert read_ledger(path) == before


def test_named_tables_of_one_place_have_budgets_of_their_own(tmp_path):
    path = make_ledger(tmp_path)
    for name in ("adults", "trips"):
        assert debit(path, 3.0, dataset=Dataset(f"name:{name}", "path:/a.db", name)).first
    told = refusal(lambda: debit(path, dataset=Dataset(None, "path:/a.db", "a.db")), LedgerError)
    assert "data.name is missing" in told


def test_a_ledger_does_not_reveal_which_rows_it_is_for(tmp_path):
    dataset = Dataset(None, "path:/secret/place/rows.csv", "rows.csv")
    paths = [make_ledger(tmp_path, name=f"ledger{i}") for i in range(2)]
    for path in paths:
        debit(path, dataset=dataset)
        assert b"secret" not in path.read_bytes()
    one, two = (read_ledger(path).accounts[0].fingerprint for path in paths)
    assert one != two
    assert len({path.read_bytes() for path in paths}) == 2
    with closing(sqlite3.connect(paths[0])) as database:
        [[key]] = database.execute("SELECT key FROM ledger")
    text = as_text(read_ledger(paths[0]))
    assert key.hex() not in text
    assert one not in text
    assert one[:8] in text
