"""The page's file: beside the release or where asked, replaced only where it is a page."""

from __future__ import annotations

import pytest

import congenial as cg
from congenial.errors import ReleaseError
from congenial.report.write import report
from support.city import make_city


def test_a_page_is_written_and_replaced_and_nothing_else_is(tmp_path):
    plan = cg.read_plan(make_city(tmp_path))
    out = tmp_path / "out"
    cg.release(plan, out, base=tmp_path, simulate=1)
    steps = []
    page = report(out, notify=steps.append)
    assert (page.parent, page.name) == (out, "report.html")
    assert steps[0] == "checking the release"
    assert "checked: hashes" in steps and steps[-1] == "writing"
    first = page.read_bytes()
    assert report(out).read_bytes() == first
    other = report(out, tmp_path / "page.html")
    assert other.read_bytes() == first
    mine = tmp_path / "mine.html"
    mine.write_text("<html>mine</html>")
    with pytest.raises(ReleaseError, match=r"mine\.html"):
        report(out, mine)
    assert mine.read_text() == "<html>mine</html>"
    (out / "release.csv").write_text("x")
    with pytest.raises(ReleaseError):
        report(out, tmp_path / "third.html")
    assert not (tmp_path / "third.html").exists()
