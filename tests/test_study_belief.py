"""The study of belief change: its tables say what the checks found."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from congenial.belief.checks import CLAIMS
from congenial.belief.gamma import pinned_total
from congenial.studies.belief import CELLS, EPSILONS, TOTALS, run
from congenial.studies.write import write


@pytest.fixture(scope="module")
def study():
    return run(4, 0.01)


@pytest.fixture(scope="module")
def tables(study):
    return {table.name: table for table in study.tables}


def test_every_claim_has_a_row(tables):
    table = tables["claims"]
    assert table.column("item") == tuple(claim.item for claim in CLAIMS)
    for claim, verdict, found in zip(
        CLAIMS, table.column("verdict"), table.column("counterexample"), strict=True
    ):
        assert verdict == ("holds" if claim.true else "fails")
        assert bool(found) == (verdict == "fails")


def test_the_marks_of_table_1_that_do_not_stand(tables):
    table = tables["table-1"]
    differ = {
        (row[0], row[1])
        for row in table.rows
        if row[table.columns.index("printed")] != row[table.columns.index("found")]
    }
    assert differ == {
        ("conditioning", "disjoint union: privacy"),
        ("imaging", "postprocessing: image after h"),
    }


def test_gamma_is_enumerated_for_small_tables(tables):
    table = tables["gamma"]
    assert len(table.rows) == len(EPSILONS) * len(CELLS) * len(TOTALS)
    row = dict(zip(table.columns, table.rows[table.column("epsilon").index(1.0)], strict=True))
    cost = pinned_total(Fraction(math.exp(-0.5)), cells=row["cells"], total=row["total"])
    assert row["loss"] == pytest.approx(math.log(cost.ratio))
    for row in table.rows:
        epsilon, _, _, loss, most, gamma, limit, _ = row
        assert epsilon - 1e-9 <= loss <= most
        assert (1 + gamma) * epsilon == pytest.approx(loss)
        assert (1 + limit) * epsilon == pytest.approx(most)


def test_examples(tables):
    assert [round(g, 12) for g in tables["examples"].column("gamma")] == [-1, 0, 0, 0]
    assert tables["box"].column("updated") == (0.0, 0.0, 0.3, 0.7)
    met = {row[0]: [cell == "met" for cell in row[1:]] for row in tables["postulates"].rows}
    assert met["revision"] == [True] * 5
    assert met["screened"] == [False, True, True, True, True]
    assert met["credibility-limited, P >= 1/2"] == [False, True, False, True, False]


def test_findings_are_those_of_the_tables_and_written(study, tables, tmp_path):
    fails = sum(verdict == "fails" for verdict in tables["claims"].column("verdict"))
    assert f"and {fails} were refuted" in study.findings[0]
    assert "the loss never exceeds" in study.findings[-1]
    pytest.importorskip("matplotlib")
    written = write(study, tmp_path, seed=4, effort=0.01)
    assert written[0].name == "belief.md"
    assert (tmp_path / "belief-gamma.png").stat().st_size > 1000
