"""Every block of code in every document is run, as `pages.py` says."""

from __future__ import annotations

import re
import shutil

import numpy as np
import pytest

from support.city import plan_text
from support.pages import (
    PRINTED,
    ROOT,
    Block,
    Runner,
    all_pages,
    blocks_of,
    copy_examples,
    fits,
    unfenced,
)

PAGES = {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in all_pages()}


def what_the_page_on_inference_says(names):
    tree, law = names["tree"], names["law"]
    assert tree.is_consistent(law.point("l1"))
    means = law.mean()
    assert np.allclose(tree.roll_up(means[tree.leaves]), means)
    assert np.isfinite(names["curve"]).all()


# What the text of a page says of the names that its blocks make.
CLAIMS = {"docs/inference.md": what_the_page_on_inference_says}


@pytest.mark.simulated
@pytest.mark.parametrize("page", [name for name, text in PAGES.items() if blocks_of(text)])
def test_blocks_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = PAGES[page]
    if "examples/" in text or "make demo" in text:
        copy_examples(tmp_path)
    runner = Runner(page, tmp_path)
    for block in blocks_of(text):
        runner.run(block)
    if page in CLAIMS:
        CLAIMS[page](runner.names)


@pytest.mark.skipif(shutil.which("Rscript") is None, reason="R is not installed")
@pytest.mark.parametrize("page", [name for name, text in PAGES.items() if "```r\n" in text])
def test_r_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    runner = Runner(page, tmp_path)
    for block in blocks_of(PAGES[page]):
        runner.run(block)
    runner.finish()
    assert "18+" in runner.printed
    runner.run(Block("r", "stop('no such column')\n", 1, None))
    with pytest.raises(AssertionError, match="no such column"):
        runner.finish()


def test_pages_are_found():
    assert {"README.md", "docs/plan.md", "docs/inference.md", "docs/compare.md"} <= PAGES.keys()
    assert {"proofs/noise.md", "examples/taxi/SOURCE.md", "SECURITY.md"} <= PAGES.keys()


@pytest.mark.parametrize("page", PAGES)
def test_no_code_hides_outside_of_fences(page):
    assert unfenced(PAGES[page]) == []


def block(language, text, file=None):
    """Return a block as on a page."""
    return Block(language, text, 1, file)


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (block("bash", "ls\n"), "nobody runs bash"),
        (block("", "ls\n"), "nobody runs this"),
        (block("sql", "SELECT 1\n", "a.sql"), "cannot be saved"),
        (block("console", "$ ls\n"), "nobody runs ls"),
        (block("console", "$ make nothing\n"), "no target nothing"),
        (block("console", "ok\n"), "without a command"),
        (block("console", "ok\n$ congenial --version\n"), "starts with a command"),
        (block("console", "$ congenial --version\ncongenial, version 0\n"), "and the page shows"),
        (block("console", "$ congenial nothing\n"), "ended with 2"),
        (block("console", "$ congenial --version\nError: no.\n"), "ended with 0"),
    ],
)
def test_blocks_that_are_not_run_or_differ_are_reported(wrong, told, tmp_path):
    with pytest.raises(AssertionError, match=re.escape(told)):
        Runner("page", tmp_path).run(wrong)


def test_failing_blocks_are_reported(tmp_path):
    runner = Runner("page", tmp_path)
    runner.run(block("python", "x = 1\n"))
    runner.run(block("python", "assert x == 1\n"))
    with pytest.raises(ZeroDivisionError):
        runner.run(block("python", "x / 0\n"))
    runner.run(block("python", "print(x, 'and more')\n"))
    runner.run(block("text", "1 and ...\n", PRINTED))
    with pytest.raises(AssertionError, match="what was printed is"):
        runner.run(block("text", "2 and ...\n", PRINTED))
    with pytest.raises(ValueError):
        runner.run(block("json", "{\n"))
    with pytest.raises(Exception, match="colour"):
        runner.run(block("toml", "[privacy]\ncolour = 1\n"))
    runner.run(block("text", "a\n1\n", "a.csv"))
    assert (tmp_path / "a.csv").read_text() == "a\n1\n"
    runner.run(block("toml", plan_text(), "plan.toml"))
    runner.run(block("toml", plan_text(), "plan.toml"))
    other = plan_text(invariants="nonnegative = false")
    with pytest.raises(AssertionError, match="differs"):
        runner.run(block("toml", other, "plan.toml"))


def test_blocks_are_found_with_their_files():
    text = "<!-- file: a.csv -->\n\n```text\na\n```\n````text\n```python\n````\n```python\nx\n```\n"
    assert blocks_of(text) == [
        Block("text", "a\n", 4, "a.csv"),
        Block("text", "```python\n", 7, None),
        Block("python", "x\n", 10, None),
    ]
    with pytest.raises(AssertionError, match="no end"):
        blocks_of("```python\nx\n")
    assert unfenced("    $ ls\n```console\n    $ ls\n```\n    E = x\n") == ["    $ ls"]


@pytest.mark.parametrize(
    ("shown", "told", "fit"),
    [
        (["a", "...", "d"], "a\nb\nc\nd\n", True),
        (["a", "...", "d"], "a\nd\n", True),
        (["a...d"], "a bc d\n", True),
        (["a...d"], "a\nd\n", False),
        (["a"], "a\nb\n", False),
        (["(a)"], "(a)\n", True),
        (["..."], "", True),
    ],
)
def test_output_is_compared(shown, told, fit):
    assert fits(shown, told) is fit
