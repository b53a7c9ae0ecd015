"""The page about a release in headless Chromium; `make test-browser` runs these.

They are left out where the environment variable CONGENIAL_BROWSER names no browser. Where
CONGENIAL_PICTURES names a directory, pictures of the page are written there.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from congenial.plan.plan import read_plan
from congenial.releases.making.make_release import release
from congenial.report import side_files
from congenial.report.write import report
from support.chromium import chromium
from support.city import make_city
from support.contrast import FAINT

BINARY = os.environ.get("CONGENIAL_BROWSER", "")
pytestmark = pytest.mark.skipif(not BINARY, reason="CONGENIAL_BROWSER names no browser")

EVIL = "<img src=x onerror=evil()> & </script><script>evil()</script>"
ZONES = {zone: EVIL if zone % 5 == 0 else f"Borough {zone % 5}" for zone in range(1, 121)}
TRIPS = {zone: zone * zone % 97 for zone in ZONES}

# Texts whose contrast with what is behind them is below 4.5, the least that WCAG 2.2 asks for.
COLUMN = "Array.from(document.querySelectorAll('#table tbody tr')).map((r) => r.children[{}]"
NAMES = COLUMN.format(0) + ".firstChild.textContent)"
COUNTS = COLUMN.format(1) + ".textContent)"
STATUS = "document.getElementById('status').textContent"
ACTIVE = "document.activeElement.id || document.activeElement.dataset.key"


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """Return the path of a page of 120 zones."""
    place = tmp_path_factory.mktemp("page")
    plan = make_city(
        place,
        zones=ZONES,
        trips=TRIPS,
        invariants='publish_exactly = ["root"]\nnonnegative = false',
    )
    release(read_plan(plan), place / "out", base=place, simulate=7)
    return report(place / "out")


@pytest.fixture(scope="module")
def browser():
    with chromium(BINARY) as found:
        yield found


@pytest.fixture
def shown(browser, page):
    """Return the browser with the page open on a wide, light screen."""
    browser.screen()
    browser.open(page)
    return browser


def focus_by_tab(browser, wanted):
    """Press Tab until an element has the focus."""
    for _ in range(60):
        browser.press("Tab")
        if browser.run(ACTIVE) == wanted:
            return
    raise AssertionError(f"{wanted} cannot be reached by the keyboard")


def test_nothing_is_loaded_and_nothing_is_complained_of(shown, page):
    assert shown.told("Runtime.exceptionThrown") == []
    assert shown.told("Log.entryAdded") == []
    assert shown.told("Runtime.consoleAPICalled") == []
    asked = [each["request"]["url"] for each in shown.told("Network.requestWillBeSent")]
    assert asked == [page.as_uri()]


def test_a_fault_would_be_told(shown):
    shown.run("setTimeout(() => { window.thrown = true; throw new Error('planted'); }, 0)")
    shown.wait("window.thrown")
    assert shown.told("Runtime.exceptionThrown") != []
    shown.run("addEventListener('securitypolicyviolation', () => { window.refused = true; })")
    shown.run("document.body.append(Object.assign(new Image(), {src: 'https://example.org/a'}))")
    shown.wait("window.refused")
    assert any(
        "Content Security Policy" in e["entry"]["text"] for e in shown.told("Log.entryAdded")
    )


def test_names_run_no_code(shown):
    assert EVIL in shown.run("document.getElementById('table').textContent")
    assert shown.run("document.images.length") == 0
    assert shown.run("document.scripts.length") == 2


def test_one_page_of_rows_is_there_at_a_time(shown):
    assert shown.run(STATUS) == "Counts 1 to 50 of 120."
    assert shown.run("document.querySelectorAll('#table tbody tr').length") == 50
    counts = [int(text.replace(",", "")) for text in shown.run(COUNTS)]
    assert counts == sorted(counts, reverse=True)


def test_rows_are_sorted_and_turned_by_the_keyboard(shown):
    focus_by_tab(shown, "name")
    shown.press("Enter", "\r")
    sorting = "document.activeElement.parentElement.getAttribute('aria-sort')"
    assert shown.run(sorting) == "ascending"
    assert shown.run(NAMES)[:3] == ["1", "2", "3"]
    shown.press("Enter", "\r")
    assert shown.run(sorting) == "descending"
    assert shown.run(NAMES)[:2] == ["120", "119"]
    focus_by_tab(shown, "after")
    shown.press("Enter", "\r")
    shown.press("Enter", "\r")
    shown.press("Enter", "\r")
    assert shown.run(STATUS) == "Counts 101 to 120 of 120."
    assert shown.run(ACTIVE) == "after"
    assert shown.run("document.activeElement.getAttribute('aria-disabled')") == "true"


def test_places_are_found_by_name_and_by_level(shown):
    focus_by_tab(shown, "search")
    shown.call("Input.insertText", text="BOR\u00d6UGH  3")
    shown.wait(f"{STATUS} === 'Counts 1 to 24 of 24.'")
    shown.call("Input.insertText", text=" nowhere")
    shown.wait(f"{STATUS} === 'No place has that name.'")
    shown.run("document.getElementById('search').value = ''")
    shown.run(
        "(() => { const level = document.getElementById('level'); level.value = 'all';"
        "level.dispatchEvent(new Event('change')); })()"
    )
    assert shown.run(STATUS) == "Counts 1 to 50 of 126."
    assert shown.run(NAMES)[0] == "City"


def test_what_is_needed_is_held_against_what_is_there(shown):
    rows = "Array.from(document.querySelectorAll('#levels tbody tr'))"
    cells = f"{rows}.map((r) => r.lastChild.textContent)"
    ask = (
        "(() => {{ const need = document.getElementById('need'); need.value = '{}';"
        "need.dispatchEvent(new Event('input')); }})()"
    )
    shown.run(ask.format(0))
    shown.wait(f"{cells}.join() === '1 of 1,0 of 5,0 of 120'")
    shown.run(ask.format(1e9))
    shown.wait(f"{cells}[1] === '5 of 5'")
    shown.run(ask.format(""))
    shown.wait(f"{cells}.join() === 'not known,not known,not known'")


def test_no_need_is_asked_for_where_no_margin_can_meet_it(shown, tmp_path):
    asked = "document.getElementById('need').checkVisibility()"
    judged = "Array.from(document.querySelectorAll('.fits')).some((v) => v.checkVisibility())"
    assert shown.run(asked) and shown.run(judged)
    plan = read_plan(make_city(tmp_path, method='name = "imaging"'))
    release(plan, tmp_path / "out", base=tmp_path, simulate=7)
    shown.open(report(tmp_path / "out"))
    assert not shown.run(asked) and not shown.run(judged)


def test_counts_that_are_not_listed_are_loaded_when_they_are_searched_for(shown, page, monkeypatch):
    """From a disk: the page opens alone, and asks for the scripts with the names that begin so."""
    monkeypatch.setattr(side_files, "MOST", 50)
    monkeypatch.setattr(side_files, "EACH", 5)
    large = report(page.parent)
    shown.events.clear()
    shown.open(large)
    asked = [each["request"]["url"] for each in shown.told("Network.requestWillBeSent")]
    assert asked == [large.as_uri()]
    search = (
        "(() => {{ const search = document.getElementById('search'); search.value = '{}';"
        "search.dispatchEvent(new Event('input')); }})()"
    )
    shown.run("document.getElementById('level').value = 'all'")
    shown.run(search.format("11"))
    shown.wait(f"{NAMES}.includes('117')")
    assert sorted(shown.run(NAMES)) == ["11", *(str(zone) for zone in range(110, 120))]
    asked = [each["request"]["url"] for each in shown.told("Network.requestWillBeSent")]
    assert 2 <= len(asked) <= 5
    assert "More" not in shown.run(STATUS)
    # names that only hold it are not found, though some have been loaded
    shown.run(search.format("17"))
    shown.wait(f"{NAMES}.join() === '17'")
    shown.run(search.format("1"))
    shown.wait(f"{STATUS}.endsWith('More places begin with this; type more of the name.')")
    shown.run(search.format("nobody"))
    shown.wait(f"{STATUS} === 'No place has that name.'")
    assert shown.told("Runtime.exceptionThrown") == []
    assert shown.told("Log.entryAdded") == []
    monkeypatch.undo()
    report(page.parent)


def test_a_level_of_too_many_counts_says_where_they_are(shown, page, monkeypatch):
    monkeypatch.setattr(side_files, "MOST", 50)
    monkeypatch.setattr(side_files, "MOST_BESIDE", 5)
    shown.open(report(page.parent))
    shown.run("document.getElementById('level').value = '2'")
    shown.run("document.getElementById('level').dispatchEvent(new Event('change'))")
    shown.wait(
        f"{STATUS} === 'The counts of this level are in release.csv and release.parquet only.'"
    )
    assert "about" in shown.run("document.querySelector('#levels tbody').textContent")
    shown.run("document.getElementById('search').value = '117'")
    shown.run("document.getElementById('search').dispatchEvent(new Event('input'))")
    shown.wait(f"{STATUS} === 'No place on this page has that name.'")
    assert shown.told("Runtime.exceptionThrown") == []
    monkeypatch.undo()
    report(page.parent)


@pytest.mark.parametrize("width", [1100, 390, 320])
def test_a_page_is_as_wide_as_its_screen(shown, page, width):
    shown.screen(width=width, height=800)
    shown.open(page)
    shown.run("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
    assert shown.run("document.documentElement.scrollWidth") <= width
    wide = "document.getElementById('table').scrollWidth <= "
    assert shown.run(wide + "document.documentElement.clientWidth")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_texts_can_be_told_from_what_is_behind_them(shown, page, scheme):
    shown.screen(scheme=scheme)
    shown.open(page)
    shown.run("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
    dark = shown.run("parseInt(getComputedStyle(document.body).backgroundColor.slice(4)) < 128")
    assert dark == (scheme == "dark")
    assert shown.run(FAINT) == []
    soft = {"light": "#a0a6ad", "dark": "#5a626b"}[scheme]
    shown.run(f"document.documentElement.style.setProperty('--soft', '{soft}')")
    assert shown.run(FAINT) != []


def test_everything_that_can_be_used_has_a_name_and_a_part(shown):
    shown.call("Accessibility.enable")
    nodes = shown.call("Accessibility.getFullAXTree")["nodes"]
    parts = {"button", "textbox", "searchbox", "combobox", "spinbutton", "link", "region", "table"}
    used = [n for n in nodes if n.get("role", {}).get("value") in parts]
    assert len(used) > 15
    assert [n for n in used if not n.get("name", {}).get("value")] == []


@pytest.mark.skipif("CONGENIAL_PICTURES" not in os.environ, reason="no pictures are asked for")
def test_pictures(shown, page):
    place = Path(os.environ["CONGENIAL_PICTURES"])
    place.mkdir(parents=True, exist_ok=True)
    for name, width, scheme in (
        ("light", 1100, "light"),
        ("dark", 1100, "dark"),
        ("phone", 390, "light"),
    ):
        shown.screen(width=width, scheme=scheme)
        shown.open(page)
        shown.picture(place / f"{name}.png")
        assert (place / f"{name}.png").stat().st_size > 10_000
