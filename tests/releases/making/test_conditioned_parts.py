"""Conditioned releases that are drawn in parts: the draw, the claims, and what is refused."""

from __future__ import annotations

import re

import numpy as np
import pytest

import congenial as cg
from congenial.accounting.amounts import amount_of
from congenial.conditioning.parted import condition_by_parts
from congenial.errors import CongenialError, NumericalError, PlanError
from congenial.ledger.debits import read_ledger
from congenial.ledger.ledger_file import init_ledger
from congenial.releases.making import conditioned_parts, part_files
from congenial.releases.sentences import about_intervals
from congenial.verification.verdict import verify
from support.city import make_city
from support.part_worlds import make_world
from support.parts import keys_of, make, refused, stated_in, table_of

CITY = {"method": 'name = "conditioning"'}
LEDGER = 'neighbours = "substitute"\nepsilon = 1.0\nledger = "budget.ledger"'
# of nodes from the rows, an exact one may have few parts; a path may look like a longer one
LESS = "has a single child|/.* no path|no count that changes alone"


def claims_in(place):
    """Return what a certificate states, but for the intervals and the names of neighbours."""
    found = stated_in(place)
    accuracy = found.pop("accuracy")
    worst = found["guarantee"]["worst_neighbours"]
    names = [worst.pop(name) for name in ("origin", "destination", "node") if name in worst]
    return found, [level["margin"] for level in accuracy["levels"]], names


@pytest.mark.parametrize("narrow", [False, True])
@pytest.mark.parametrize("seed", range(16))
def test_random_releases_have_the_claims_of_those_at_once_and_the_draws_of_the_library(
    seed, narrow, tmp_path
):
    rng = np.random.default_rng([seed, 2029])
    level = make_world(tmp_path, rng, narrow=narrow, method="conditioning")
    problems = [refused(tmp_path, "whole", seed), refused(tmp_path, "parts", seed, parts=level)]
    if any(problems):
        assert problems[0] == problems[1] or re.search(LESS, problems[1])
        return
    assert keys_of(tmp_path / "parts") == keys_of(tmp_path / "whole")
    (claims, margins, names), (expected, known, _) = (
        claims_in(tmp_path / name) for name in ("parts", "whole")
    )
    assert claims == expected and margins == known and set(names) == {None}
    assert [check for check in verify(tmp_path / "parts") if not check.passed] == []
    model = cg.read_release(tmp_path / "whole").model
    if (model.determined & ~model.resolved.pinned).any():
        return  # where a count follows from exact ones, the library's windows may be others
    truth, values = (
        np.array([int(row[name]) for row in table_of(tmp_path / "parts")])
        for name in ("truth", "value")
    )
    depth = model.plan.place_names.index(level)
    parted = condition_by_parts(model.mechanism, model.invariant, depth)
    assert np.array_equal(values, parted.sample(truth, rng=cg.seeded(seed)))


def test_parts_without_a_count_that_changes_alone_are_refused_if_that_changes_the_loss(tmp_path):
    # below an exact count, two counts change together, and bounds cost them less
    exact = {
        "privacy": 'neighbours = "substitute"\nepsilon = 1.0',
        "invariants": 'nonnegative = true\npublish_exactly = ["root", "borough"]',
    }
    zones = {zone: f"b{zone // 2}" for zone in range(8)}
    make_city(tmp_path, **CITY, **exact, zones=zones, trips=dict.fromkeys(zones, 3))
    with pytest.raises(PlanError, match="below 4 of whose nodes some level has no count"):
        make(tmp_path, parts="borough")
    # one borough of three zones has the largest loss, so that the others are of no importance
    make_city(tmp_path, **CITY, **exact, zones=zones | {8: "b3"}, trips=dict.fromkeys(zones, 3))
    for name, level in (("parts", "borough"), ("whole", None)):
        make(tmp_path, name, parts=level, simulate=1)
    assert claims_in(tmp_path / "parts")[0] == claims_in(tmp_path / "whole")[0]


def test_a_release_says_that_it_has_no_intervals_and_why(tmp_path):
    make_city(tmp_path, **CITY)
    make(tmp_path, parts="borough")
    accuracy = stated_in(tmp_path / "out")["accuracy"]
    assert accuracy["basis"] == {"kind": "none", "obstacles": ["drawn-in-parts"]}
    release = cg.read_release(tmp_path / "out")
    text = about_intervals(release.certificate.accuracy.basis, 0.9)
    assert "the table was drawn in parts, and intervals need all of it" in text
    # who has all of it can work them out
    low, high = release.interval_of_sum(["Arden"])
    assert low <= release.value("Arden") <= high


@pytest.fixture
def owing(tmp_path):
    make_city(tmp_path, **CITY, privacy=LEDGER)
    init_ledger(tmp_path / "budget.ledger", budget=amount_of(3.0, 0.1), neighbours="substitute")
    return tmp_path


def states(place):
    accounts = read_ledger(place / "budget.ledger").accounts
    return [debit.state for account in accounts for debit in account.entries]


def test_messages_that_hold_too_little_are_refused_after_the_debit(owing, monkeypatch):
    def failing(*_):
        raise NumericalError("no windows hold nearly all noise; use less noise.")

    monkeypatch.setattr(conditioned_parts, "message_of", failing)
    with pytest.raises(NumericalError, match="no windows"):
        make(owing, parts="borough")
    assert states(owing) == ["reserved"]
    assert not (owing / "out").exists()


def test_a_draw_that_a_part_refuses_is_made_anew_for_one_debit(owing, monkeypatch):
    attempt, asked = conditioned_parts.attempt_part, []

    def refusing(part, sent, outside, roots, rng):
        asked.append(int(roots[0]))
        accepted, values = attempt(part, sent, outside, roots, rng)
        # the second part refuses twice
        return (accepted & False, values[:0]) if len(asked) in {2, 4} else (accepted, values)

    monkeypatch.setattr(conditioned_parts, "attempt_part", refusing)
    make(owing, parts="borough")
    assert len(asked) == 4 + 3
    assert len({*asked[:2], *asked[2:4], *asked[4:6]}) > 2  # the top was drawn anew, too
    assert states(owing) == ["spent"]
    assert [check for check in verify(owing / "out") if not check.passed] == []


def test_counts_that_change_between_a_message_and_its_draw_are_refused(owing, monkeypatch):
    monkeypatch.setattr(part_files, "_TOGETHER", 0)  # each part reads the rows anew

    def change(step):
        # the same total, of other counts
        if step.startswith("part 2"):
            rows = (owing / "rows.csv").read_text()
            (owing / "rows.csv").write_text(re.sub("(?m),4$", ",5", rows))

    with pytest.raises(CongenialError, match="changed between its message and its draw") as caught:
        make(owing, parts="borough", notify=change)
    assert not re.search("[0-9]", str(caught.value))
    assert states(owing) == ["reserved"]
    assert not (owing / "out").exists()


def test_messages_that_do_not_fit_are_asked_for_again(tmp_path):
    # no trips: the noise is pressed against its bounds, which a part by itself does not see
    zones = {zone: f"b{zone // 50}" for zone in range(200)}
    make_city(tmp_path, **CITY, zones=zones, trips={0: 1})
    steps = []
    make(tmp_path, parts="borough", simulate=1, notify=steps.append)
    asked = steps.count("preparing part 1 of 4")
    assert asked > 1
    assert steps.count("part 1 of 4") == 1
    assert [check for check in verify(tmp_path / "out") if not check.passed] == []
