"""The study of belief change: its tables say what the checks found."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from papers.claims import CLAIMS, Verdict
from papers.claims.cost_of_bounds import pinned_total
from papers.studies.belief import (
    CELLS,
    EPSILONS,
    TOTALS,
    _topic,
    run,
)
from papers.studies.pages import write


@pytest.fixture(scope="module")
def study():
    return run(4, 0.01)


@pytest.fixture(scope="module")
def tables(study):
    return {table.name: table for table in study.tables}


def test_every_claim_has_a_row(tables):
    table = tables["claims"]
    assert table.column("item") == tuple(claim.item for claim in CLAIMS)
    expected = tuple("holds" if claim.true else "fails" for claim in CLAIMS)
    assert table.column("verdict") == expected
    against = tables["counterexamples"]
    assert against.column("item") == tuple(claim.item for claim in CLAIMS if not claim.true)
    assert all(against.column("counterexample"))


def test_the_marks_of_table_1_that_do_not_stand(tables):
    table = tables["table-1"]
    differ = {
        (row[0], row[1])
        for row in table.rows
        if row[table.columns.index("printed")] != row[table.columns.index("found")]
    }
    assert differ == {
        ("conditioning", "disjoint union: privacy"),
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


def test_findings_are_those_of_the_tables(study, tables):
    fails = sum(verdict == "fails" for verdict in tables["claims"].column("verdict"))
    assert f" {fails} were refuted." in study.findings[0]
    table = tables["claims"]
    refuted = [
        row[0]
        for row in table.rows
        if row[table.columns.index("verdict")] == "fails"
        and row[table.columns.index("who says so")] == "the paper"
    ]
    assert f"{len(refuted)} were refuted:" in study.findings[1]
    lines = study.findings[2].splitlines()
    assert len(lines) == len(refuted)
    for item, line in zip(refuted, lines, strict=True):
        assert line.startswith(f"- **{item}.** ") and "Counterexample: " in line
    assert "Corrected: " in lines[0]
    marks = next(text for text in study.findings if "Table 1 of Two Views" in text)
    assert marks.endswith("Rows that do not agree: conditioning, disjoint union: privacy.")
    rules = next(text for text in study.findings if "Rules of belief change" in text)
    assert "- revision: none\n- screened: success\n" in rules
    assert sum(tables["sources"].column("statements")) == len(CLAIMS)
    assert sum(tables["sources"].column("refuted")) == fails
    denied = dict(zip(*(tables["sources"].column(c) for c in ("who says so", "held")), strict=True))
    assert denied["the paper denies it"] == 0
    assert "The loss never exceeds" in study.findings[-1]


def test_the_statements_of_the_papers_that_are_false():
    """A paper is charged with what is wrong in every fair reading alone."""
    assert {claim.item for claim in CLAIMS if claim.says == "the paper" and not claim.true} == {
        "Two Views, Theorem 3.5, part 2",
        "Gong and Meng (2020), section 5.1, Example 4.1 disrupts",
        "Gong and Meng (2020), section 5.1, gamma = -1/2",
    }


def test_findings_follow_the_verdicts():
    verdicts = {claim.item: Verdict(claim.true, 1, 0, "so") for claim in CLAIMS}
    items = ("Gong and Meng (2020), Theorem 1.3",)
    assert _topic(verdicts, items).endswith("This held in every case.")
    verdicts[items[0]] = Verdict(False, 1, 1, "a case")
    assert _topic(verdicts, items).endswith("This is refuted: a case.")


def test_the_findings_are_written(study, tmp_path):
    pytest.importorskip("matplotlib")
    written = write(study, tmp_path, seed=4, effort=0.01)
    assert written[0].name == "belief.md"
    assert (tmp_path / "belief-gamma.png").stat().st_size > 1000
