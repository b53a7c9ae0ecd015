"""Every claim that a guarantee can make has a proof in the repository, and every proof a test."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import congenial as cg
from congenial.accounting.proofs import PROOFS, proofs_of
from congenial.releases.specification import SOURCES

ROOT = Path(__file__).parents[2]
HOLDERS = {"source", "NONE", "PROVED", "TRIVIAL", "WHOLE", "POST_PROCESSED", "TWO_BINS"}
FILES = sorted((ROOT / "proofs").glob("*.md"))


def sources(source: Path) -> set[str]:
    """Texts that the package gives as the source of gamma, wherever it is a constant."""
    found = set()
    for path in source.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            given = isinstance(node, ast.keyword) and node.arg == "gamma_source"
            named = isinstance(node, ast.Assign) and any(
                isinstance(t, ast.Name) and t.id in HOLDERS for t in node.targets
            )
            if (given or named) and isinstance(node.value, ast.Constant):
                found.add(str(node.value.value))
    return found


def test_every_source_of_gamma_has_its_proofs():
    found = sources(ROOT / "src" / "congenial" / "accounting")
    found |= sources(ROOT / "src" / "congenial" / "conditioning")
    found |= sources(ROOT / "src" / "congenial" / "imaging")
    assert found == set(PROOFS)
    assert len(found) >= 5


def test_every_file_that_is_named_exists():
    named = {file for files in PROOFS.values() for file in files}
    assert named <= {f"proofs/{path.name}" for path in FILES}


def faults(text: str) -> list[str]:
    """Return what a proof lacks."""
    parts = ("Statement", "Proof", "Test")
    # several statements in one file have theirs in bold
    found = [p for p in parts if f"\n## {p}\n" not in text and f"\n**{p}.** " not in text]
    tests = re.findall(r"`((?:papers/)?tests/[\w/]+\.py)`", text.partition("\n## Test\n")[2])
    found += [name for name in tests if not (ROOT / name).is_file()]
    return found + ([] if tests else ["no test named"])


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_proof_has_all_its_parts(path):
    assert faults(path.read_text(encoding="utf-8")) == []


def test_a_missing_proof_is_detected():
    assert faults("# A\n\n## Statement\n\n## Proof\n") == ["Test", "no test named"]
    assert faults("\n## Statement\n\n## Proof\n\n## Test\n`tests/test_nothing.py`") == [
        "tests/test_nothing.py"
    ]


def test_a_guarantee_names_its_proofs():
    tree = cg.Tree.from_parents([-1, 0, 0])
    noise = cg.Additive(cg.DiscreteLaplace(2.0), tree)
    pinned = cg.consistent(tree) & cg.exactly("root")
    equal = cg.condition(noise, pinned).guarantee("substitute")
    bounded = cg.condition(noise, pinned & cg.nonnegative()).guarantee("substitute")
    imaged = cg.image(noise, pinned & cg.nonnegative()).guarantee("substitute")
    assert "proofs/equalities.md" in proofs_of(equal)
    assert "proofs/inequalities.md" in proofs_of(bounded)
    assert "proofs/imaging.md" in proofs_of(imaged)
    joint = cg.accounting.compose([equal, bounded])
    assert {"proofs/equalities.md", "proofs/inequalities.md", "proofs/composition.md"} <= set(
        proofs_of(joint)
    )


def test_proofs_quote_sources_of_gamma_that_guarantees_and_certificates_have():
    quoted = set()
    for file in FILES:
        intro = file.read_text(encoding="utf-8").partition("## ")[0].replace("\n", " ")
        _, there, after = intro.partition("`gamma_source`")
        quoted |= set(re.findall(r'"([^"]+)"', after)) if there else set()
    assert len(quoted) >= 6
    assert quoted <= {*SOURCES, *SOURCES.values()}
