"""docs/papers.md: its targets exist, and missing items are detected."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import congenial as cg
from papers.claims import CLAIMS
from papers.studies import NAMES

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "papers.md"
PACKAGE = ROOT / "src" / "congenial"
TESTS = "\n".join(
    path.read_text(encoding="utf-8")
    for folder in ("tests", "papers/tests")
    for path in (ROOT / folder).rglob("test_*.py")
)
# The numbered items of both papers, as they are cited in the page.
ITEMS = {
    "Gong and Meng": (
        *("Definition 1.1", "Definition 1.2", "Theorem 1.3", "Definition 1.4", "Theorem 2.1"),
        *("Algorithm 1", "Table 1", "Table 2", "Figure 1", "Figure 2", "Figure 3", "Example 4.1"),
        *("Example 5.1", "Example 5.2", "Theorem A.1", "Appendix B", "equation 5.2"),
        *("equation 1.6", "equation 2.2", "P(M ∈ S*) = 0", "equation 5.1", "blowfish"),
        *("the best γ", "orthogonal decomposition"),
    ),
    "Two Views": (
        *("Propositions 2.1, 2.2", "Example 2.3", "Definition 2.4", "Definitions 2.5, 2.6"),
        *("Proposition 2.7", "Definition 3.1", "Definition 3.2", "Lemma 3.3", "Lemma 3.4"),
        *("Theorem 3.5", "Lemma 3.6", "Lemma 3.7", "Lemma 3.8", "Theorem 3.9", "Lemma 3.10"),
        *("Proposition 4.1", "Table 1", "Tables 2 and 3", "Algorithm 1", "Appendix A"),
        *("Figures 1, 2, 3", "axiom of choice", "bounded leakage", "causality"),
    ),
}


KNOWN = [claim.item for claim in CLAIMS]
# What is named, how it is written, and how to tell that it exists.
NAMED = (
    ("link", r"\]\(([^)#]+)\)", lambda target: (PAGE.parent / target).exists()),
    ("file", r"`((?:papers|tests)/[\w/]+\.py)`", lambda path: (ROOT / path).is_file()),
    ("file", r"`((?!tests/|papers/)[a-z_]+/[\w/]+\.py)`", lambda path: (PACKAGE / path).is_file()),
    ("test", r"`(test_\w+)`", lambda name: f"def {name}(" in TESTS),
    ("name", r"`cg\.(\w+)", lambda name: hasattr(cg, name)),
    ("study", r"[Ss]tudy \*([\w-]+)\*", lambda name: name in NAMES),
)


def faults(text: str) -> list[str]:
    """Return what a page names that does not exist."""
    found = [
        f"{kind} {name}"
        for kind, pattern, exists in NAMED
        for name in re.findall(pattern, text)
        if not exists(name)
    ]
    for name in re.findall(r'"([^"]+)"', " ".join(re.findall(r"claims? [^|]*", text))):
        part = name.removeprefix("…").lstrip(", ").removesuffix("…").rstrip(", ")
        found += [] if any(part in known for known in KNOWN) else [f"claim {name}"]
    return found


def test_files_named_on_the_page_exist():
    assert faults(PAGE.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("[x](studies/nothing.md)", "link"),
        ("`tests/test_nothing.py`", "file"),
        ("`conditioning/nothing.py`", "file"),
        ("`test_nothing_at_all`", "test"),
        ("`cg.nothing`", "name"),
        ("study *nothing*", "study"),
        ('claim "nothing of the kind"', "claim"),
    ],
)
def test_a_missing_item_is_detected(line, told):
    (fault,) = faults(line)
    assert fault.startswith(told)


@pytest.mark.parametrize("paper", ITEMS)
def test_every_numbered_item_has_a_row(paper):
    text = PAGE.read_text(encoding="utf-8")
    begin = text.index(f"\n## {paper}\n")
    part = text[begin : text.index("\n## ", begin + 1)]
    rows = [line.split("|")[1] for line in part.splitlines() if line.startswith("| ")]
    assert [item for item in ITEMS[paper] if not any(item in row for row in rows)] == []


@pytest.mark.parametrize("name", NAMES)
def test_every_study_is_kept_among_the_documents(name):
    page = ROOT / "docs" / "studies" / f"{name}.md"
    text = page.read_text(encoding="utf-8")
    assert f"`python -m papers {name} --seed 1`" in text
    for target in re.findall(r"\]\(([^)]+)\)", text):
        assert (page.parent / target).is_file(), target
