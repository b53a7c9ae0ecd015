"""A page as HTML: every text escaped, scripts that no name can end, the same bytes each time."""

from __future__ import annotations

import base64
import hashlib
import json
import re

from congenial.report.page import Counts, Fact, LevelRow, Page
from congenial.report.render import embedded, render

EVIL = "</script><b>\u2028&"
PAGE = Page(
    title=EVIL,
    stamp=None,
    lead=(EVIL,),
    protected=("p",),
    unprotected=("u",),
    sentence=EVIL,
    details=(Fact(EVIL, (EVIL, "x")),),
    accuracy=("a",),
    levels=(LevelRow("City", 1, 1, "none", None, "0"), LevelRow("zone", 2, 0, "n", 3.14159, "±2")),
    margin_label="margin",
    bent=False,
    counts=Counts((0, 1), (-1, 0), ("City", EVIL), (7, 7), (7, None), (7, 9), (True, False)),
    cite=("c",),
    reuse=("r",),
    checks=(Fact("f", ("g",)),),
)


def test_no_name_is_more_than_text():
    text = render(PAGE)
    assert "<b>" not in text
    data = re.search(r"<script[^>]*json[^>]*>(.*?)</script>", text, re.DOTALL).group(1)
    found = json.loads(data)
    assert found["name"] == ["City", EVIL]
    assert found["lower"] == [7, None]
    assert found["exact"] == [1, 0]
    assert json.loads(embedded(PAGE)) == found
    assert render(PAGE) == text


def test_only_the_scripts_of_the_page_may_run():
    text = render(PAGE)
    (script,) = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"'sha256-{digest}'" in text
    assert "http://" not in text.replace("http://www.w3.org", "")
