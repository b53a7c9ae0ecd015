"""Every page of the built site in headless Chromium: `make docs test-browser` runs these.

They are left out where CONGENIAL_BROWSER names no browser or CONGENIAL_SITE no site. Where
CONGENIAL_PICTURES names a directory, a picture of every page is written there.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from support.chromium import chromium
from support.contrast import FAINT

BINARY = os.environ.get("CONGENIAL_BROWSER", "")
SITE = Path(os.environ.get("CONGENIAL_SITE", "nowhere")).resolve()
PICTURES = os.environ.get("CONGENIAL_PICTURES", "")
# The first page sends on to another.
PAGES = sorted(path for path in SITE.rglob("*.html") if path.parent != SITE or path.stem.isupper())
pytestmark = pytest.mark.skipif(
    not (BINARY and PAGES), reason="CONGENIAL_BROWSER or CONGENIAL_SITE names nothing"
)
SCREENS = {
    "light": {"width": 1280},
    "dark": {"width": 1280, "scheme": "dark"},
    "phone": {"width": 390, "height": 844},
}
# What sticks out of the window to the right and cannot be scrolled by itself.
WIDER = "document.documentElement.scrollWidth - window.innerWidth"

# Tables that are wider than their place and cannot be scrolled there, folded ones opened.
CUT = """(() => {
  document.querySelectorAll('details').forEach((one) => { one.open = true; });
  return Array.from(document.querySelectorAll('article table')).filter((table) => {
    const place = table.parentElement;
    const scrolls = ['auto', 'scroll'].includes(getComputedStyle(place).overflowX);
    return table.scrollWidth > place.clientWidth + 1 && !scrolls;
  }).length;
})()"""


@pytest.fixture(scope="module")
def browser():
    with chromium(BINARY) as found:
        yield found


def complaints(browser):
    """Return what the browser complained of, and what it asked of a network."""
    kinds = ("Runtime.exceptionThrown", "Log.entryAdded", "Runtime.consoleAPICalled")
    asked = [each["request"]["url"] for each in browser.told("Network.requestWillBeSent")]
    remote = [url for url in asked if not url.startswith(("file:", "data:"))]
    return [str(event) for kind in kinds for event in browser.told(kind)] + remote


@pytest.mark.parametrize("screen", SCREENS)
def test_pages_are_whole(browser, screen):
    browser.screen(**SCREENS[screen])
    wrong = {}
    for path in PAGES:
        browser.open(path)
        name = str(path.relative_to(SITE))
        found = complaints(browser)
        if cut := browser.run(CUT):
            found.append(f"{cut} tables are cut off")
        wider = browser.run(WIDER)
        if wider > 0:
            found.append(f"{wider} pixels wider than the window")
        broken = "Array.from(document.images).filter((i) => !i.naturalWidth).map((i) => i.src)"
        found += browser.run(broken)
        if browser.run("document.querySelectorAll('h1').length") != 1:
            found.append("not one heading")
        if found:
            wrong[name] = found
        if PICTURES:
            place = Path(PICTURES, f"{name.replace('/', '-').removesuffix('.html')}-{screen}.png")
            place.parent.mkdir(parents=True, exist_ok=True)
            browser.picture(place)
    assert wrong == {}


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_texts_can_be_read(browser, scheme):
    browser.screen(scheme=scheme)
    faint = {}
    for path in PAGES:
        if path.stem in ("tutorial", "algebra", "privacy", "obeying", "plan", "noise"):
            browser.open(path)
            if found := browser.run(FAINT):
                faint[path.stem] = found
    assert faint == {}


def test_the_first_page_sends_on(browser):
    browser.screen()
    browser.call("Page.navigate", url=(SITE / "index.html").as_uri())
    browser.wait("document.title.startsWith('congenial') && location.href.includes('docs/index')")


def test_search_works_without_a_network(browser):
    browser.screen()
    page = next(path for path in PAGES if path.stem == "tutorial")
    browser.open(page)
    url = (SITE / "search.html").as_uri()
    browser.call("Page.navigate", url=f"{url}?q=unprotected")
    browser.wait("document.querySelectorAll('#search-results li').length > 2")
    assert complaints(browser) == []
