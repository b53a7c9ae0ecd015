"""The site's sources: numbers on its pages, its lock and pictures, and the check of links."""

from __future__ import annotations

import json
import math
import re
import runpy
from pathlib import Path

import numpy as np
import pytest

import congenial as cg
from support.locks import PROJECT, lock_faults, needed, pins
from support.pages import table_below

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
CHECK = runpy.run_path(str(DOCS / "sphinx" / "check.py"))


def rows(page: str, heading: str) -> list[list[str]]:
    """Return the cells of the first table below a heading of a page."""
    return table_below((DOCS / page).read_text(encoding="utf-8"), heading)


def test_the_site_has_a_lock_that_holds_the_run():
    text = (ROOT / "requirements" / "docs.lock").read_text(encoding="utf-8")
    assert lock_faults(text) == []
    locked = {(package, version) for package, version, _ in pins("docs")}
    assert {(package, version) for package, version, _ in pins("run")} <= locked
    assert needed(PROJECT["optional-dependencies"]["docs"]) <= {package for package, _ in locked}


NAMESPACES = (cg, cg.accounting, cg.belief, cg.conditioning, cg.imaging, cg.inference)


@pytest.mark.parametrize("module", NAMESPACES, ids=lambda module: module.__name__)
def test_every_public_name_is_in_the_reference(module):
    named = []
    for path in (DOCS / "reference").glob("*.md"):
        of = ""
        for line in path.read_text(encoding="utf-8").splitlines():
            if found := re.fullmatch(r"\.\. currentmodule:: ([\w.]+)", line):
                of = found[1]
            found = re.fullmatch(r"\.\. auto(?:class|function|exception):: (\w+)", line)
            if found and of == module.__name__:
                named.append(found[1])
    assert sorted(named) == sorted(module.__all__)


def test_every_page_is_linked_from_another():
    """Sphinx finds pages that no toctree names; this finds decisions and studies without one."""
    linked = set()
    for path in [ROOT / "README.md", *DOCS.rglob("*.md")]:
        text = path.read_text(encoding="utf-8")
        targets = re.findall(r"\]\(([^)#:]+\.md)", text)
        targets += [f"{line}.md" for line in re.findall(r"^[\w./-]+$", text, re.MULTILINE)]
        linked |= {(path.parent / target).resolve() for target in targets}
    pages = {path for path in DOCS.rglob("*.md") if path.parent.name != "decisions"}
    assert pages - linked == {DOCS / "index.md"}


def test_the_table_of_odds_is_right():
    table = rows("privacy.md", "Epsilon in plain words")
    assert len(table) == 6
    for epsilon, factor, half, hundredth in table:
        f = math.exp(float(epsilon))
        assert float(factor.replace(",", "")) == pytest.approx(f, rel=5e-3)
        for shown, prior in ((half, 0.5), (hundredth, 0.01)):
            after = prior * f / (1 - prior + prior * f)
            assert shown == (f"{after:.2%}" if after > 0.999 else f"{after:.1%}")


def test_numbers_about_methods_are_those_of_the_comparison():
    text = (DOCS / "compare" / "comparison.json").read_text(encoding="utf-8")
    found = {
        (r["contender"]["name"], r["contender"]["noise"]): r for r in json.loads(text)["results"]
    }
    table = rows("choosing.md", "Results with bounds")
    assert len(table) == 10
    for name, noise, borough, zone, bias in table:
        result = found[name, f"discrete-{noise.lower()}"]
        assert [f"{level['l1']:.2f}" for level in result["levels"][1:]] == [borough, zone]
        empty = next(s for s in result["sizes"] if s["level"] == "PULocationID" and s["high"] == 0)
        assert f"{empty['bias']:+.2f}" == bias


def test_numbers_about_one_sum_are_those_of_the_study():
    text = (DOCS / "studies" / "simplex.md").read_text(encoding="utf-8")
    table = rows("choosing.md", "Results without bounds")
    assert [row[0] for row in table] == ["2", "10", "100"]
    for n, conditioning, imaging, ratio in table:
        shown = f"| double geometric, scale 2 | {n} | {conditioning} | {imaging} | {ratio} |"
        assert shown in text


def drawn_as(path: Path) -> tuple[str, list[float]]:
    """Return a picture's text without its numbers, and these."""
    text = re.sub(r"\b[a-zA-Z][0-9a-f]{8,}\b", "", path.read_text(encoding="utf-8"))
    number = r"-?\d+\.?\d*(?:e-?\d+)?"
    return re.sub(number, "", text), [float(found) for found in re.findall(number, text)]


def test_pictures_are_reproduced(tmp_path):
    written = runpy.run_path(str(DOCS / "figures" / "draw.py"))["draw"](tmp_path)
    kept = sorted(path.name for path in (DOCS / "figures").glob("*.svg"))
    assert sorted(path.name for path in written) == kept
    pages = "".join(page.read_text(encoding="utf-8") for page in DOCS.glob("*.md"))
    for path in written:
        text, numbers = drawn_as(path)
        kept_text, kept_numbers = drawn_as(DOCS / "figures" / path.name)
        assert text == kept_text
        assert np.allclose(numbers, kept_numbers, atol=1e-3)
        assert f"(figures/{path.name})" in pages


def test_pictures_show_the_laws():
    """The law of three cells, drawn by enumeration, is the one that is conditioned on."""
    drawn = runpy.run_path(str(DOCS / "figures" / "draw.py"))
    laws = drawn["three_cell_laws"]()
    names = [("all", name) for name in ("first", "second", "third")]
    tree = cg.Tree.from_paths(names)
    noise = cg.DiscreteLaplace([math.inf, 2.0, 2.0, 2.0])
    told = cg.consistent(tree) & cg.exactly("all") & cg.nonnegative()
    values, probabilities = cg.condition(cg.Additive(noise, tree), told).marginal(1, [12, 1, 3, 8])
    law = laws["conditioning"].sum(1)
    assert dict(zip(values.tolist(), probabilities, strict=True)) == pytest.approx(
        dict(enumerate(law)), abs=1e-9
    )
    assert laws["imaging"].sum() == pytest.approx(1.0)
    values, law = drawn["two_bin_laws"]()["imaging"]
    assert law.sum() == pytest.approx(1.0)
    assert ((values - 4) ** 2 @ law) == pytest.approx(3.918, abs=1e-3)


PAGE = '<html><body><h1 id="top">x</h1>{}</body></html>'


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ('<a href="b.html#there">b</a> <a href="#top">up</a> <img src="p.svg" alt="p">', None),
        ('<a href="https://example.org/">elsewhere</a>', None),
        ('<a href="c.html">c</a>', "links to c.html, which is not there"),
        ('<a href="b.html#gone">b</a>', "no such anchor"),
        ('<a href="#gone">b</a>', "no such anchor"),
        ('<img src="q.svg" alt="q">', "loads q.svg, which is not there"),
        ('<img src="p.svg">', "pictures without a text"),
        ('<script src="https://example.org/x.js"></script>', "from a network"),
        ('<link rel="stylesheet" href="//example.org/x.css">', "from a network"),
        ('<style></style><link rel="stylesheet" href="s.css">', "s.css loads something"),
    ],
)
def test_links_of_the_built_site_are_checked(tmp_path, body, told):
    (tmp_path / "a.html").write_text(PAGE.format(body))
    (tmp_path / "b.html").write_text('<p id="there">b</p>')
    (tmp_path / "p.svg").write_text("<svg/>")
    if "s.css" in body:
        (tmp_path / "s.css").write_text("@font-face { src: url('https://example.org/f.woff') }")
    found = CHECK["faults"](tmp_path)
    assert found == [] if told is None else len(found) == 1 and told in found[0]


def test_a_site_without_pages_is_reported(tmp_path):
    assert "no page" in CHECK["faults"](tmp_path)[0]
