"""Intervals by the posterior, for releases conditioned on bounds that inversion cannot handle."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

import congenial as cg
from congenial.errors import ArgumentError, NumericalError, UnsupportedError
from congenial.inference import inversion
from congenial.plan.plan import read_plan
from congenial.releases import intervals as ends_module
from congenial.releases.accuracy import levels, margins
from congenial.releases.intervals import as_likely, intervals, posterior_ends
from congenial.releases.making.make_release import release
from congenial.releases.model import build_model, choose_method
from congenial.releases.sentences import about_intervals
from congenial.report.write import report
from congenial.sum_network.marginals import interval_and_reach
from congenial.verification.verdict import check_intervals, verify
from support.bounded import column, make_release, small_worlds
from support.city import make_city
from support.edited import change, failed, rewrite


def refused(*_):
    raise UnsupportedError("the tables of the inversion are too large; use less noise.")


@pytest.fixture(scope="module", autouse=True)
def without_inversion():
    """Take it that the tables of every inversion are too large."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(inversion, "invert", refused)
        yield


@pytest.fixture(scope="module")
def pristine(tmp_path_factory, without_inversion):
    """Return a directory with a release conditioned on bounds."""
    return make_release(tmp_path_factory.mktemp("bounded"))


@pytest.fixture
def spoilt(pristine, tmp_path):
    """Return a release of its own to spoil."""
    return shutil.copytree(pristine / "out", tmp_path / "out")


def leaves_of(read, ends):
    """Return what a column holds: ends of leaves, counts that are exact, and nothing else."""
    fixed = read.model.resolved.determined
    kept = np.where(fixed, read.values, ends).tolist()
    return [v if k else None for v, k in zip(kept, fixed | read.tree.is_leaf, strict=True)]


def test_the_columns_equal_the_readers_posterior(pristine):
    read = cg.read_release(pristine / "out")
    law = read.posterior("negative-binomial")
    found = law.summary(1.0 - 0.8)
    assert column(pristine / "out", "lower") == leaves_of(read, found.lower)
    assert column(pristine / "out", "upper") == leaves_of(read, found.upper)
    stated = read.certificate.accuracy
    told = about_intervals(stated.basis, 0.8)
    assert stated.source == "posterior" and "On average" in told
    assert "about 80%" in told and "No interval here is proved" in told
    assert [v.margin for v in stated.levels] == [0, None, None]
    assert failed(pristine / "out") == []


def test_sums_levels_and_inner_counts_have_no_interval_unless_exact(pristine):
    read = cg.read_release(pristine / "out")
    exact, root = read.model.resolved.determined, read.value("City")
    assert [read.tree.names[v] for v in np.flatnonzero(exact)] == ["City"]
    for end in ("level_lower", "level_upper"):
        assert column(pristine / "out", end) == [root] + [None] * 9
    for end in ("lower", "upper"):
        found = [v is not None for v in column(pristine / "out", end)]
        assert found == (exact | read.tree.is_leaf).tolist()
    north, odd, everything = read.certificate.accuracy.sums
    assert [(v.lower, v.upper) for v in (north, odd)] == [(None, None)] * 2
    assert odd.value == sum(read.value(name) for name in ("1", "3", "5"))
    assert everything.lower == everything.upper == everything.value == root


def test_a_few_counts_by_enumeration(tmp_path):
    """Three zones, none below zero: all counts in turn, by prior and noise alone."""
    zones, trips = {1: "Arden", 2: "Brook", 3: "Brook"}, {1: 3, 2: 0, 3: 2}
    plan = read_plan(make_city(tmp_path, zones=zones, trips=trips))
    release(plan, tmp_path / "out", base=tmp_path, simulate=8)
    read = cg.read_release(tmp_path / "out")
    prior = read.posterior("negative-binomial").prior
    tree, total = read.tree, read.value("City")
    order = [int(np.flatnonzero(tree.leaves == tree.find(k))[0]) for k in ("1", "2", "3")]
    cells = [(i, k, total - i - k) for i in range(total + 1) for k in range(total + 1 - i)]
    leaves = np.empty((len(cells), 3), dtype=np.int64)
    leaves[:, order] = cells
    x = tree.roll_up(leaves)
    scales = read.model.mechanism.scales
    log = np.array([prior.log_pmf(row).sum() for row in leaves])
    log -= (np.abs(x - read.values) / scales)[:, 1:].sum(axis=1)
    weights = np.exp(log - log.max())
    weights /= weights.sum()
    low, high = column(tmp_path / "out", "lower"), column(tmp_path / "out", "upper")
    for v in tree.leaves:
        within = weights[(low[v] <= x[:, v]) & (x[:, v] <= high[v])].sum()
        assert within >= 0.9 - 1e-6
        width = high[v] - low[v]
        for first in range(total + 1):  # none that is shorter has as much
            shorter = weights[(first <= x[:, v]) & (x[:, v] < first + width)].sum()
            assert shorter < 0.9


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * REPLACE (CASE zone WHEN '3' THEN upper + 1 ELSE upper END AS upper) FROM t",
        "SELECT * REPLACE (CASE zone WHEN '1' THEN lower - 1 ELSE lower END AS lower) FROM t",
        "SELECT * REPLACE (lower + 2 AS lower, upper + 2 AS upper) FROM t",
        "SELECT * REPLACE (lower + 1 AS lower, upper + 1 AS upper) FROM t",
        "SELECT * REPLACE (lower - 1 AS lower, upper - 1 AS upper) FROM t",
        # an exact count
        "SELECT * REPLACE (lower + (level = 0)::INT AS lower, upper + (level = 0)::INT AS upper) "
        "FROM t",
        # below the least possible count
        "SELECT * REPLACE (CASE WHEN zone = '5' THEN -1 ELSE lower END AS lower, "
        "CASE WHEN zone = '5' THEN upper - lower - 1 ELSE upper END AS upper) FROM t",
        "SELECT * REPLACE (level_upper + (level = 0)::INT AS level_upper) FROM t",
        # an interval where none can be
        "SELECT * REPLACE (CASE level WHEN 1 THEN 0 ELSE lower END AS lower, "
        "CASE level WHEN 1 THEN 10000 ELSE upper END AS upper) FROM t",
        "SELECT * REPLACE (CASE zone WHEN '1' THEN NULL ELSE lower END AS lower) FROM t",
        "SELECT * REPLACE (nullif(lower, lower) AS lower, nullif(upper, upper) AS upper) FROM t",
    ],
)
def test_an_edited_end_is_detected(spoilt, query):
    rewrite(spoilt, query)
    assert failed(spoilt) == ["intervals"]


def test_another_version_is_named_if_it_may_fit_differently(spoilt):
    rewrite(spoilt, "SELECT * REPLACE (upper + 5 * (level = 2)::INT AS upper) FROM t")
    (own,) = [check for check in verify(spoilt) if not check.passed]
    assert "which made it" not in own.text
    change(spoilt, lambda stated: stated["versions"].update(congenial="0.0.9"))
    (other,) = [check for check in verify(spoilt) if not check.passed]
    assert "unless congenial '0.0.9', which made it, computes it differently" in other.text


@pytest.mark.parametrize(
    ("part", "value"),
    [
        (("basis",), {"kind": "law"}),
        (("basis",), {"kind": "none", "obstacles": ["bounds-bind"]}),
        (("basis", "not_by_inversion"), "inversion-needs-wider-tables"),
        (("levels", 2, "met"), True),
        (("levels", 2, "margin"), 3),
        (("levels", 0, "margin"), -1),
        (("levels", 0, "together"), 1),
        (("sums", 2, "upper"), 10_000),
        (("sums", 1, "upper"), 10_000),
        (("sums", 0, "lower"), 0),
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


def test_a_page_explains_the_intervals_and_promises_no_more(spoilt, tmp_path):
    page = report(spoilt, tmp_path / "page.html").read_text()
    assert "Interval, 80% on average" in page
    assert "On average over the lowest level of tables like this one, about 80%" in page
    assert "Only the lowest level and exact counts have" in page
    assert "zone ±50: not known" in page
    assert "with a probability of at least" not in page and "the true one is likely" not in page
    assert page.count("no error margin is known") == 2
    assert "level_lower" not in page


REASONS = [
    (UnsupportedError("tables"), "the posterior would take too much memory or time"),
    (MemoryError(), "the posterior would take too much memory or time"),
    (NumericalError("bound"), "the numerical error of the posterior exceeds its limit"),
    (ArgumentError("prior"), "no prior can be fitted to the table"),
]


@pytest.mark.parametrize(("error", "why"), REASONS, ids=lambda v: type(v).__name__)
def test_intervals_that_a_posterior_cannot_give_are_empty_with_a_reason(
    error, why, pristine, tmp_path, monkeypatch
):
    def refuse(*_):
        raise error

    monkeypatch.setattr(ends_module, "posterior_of_table", refuse)
    plan = read_plan(pristine / "plan.toml")
    made = release(plan, tmp_path / "out", base=pristine)
    stated = made.certificate.accuracy
    told = about_intervals(stated.basis, 0.8)
    assert stated.source == "none" and told.startswith("No error margin is known") and why in told
    assert column(tmp_path / "out", "lower")[1:] == [None] * 9
    assert [v.lower is None for v in stated.sums] == [True, True, False]
    assert failed(tmp_path / "out") == []
    monkeypatch.undo()
    # where there are intervals, none may be left out
    assert failed(tmp_path / "out") == ["intervals"]


def test_too_much_work_is_refused(pristine, tmp_path, monkeypatch):
    plan = read_plan(pristine / "plan.toml")
    scale = float(build_model(plan, cg.read_release(pristine / "out").tree).levels[2].scale)
    for more, known in ((1e-6, True), (-1e-6, False)):
        monkeypatch.setattr(ends_module, "MOST_WORK", 6 * max(scale, 4.0) ** 2 + more)
        made = release(plan, tmp_path / str(known), base=pristine).certificate.accuracy
        assert made.source == ("posterior" if known else "none")
        assert ("would take too much work" in about_intervals(made.basis, 0.8)) != known
        read = cg.read_release(tmp_path / str(known))
        ends = np.array(column(tmp_path / str(known), "upper"), dtype=object)
        assert [v is not None for v in ends[read.tree.leaves]] == [known] * 6


def world(tmp_path, scale):
    """Return a model of 8 boroughs of 12 zones, whose noise is so many times the plan's."""
    zones = {i: f"B{i % 8}" for i in range(96)}
    plan = read_plan(make_city(tmp_path, zones=zones, trips={0: 1}))
    paths = [("City", name, str(zone)) for zone, name in zones.items()]
    model = build_model(plan, cg.Tree.from_paths(paths))
    noisy = cg.Additive(cg.DiscreteLaplace(model.mechanism.scales * scale), model.tree)
    return model, cg.condition(noisy, model.invariant)


def coverage(tmp_path, scale):
    """Return the share of leaves whose interval holds them, over made-up cities."""
    model, engine = world(tmp_path, scale)
    leaves, rng = model.tree.leaves, np.random.default_rng(20_261_121)
    found, held = margins(model, choose_method(model)), []
    for made in range(60):
        x = model.tree.roll_up(rng.negative_binomial(1.0, 1.0 / 41.0, leaves.size))
        z = engine.sample(x, rng=cg.seeded(made))
        ends = intervals(model, choose_method(model), found, z)
        assert ends.basis.source == "posterior"
        held.append(((ends.lower <= x) & (x <= ends.upper))[leaves].mean())
    return float(np.mean(held))


def test_coverage_is_right_on_average_and_too_low_for_wider_noise_than_stated(tmp_path):
    """5,760 leaves: a share has a standard error of 0.004, five of which are 0.02."""
    assert 0.87 <= coverage(tmp_path, 1.0) <= 0.93
    assert coverage(tmp_path, 1.0 / 0.7) < 0.84


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
        found = read.posterior("negative-binomial").summary(0.1)
        assert column(tmp_path / name / "out", "lower") == leaves_of(read, found.lower)
        assert column(tmp_path / name / "out", "upper") == leaves_of(read, found.upper)
        assert check_intervals(read).passed
        met = [v.margin for v in levels(read.model, margins(read.model, read.mechanism))]
        assert met == [0, None, None]


def test_a_shifted_interval_is_accepted_only_if_equally_likely(pristine, monkeypatch):
    read = cg.read_release(pristine / "out")
    model, value = read.model, read.values
    at = model.tree.leaves
    found = tuple(ends[at] for ends in posterior_ends(model, value))
    stated = found[0] + 1, found[1] + 1
    assert as_likely(model, value, at, found, found) is False  # no shift at all
    assert not as_likely(model, value, at, stated, found)
    assert not as_likely(model, value, at, (stated[0], found[1]), found)
    monkeypatch.setattr(ends_module, "_CLOSE", 1.0)
    assert as_likely(model, value, at, stated, found)
    monkeypatch.setattr(ends_module, "_FEW", at.size - 1)
    assert not as_likely(model, value, at, stated, found)


def test_the_lowest_of_equally_likely_intervals_is_found():
    values = np.arange(6)
    for off in (0.0, 1e-12, -1e-12):  # whatever the last digits
        even = np.full(6, 1.0 / 6.0)
        even[1:5] += np.array([1.0, -1.0, 1.0, -1.0]) * off
        assert interval_and_reach(values, even, 0.5)[:2] == (0, 2)
        assert interval_and_reach(values, even[::-1].copy(), 0.5)[:2] == (0, 2)
    tilted = np.array([1.0, 2.0, 2.0, 2.0, 2.0 + 1e-6, 1.0]) / (10.0 + 1e-6)
    assert interval_and_reach(values, tilted, 0.5)[:2] == (2, 4)


def test_beside_many_small_counts_leaves_have_coverage_and_sums_no_interval():
    held = []
    for tree, x, _, ends in small_worlds():
        assert (ends.known == tree.is_leaf).all()
        assert (ends.sums[0].lower, ends.sums[0].upper) == (None, None)
        held.append(((ends.lower <= x) & (x <= ends.upper))[tree.leaves].mean())
    assert 0.85 <= np.mean(held) <= 0.97
