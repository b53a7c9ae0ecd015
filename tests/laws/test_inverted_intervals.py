"""Intervals of releases conditioned on bounds: proved for every count, sum and level."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

import congenial as cg
from congenial.plan.plan import read_plan
from congenial.preview.explanation import as_text, explain
from congenial.releases.accuracy import UNKNOWN, levels, margins
from congenial.releases.making.make_release import release
from congenial.releases.sentences import about_intervals
from congenial.report.write import report
from congenial.verification.verdict import check_intervals, verify
from support.bounded import column, make_release, small_worlds
from support.city import make_city
from support.edited import change, failed, rewrite


@pytest.fixture(scope="module")
def pristine(tmp_path_factory):
    """Return a directory with a release conditioned on bounds."""
    return make_release(tmp_path_factory.mktemp("bounded"))


@pytest.fixture
def spoilt(pristine, tmp_path):
    """Return a release of its own to spoil."""
    return shutil.copytree(pristine / "out", tmp_path / "out")


def ends_of(read, alpha, together=1):
    engine = read.mechanism
    return cg.inference.inverted_intervals(engine, read.values, alpha, together=together)


def test_the_columns_follow_from_the_published_table(pristine):
    read = cg.read_release(pristine / "out")
    lower, upper = ends_of(read, 0.2)
    assert column(pristine / "out", "lower") == lower.tolist()
    assert column(pristine / "out", "upper") == upper.tolist()
    stated = read.certificate.accuracy
    assert stated.source == "inversion"
    assert "at least 80%, whatever" in about_intervals(stated.basis, 0.8)
    assert [v.margin for v in stated.levels] == [0, None, None]
    fixed = read.model.resolved.determined
    assert fixed.sum() == 1 and (lower[fixed] == read.values[fixed]).all()
    assert (lower[~fixed] < upper[~fixed]).all() and (lower >= 0).all()
    assert failed(pristine / "out") == []


def test_levels_hold_at_once_and_sums_by_the_ends_of_their_parts(pristine):
    read = cg.read_release(pristine / "out")
    level = read.tree.level
    for depth in (1, 2):
        here = level == depth
        lower, upper = (ends[here] for ends in ends_of(read, 0.2, together=int(here.sum())))
        assert np.array(column(pristine / "out", "level_lower"))[here].tolist() == lower.tolist()
        assert np.array(column(pristine / "out", "level_upper"))[here].tolist() == upper.tolist()
    north, odd, everything = read.certificate.accuracy.sums
    at = [read.tree.find(name) for name in ("1", "3", "5")]
    lower, upper = (ends[at].sum() for ends in ends_of(read, 0.2, together=3))
    assert (odd.lower, odd.value, odd.upper) == (lower, read.values[at].sum(), upper)
    arden = read.tree.find("Arden")
    assert north.lower == column(pristine / "out", "lower")[arden]
    assert everything.lower == everything.upper == everything.value == read.value("City")


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * REPLACE (CASE zone WHEN '3' THEN upper + 1 ELSE upper END AS upper) FROM t",
        "SELECT * REPLACE (CASE level WHEN 1 THEN lower + 1 ELSE lower END AS lower) FROM t",
        "SELECT * REPLACE (lower - 1 AS lower, upper - 1 AS upper) FROM t",
        "SELECT * REPLACE (level_upper + (level = 1)::INT AS level_upper) FROM t",
        "SELECT * REPLACE (CASE level WHEN 1 THEN NULL ELSE lower END AS lower) FROM t",
        "SELECT * REPLACE (nullif(lower, lower) AS lower, nullif(upper, upper) AS upper) FROM t",
    ],
)
def test_an_edited_end_is_detected(spoilt, query):
    rewrite(spoilt, query)
    assert failed(spoilt) == ["intervals"]


def test_another_version_is_named_if_it_may_compute_differently(spoilt):
    rewrite(spoilt, "SELECT * REPLACE (upper + 5 * (level = 2)::INT AS upper) FROM t")
    change(spoilt, lambda stated: stated["versions"].update(congenial="0.0.9"))
    (other,) = [check for check in verify(spoilt) if not check.passed]
    assert "unless congenial '0.0.9', which made it, computes it differently" in other.text


@pytest.mark.parametrize(
    ("part", "value"),
    [
        (("basis",), {"kind": "law"}),
        (("basis",), {"kind": "posterior", "not_by_inversion": "inversion-takes-too-much"}),
        (("levels", 2, "met"), True),
        (("levels", 2, "margin"), 3),
        (("sums", 1, "upper"), 10_000),
        (("sums", 0, "lower"), None),
    ],
)
def test_a_changed_statement_about_intervals_is_detected(spoilt, part, value):
    def put(stated):
        place = stated["accuracy"]
        for key in part[:-1]:
            place = place[key]
        place[part[-1]] = value

    change(spoilt, put)
    assert failed(spoilt) == ["intervals"]


def test_explain_says_that_intervals_are_unknown_before_a_draw(pristine):
    told = explain(read_plan(pristine / "plan.toml"), pristine)
    found = told.margins
    assert found.basis.source == "inversion"
    assert found.margin.tolist() == [0] + [UNKNOWN] * 9
    assert [v.margin for v in found.sums] == [None, None, 0]
    assert [v.met for v in told.accuracy] == [None, None, None]
    text = as_text(told)
    assert "computed from the released table alone" in text
    assert "The sum odd: no margin is known before it is drawn." in text
    assert "Required at zone: within ±50, no margin is known before it is drawn." in text


def test_a_page_explains_the_intervals(spoilt, tmp_path):
    page = report(spoilt, tmp_path / "page.html").read_text()
    assert "Interval, 80%" in page and "on average" not in page
    assert "worst true counts that this table leaves possible" in page
    assert "For each single count, the true count is inside" in page
    assert "with a probability of at least 80%, whatever the true counts are" in page
    assert "no error margin is known" not in page
    assert "level_lower" in page
    stated = cg.read_release(spoilt).certificate.accuracy.sums[1]
    assert f"Interval: from {stated.lower:,} to {stated.upper:,}. In at least 80%" in page


def test_unmeasured_and_exact_counts_have_them_too(tmp_path):
    privacy = 'neighbours = "substitute"\nepsilon = 1.0\nsplit = { zone = 1.0 }'
    for name, sections in {
        "zone": {"privacy": privacy},
        "gaussian": {"privacy": f'{privacy}\ndelta = 1e-6\nnoise = "discrete-gaussian"'},
        "exact": {"invariants": 'publish_exactly = ["root", "Arden"]\nnonnegative = true'},
    }.items():
        (tmp_path / name).mkdir()
        plan = read_plan(make_city(tmp_path / name, **sections))
        release(plan, tmp_path / name / "out", base=tmp_path / name)
        read = cg.read_release(tmp_path / name / "out")
        lower, upper = ends_of(read, 0.1)
        assert column(tmp_path / name / "out", "lower") == lower.tolist()
        assert column(tmp_path / name / "out", "upper") == upper.tolist()
        assert check_intervals(read).passed
        met = [v.margin for v in levels(read.model, margins(read.model, read.mechanism))]
        assert met == [0, None, None]


def test_intervals_beside_many_small_counts_contain_the_true_counts():
    held, shifted = [], []
    for tree, x, z, ends in small_worlds():
        assert ends.known.all()
        (total,) = ends.sums
        within = (ends.lower <= x) & (x <= ends.upper)
        held.append([within[tree.level == depth].mean() for depth in range(3)])
        some = x[[tree.find("d0"), tree.find("d1")]].sum()
        held[-1].append(total.lower <= some <= total.upper)
        shifted.append(z[0] - x[0])
    assert min(shifted) > 0  # the noise shifts the root in every release
    assert (np.mean(held, axis=0) >= 0.87).all()
