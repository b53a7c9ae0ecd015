"""Names that look alike are reported, and no others."""

from __future__ import annotations

import json

import pytest

from congenial.cli import command_line as cli
from congenial.data.spelling import odd_names
from congenial.domain.tree import Tree
from support.city import make_city

ALIKE = (
    ("Z\u00fcrich", "Zu\u0308rich"),
    ("Queens", "queens"),
    ("Queens", "Queens "),
    ("New York", "New  York"),
    ("Bronx", "Bro\u200bnx"),
    ("\u212bngstr\u00f6m", "\u00c5ngstr\u00f6m"),
    ("office", "o\ufb03ce"),
    ("A", "\uff21"),
    ("Stra\u00dfe", "STRASSE"),
)
MIXED = ("P\u0430ris", "\u0391lpha", "\u0421ity hall", "ab\u03bf1")
PLAIN = (
    *(
        "Paris",
        "M\u00fcnchen",
        "\u041c\u043e\u0441\u043a\u0432\u0430",
        "\u0391\u03b8\u03ae\u03bd\u03b1",
    ),
    *(
        "\u6771\u4eacTower",
        "JR\u6771\u65e5\u672c",
        "\u03b1-helix",
        "5 \u00b5m",
        "\u30ab\u30bf\u304b",
    ),
    *("caf\u00e9 \u041c\u043e\u0441\u043a\u0432\u0430", "", "1", "-", "\u0645\u0635\u0631"),
)


def told(*names):
    """Return the warnings about the children of one node."""
    return odd_names(Tree.from_parents([-1] + [0] * len(names), ["root", *names]))


@pytest.mark.parametrize("pair", ALIKE)
def test_siblings_that_look_alike_are_reported(pair):
    (sentence,) = told("other", *pair)
    assert all(ascii(name) in sentence for name in pair)
    assert sentence.isascii()
    assert odd_names(Tree.from_paths([("root", "a", pair[0]), ("root", "b", pair[1])])) == ()


@pytest.mark.parametrize("name", MIXED)
def test_words_of_two_scripts_are_reported(name):
    (sentence,) = told("other", name)
    assert ascii(name) in sentence
    assert "two scripts" in sentence


def test_other_names_are_not_reported():
    assert told(*PLAIN) == ()


def test_many_odd_names_give_one_sentence_of_each_kind():
    sentences = told(*(name for pair in ALIKE for name in pair), *MIXED)
    assert len(sentences) == 2
    assert f"and {len(ALIKE)} more such" in sentences[0]  # Queens stands there twice
    assert f"and {len(MIXED) - 1} more such" in sentences[1]


def test_explain_and_release_report_odd_names(tmp_path, capsys):
    zones = {1: "Arden", 2: "arden", 3: "P\u0430ris"}
    plan = make_city(tmp_path, zones=zones, trips={1: 3, 2: 4, 3: 5})
    for command in (["explain", plan], ["release", plan, "--out", tmp_path / "out"]):
        assert cli.run([*map(str, command), "--json"]) == 0
        odd = json.loads(capsys.readouterr().out)["result"]["odd_names"]
        assert len(odd) == 2
    assert cli.run(["explain", str(plan)]) == 0
    said = capsys.readouterr().out
    assert all(sentence in said for sentence in odd)
    assert cli.run(["release", str(plan), "--out", str(tmp_path / "b"), "--quiet"]) == 0
    assert capsys.readouterr().err.splitlines() == odd
