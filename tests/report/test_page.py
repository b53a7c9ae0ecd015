"""The page about a release: well formed, closed to the network, safe from names, and true to it."""

from __future__ import annotations

import base64
import hashlib
import itertools
import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest
from msgspec import structs, to_builtins

from congenial.cli.command_line import run
from congenial.errors import ReleaseError
from congenial.plan.plan import read_plan
from congenial.preview.comparison.expected import NotSimulated
from congenial.releases import directory as files
from congenial.releases.certificate import read_certificate
from congenial.releases.directory import STAMP
from congenial.releases.file_table import Numbers
from congenial.releases.making.make_release import release
from congenial.releases.reading import read_release
from congenial.report.page import embedded, render
from congenial.report.page_counts import counts_at_once
from congenial.report.shown_counts import Label
from congenial.report.write import report
from congenial.verification.checks import Check
from congenial.verification.verdict import verify
from support.city import make_city

EVIL = '</script><script>alert(1)</script><b onclick="x">&amp; $title \u2028'
EQUALITIES = 'publish_exactly = ["root", "Brook"]\nnonnegative = false'
VOID = {"meta", "input", "br", "link", "img", "hr"}


class Reader(HTMLParser):
    """What a page holds: its elements with their attributes, and the text of some."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.open, self.texts, self.faults = [], [], {}, []
        self.feed(text)
        self.close()
        self.faults += self.open

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.faults.append(tag)

    def handle_data(self, data):
        if self.open:
            self.texts.setdefault(self.open[-1], []).append(data)

    def all(self, tag):
        return [attrs for name, attrs in self.elements if name == tag]

    @property
    def said(self):
        """All text that is not code or data."""
        texts = (t for tag, ts in self.texts.items() if tag not in ("script", "style") for t in ts)
        return " ".join(texts)

    @property
    def data(self):
        return json.loads(self.texts["script"][0])


class OneName:
    """Labels of a tree each of whose nodes has the same name."""

    def __init__(self, name):
        self.name = name

    def of(self, shown):
        return (Label((self.name,) * (level + 1), level) for level in shown.level)


def named(release, name):
    """Return what a page is made of, for a release each of whose names is a given one."""
    first, *_ = levels = (f"{name}1", f"{name}2")
    whole = release.certificate
    plan = structs.replace(
        release.plan,
        hierarchy=structs.replace(release.plan.hierarchy, root=name, levels=levels),
        privacy=structs.replace(release.plan.privacy, split=None),
    )
    stated = structs.replace(
        whole,
        domain=structs.replace(
            whole.domain,
            levels=tuple(structs.replace(level, name=name) for level in whole.domain.levels),
            row_filter=name,
        ),
        accuracy=structs.replace(
            whole.accuracy,
            levels=tuple(
                structs.replace(level, level=first, required=1.0, met=False)
                for level in whole.accuracy.levels
            ),
        ),
        plan=to_builtins(plan),
    )
    counts = counts_at_once(release, NotSimulated(name), release.directory)
    odd = replace(counts, labels=OneName(name))
    return stated, plan, odd, [Check(name, True, name)]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Return a directory with releases under bounds and under equalities, and a simulation."""
    made = tmp_path_factory.mktemp("reported")
    bounded = read_plan(make_city(made))
    release(bounded, made / "bounded", base=made)
    release(bounded, made / "sham", base=made, simulate=5, with_truth=True)
    release(read_plan(make_city(made, invariants=EQUALITIES)), made / "equal", base=made)
    return made


@pytest.fixture(scope="module", params=["bounded", "equal", "sham"])
def page(request, place):
    """Return the text of a page."""
    out = place / f"{request.param}.html"
    return report(place / request.param, out).read_text(encoding="utf-8")


def read(directory, out):
    return Reader(report(directory, out).read_text(encoding="utf-8"))


def test_every_element_is_closed_and_headings_do_not_skip(page):
    reader = Reader(page)
    assert page.startswith("<!doctype html>")
    assert reader.faults == []
    assert reader.all("html") == [{"lang": "en"}]
    assert len(reader.all("h1")) == len(reader.all("main")) == len(reader.all("title")) == 1
    depths = [int(tag[1]) for tag, _ in reader.elements if re.fullmatch(r"h\d", tag)]
    assert all(b - a <= 1 for a, b in itertools.pairwise(depths))


def test_the_reader_of_these_tests_sees_a_fault():
    assert Reader("<p><b>x</p></b>").faults != []
    assert Reader("<p>x").faults == ["p"]


def test_every_control_has_a_label_and_every_column_a_scope(page):
    reader = Reader(page)
    named = {attrs.get("for") for attrs in reader.all("label")}
    controls = [a["id"] for tag in ("input", "select") for a in reader.all(tag)]
    assert len(controls) == 3
    assert set(controls) <= named
    assert all(attrs.get("scope") in ("col", "row") for attrs in reader.all("th"))
    assert all(attrs["type"] == "button" for attrs in reader.all("button"))
    sortable = [a for a in reader.all("th") if "aria-sort" in a]
    assert len(sortable) == 3
    identities = [attrs["id"] for _, attrs in reader.elements if "id" in attrs]
    assert len(identities) == len(set(identities))
    for _, attrs in reader.elements:
        for key in ("aria-labelledby", "for"):
            assert attrs.get(key, identities[0]) in identities
        if attrs.get("href", "").startswith("#"):
            assert attrs["href"][1:] in identities


def test_nothing_is_loaded_and_only_its_own_code_runs(page):
    reader = Reader(page)
    for tag, attrs in reader.elements:
        assert tag not in ("link", "iframe", "img", "object", "embed", "base")
        assert not {"src", "srcset", "data", "action", "style", "onclick"} & attrs.keys()
        assert attrs.get("href", "#").startswith("#")
    code = reader.texts["style"][0] + reader.texts["script"][1]
    assert not re.search(r"url\(|@import|https?:|fetch|XMLHttp|innerHTML|eval\(", code)
    policy = next(a["content"] for a in reader.all("meta") if "http-equiv" in a)
    assert policy.startswith("default-src 'none';")
    for text in (reader.texts["style"][0], reader.texts["script"][1]):
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in policy


def test_it_follows_the_colours_and_the_width_of_its_reader(page):
    reader = Reader(page)
    metas = {a.get("name"): a["content"] for a in reader.all("meta") if "content" in a}
    assert "width=device-width" in metas["viewport"]
    assert metas["color-scheme"] == "light dark"
    assert "prefers-color-scheme: dark" in page
    assert "max-width: 40rem" in page


def test_the_same_release_gives_the_same_bytes(place):
    one = report(place / "bounded", place / "one.html").read_bytes()
    assert one == report(place / "bounded", place / "two.html").read_bytes()


def test_the_counts_are_those_of_the_release(place):
    found = read(place / "equal", place / "counts.html").data
    table = files.read_table(place / "equal")
    paths = []
    for at, name in enumerate(found["name"]):
        above = found["parent"][at]
        assert above < at
        paths.append((*(paths[above] if above >= 0 else ()), name))
    shown = dict(zip(paths, found["value"], strict=True))
    rows = zip(*(table.column(name) for name, _ in table.columns), strict=True)
    named = {tuple(v for v in row[2:5] if v is not None): row[5:] for row in rows}
    assert shown == {path: row[0] for path, row in named.items()}
    ends = zip(found["lower"], found["upper"], strict=True)
    assert dict(zip(paths, ends, strict=True)) == {path: row[1:] for path, row in named.items()}
    exact = {path for path, e in zip(paths, found["exact"], strict=True) if e}
    assert exact == {("City",), ("City", "Brook")}
    wide = {path: row[2] - row[1] for path, row in named.items()}
    assert all(wide[path] == 0 for path in exact)
    assert min(width for path, width in wide.items() if path not in exact) > 0


def test_it_says_what_is_protected_and_what_is_not(place):
    said = read(place / "equal", place / "said.html").said
    certificate = read_certificate(place / "equal" / files.CERTIFICATE)
    for text in certificate.unprotected:
        assert text[1:] in said
    assert certificate.sentence in said
    assert "at most 74% sure" in said  # e / (1 + e) is 73.1%
    assert "two values of this one. Both values agree with the exact counts." in said
    for proof in certificate.guarantee.proofs:
        assert proof in said


def test_margins_have_the_right_name(place):
    equal = read(place / "equal", place / "equal.html")
    bounded = read(place / "bounded", place / "bounded.html")
    assert "A margin is exact" in equal.said and "probability of at least 90%" in equal.said
    assert "worst true counts that this table leaves possible" in bounded.said
    assert "the true count is inside with a probability of at least 90%" in bounded.said
    assert "on average" not in bounded.said
    assert "near zero tend to be too large" in bounded.said and "near zero" not in equal.said
    assert None not in bounded.data["lower"]


def test_the_page_says_so_if_there_is_no_margin(tmp_path):
    plan = make_city(tmp_path, method='name = "imaging"')
    release(read_plan(plan), tmp_path / "out", base=tmp_path)
    hidden = read(tmp_path / "out", None)
    assert "No error margin is known" in hidden.said and "in 90%" not in hidden.said
    assert [v is None for v in hidden.data["lower"]] == [not e for e in hidden.data["exact"]]


ASKED = """
    confidence = 0.95
    required = { borough = 1000, zone = 0.5 }
    sums = { "both of them" = ["Arden", "Brook/4"] }
    simultaneous = true
    """


def test_intervals_of_measurements_and_required_accuracy_are_shown(tmp_path):
    both = 'publish = ["table", "measurements"]'
    plan = make_city(tmp_path, method='name = "imaging"', release=both, accuracy=ASKED)
    release(read_plan(plan), tmp_path / "out", base=tmp_path)
    found = read(tmp_path / "out", None)
    assert "Interval, 95%" in found.said and "measurements.csv" in found.said
    assert "borough ±1,000: met; zone ±0.5: not met" in found.said
    assert "±1,000: met" in found.said and "±0.5: not met" in found.said
    assert "both of them, the sum of City/Arden and City/Brook/4" in found.said
    assert "level_lower" in found.said and "unbiased noisy counts" in found.said
    assert None not in found.data["lower"]


def test_the_number_of_records_is_stated_once(tmp_path):
    privacy = 'neighbours = "substitute"\nepsilon = 1.0'
    plan = make_city(tmp_path, privacy=privacy, invariants="", method='name = "imaging"')
    made = release(read_plan(plan), tmp_path / "out", base=tmp_path)
    assert made.certificate.unprotected == ("the number of records",)
    listed = read(tmp_path / "out", None).texts["li"]
    assert sum("umber of all records" in t or "umber of records" in t for t in listed) == 1
    assert not any("Nothing is published outside" in text for text in listed)


def test_a_simulation_is_stamped_first_and_last_and_its_truth_is_not_shown(place):
    sham = read(place / "sham", place / "sham.html")
    assert [a for _, a in sham.elements].count({"class": "stamp"}) == 2
    assert sham.texts["p"].count(STAMP) == 2
    assert "protects nobody" in sham.said and "% sure of the true one" not in sham.said
    assert "truth" not in sham.data
    assert STAMP not in read(place / "bounded", place / "clean.html").said


@pytest.mark.parametrize("name", [EVIL, "<img src=x>", "'\"", "<!--", "]]>", "$js", "{0}"])
def test_names_are_text_wherever_they_stand(place, name):
    found = read_release(place / "sham")
    plain, reader = (Reader(render(*named(found, text))) for text in ("a", name))
    assert reader.faults == []
    assert [tag for tag, _ in reader.elements] == [tag for tag, _ in plain.elements]
    assert reader.data["name"] == [name] * len(found.tree)
    assert reader.texts["h1"] == [f"{name}: simulated counts"]
    stated, _, odd, _ = named(found, name)
    assert not set("<>&\u2028\u2029") & set(embedded(stated, odd))


def test_a_hostile_name_stays_text_from_the_rows_to_the_page(tmp_path):
    zones = {1: EVIL.replace('"', "'"), 2: "Brook"}
    plan = read_plan(make_city(tmp_path, zones=zones, trips={1: 3, 2: 4}))
    release(plan, tmp_path / "out", base=tmp_path)
    found = read(tmp_path / "out", None)
    assert zones[1] in found.data["name"]
    assert len(found.all("script")) == 2 and found.all("b") == []


def test_a_count_that_is_not_exact_is_not_called_exact(place):
    found = read_release(place / "bounded")
    for known in (np.ones(len(found.values), bool), np.zeros(len(found.values), bool)):
        ends = Numbers(found.values, known)
        data = tuple(
            ends if name in ("lower", "upper") else column
            for (name, _), column in zip(found.rows.columns, found.rows.data, strict=True)
        )
        other = replace(found, rows=replace(found.rows, data=data))
        shown = json.loads(
            embedded(found.certificate, counts_at_once(other, NotSimulated(""), place))
        )
        assert shown["exact"] == [1, *[0] * (len(found.values) - 1)]
        assert shown["lower"] == by_level(found, ends.objects())


def by_level(found, column):
    """Return a column in the order of the page."""
    return [column[v] for v in np.argsort(found.tree.level, kind="stable")]


def test_a_release_of_gaussian_noise_with_nothing_exact_has_a_page(tmp_path):
    privacy = """
        neighbours = "add-remove"
        epsilon = 1.0
        delta = 1e-6
        noise = "discrete-gaussian"
        """
    plan = make_city(tmp_path, privacy=privacy, invariants="nonnegative = false")
    release(read_plan(plan), tmp_path / "out", base=tmp_path)
    found = read(tmp_path / "out", None)
    assert "discrete Gaussian, scale" in found.said and "A margin is exact" in found.said
    assert "Nothing is published outside the guarantee." in found.said
    assert "How many records there are" not in found.said
    # a term of the trade that the page uses is explained on it
    rho = read_certificate(tmp_path / "out" / files.CERTIFICATE).guarantee.measure.rho
    assert f"at most rho times a, here {rho:.6g} times a" in found.said
    ends = zip(found.data["lower"], found.data["upper"], strict=True)
    assert min(b - a for a, b in ends) > 0 and not any(found.data["exact"])


@pytest.mark.parametrize("method", ["imaging", "topdown"])
def test_releases_by_other_methods_have_pages(tmp_path, method):
    plan = read_plan(make_city(tmp_path, method=f'name = "{method}"'))
    release(plan, tmp_path / "out", base=tmp_path)
    assert "moved to the closest counts" in read(tmp_path / "out", None).said


def test_the_page_may_stay_with_its_release_and_goes_with_it(tmp_path, capsys):
    plan = make_city(tmp_path)
    out = tmp_path / "out"
    assert run(["release", str(plan), "--out", str(out), "--quiet"]) == 0
    assert run(["report", str(out)]) == 0
    assert capsys.readouterr().out == f"Wrote {out / files.REPORT}.\n"
    assert all(check.passed for check in verify(out))
    assert run(["report", str(out)]) == 0
    assert run(["release", str(plan), "--out", str(out), "--quiet", "--overwrite"]) == 0
    assert sorted(path.name for path in out.iterdir()) == sorted(files.ALWAYS)


def test_no_page_is_written_for_a_changed_release(place, tmp_path, capsys):
    spoilt = tmp_path / "spoilt"
    release(read_plan(make_city(tmp_path)), spoilt, base=tmp_path)
    text = (spoilt / files.CSV).read_text()
    (spoilt / files.CSV).write_text(text.replace("City", "Town"))
    with pytest.raises(ReleaseError, match=r"fails the check 'hashes'.*congenial verify"):
        report(spoilt)
    assert run(["report", str(spoilt)]) == 2
    assert "Traceback" not in capsys.readouterr().err
    assert not (spoilt / files.REPORT).exists()


@pytest.mark.parametrize(
    ("directory", "out", "told"),
    [
        ("nowhere", None, "there is no directory '"),
        (".", None, "cannot be read"),
        ("bounded", "nowhere/page.html", "does not exist"),
        ("bounded", "equal", "is a directory"),
        ("bounded", "bounded/release.csv", "is part of the release"),
        ("bounded", "bounded/measurements.csv", "is part of the release"),
        ("bounded", "bounded/other.html", "would be no part of the release"),
        ("bounded", "rows.csv", "exists and is no page about a release"),
    ],
)
def test_mistakes_are_refused_in_one_sentence(place, capsys, directory, out, told):
    before = (place / "bounded" / files.CSV).read_bytes()
    (place / "rows.csv").write_text("name,zone\n")
    option = [] if out is None else ["--out", str(place / out)]
    assert run(["report", str(place / directory), *option]) == 2
    said = capsys.readouterr().err
    assert told in said and said.count("\n") == 1
    assert (place / "bounded" / files.CSV).read_bytes() == before
    assert (place / "rows.csv").read_text() == "name,zone\n"
    assert not (place / "bounded" / "other.html").exists()


def test_pages_are_replaced_and_nothing_else(place, tmp_path):
    page = tmp_path / "page.html"
    assert run(["report", str(place / "bounded"), "--out", str(page)]) == 0
    assert run(["report", str(place / "equal"), "--out", str(page)]) == 0
    page.write_text("<!doctype html><title>Another page</title>")
    assert run(["report", str(place / "bounded"), "--out", str(page)]) == 2
    assert "Another page" in page.read_text()


def test_a_requirement_that_no_level_has_takes_no_column(tmp_path):
    required = "Required by the plan"
    plan = make_city(tmp_path, accuracy="required = { zone = 20 }")
    for name, wanted in (("asked", True), ("free", False)):
        plan = plan if wanted else make_city(tmp_path)
        release(read_plan(plan), tmp_path / name, base=tmp_path, simulate=2)
        text = report(tmp_path / name).read_text(encoding="utf-8")
        assert (required in text) is wanted
        levels = text[text.index('<table id="levels">') : text.index("</table>")]
        heads, *rows = levels.split("<tr>")[1:]
        assert [row.count("<td") + 1 for row in rows] == [heads.count("<th")] * 3
