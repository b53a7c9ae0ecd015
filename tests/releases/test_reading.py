"""A release read back from its directory: its values, its posterior, its form for ArviZ."""

from __future__ import annotations

import csv
import json
import shutil
import sys
from math import lgamma, log

import numpy as np
import pytest

import congenial as cg
from congenial.errors import ArgumentError, ReleaseError, UnsupportedError
from congenial.plan.plan import read_plan
from congenial.releases import directory as files
from congenial.releases.certificate import read_certificate
from congenial.releases.making.make_release import release
from congenial.releases.reading import read_files
from support.city import make_city
from support.cross_tables import plan_of, random_rows, write_rows
from support.edited import rewrite
from support.notebook import facts, texts
from support.part_worlds import make_world
from support.parts import make

DAMAGE = {
    "SELECT * EXCLUDE (value) FROM t": "the plan gives",
    "SELECT *, value AS truth FROM t": "truth BIGINT; the plan gives",
    "SELECT * REPLACE (CASE WHEN level = 2 THEN NULL ELSE value END AS value) FROM t": (
        "a row without a value"
    ),
    "SELECT * REPLACE (value + (1::BIGINT << 60) AS value) FROM t": r"a value beyond 2\^53",
    "SELECT * REPLACE ('Elsewhere' AS root) FROM t": "does not start at the plan's root",
}
MEASURED = {
    "SELECT * REPLACE (measurement * 0 + (1::BIGINT << 60) AS measurement) FROM t": (
        r"a measurement beyond 2\^53"
    ),
    "SELECT * FROM t LIMIT 3": "does not have the nodes of",
}
EQUALITIES = 'publish_exactly = ["root"]\nnonnegative = false\n'


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Return a directory with a release under equalities alone."""
    found = tmp_path_factory.mktemp("releases")
    (found / "equal").mkdir()
    plan = read_plan(make_city(found / "equal", invariants=EQUALITIES))
    release(plan, found / "equal" / "out", base=found / "equal", simulate=4)
    return found


@pytest.fixture(scope="module")
def read(place):
    return cg.read_release(place / "equal" / "out")


def test_a_release_has_the_values_of_the_table(place, read):
    rows = files.read_table(place / "equal" / "out")
    assert read.values.tolist() == rows.column("value")
    assert [read.levels[v] for v in read.tree.level] == rows.column("level_name")
    assert read.tree.is_consistent(read.values)
    for v in range(len(read.tree)):
        assert read.value("/".join(read.tree.path(v))) == read.values[v]
    assert read.certificate.guarantee.epsilon == pytest.approx(1.0)


def test_the_posterior_is_the_likelihood_of_all_counts(tmp_path):
    """Two zones with an exact sum: every true count in turn, weighed by the release's own law."""
    trips = {1: 3, 2: 9}
    plan = make_city(tmp_path, zones={1: "Arden", 2: "Brook"}, trips=trips, invariants=EQUALITIES)
    release(read_plan(plan), tmp_path / "out", base=tmp_path, simulate=8)
    read = cg.read_release(tmp_path / "out")
    law = cg.condition(read.model.mechanism, read.model.invariant)
    total = read.value("City")
    assert total == 12
    counts = np.arange(total + 1)
    x = read.tree.roll_up(np.stack([counts, total - counts], axis=1))
    weights = np.exp(cg.inference.log_likelihood(read.values, law, x))
    values, probabilities = read.posterior().marginal("1")
    assert values.tolist() == counts.tolist()
    np.testing.assert_allclose(probabilities, weights / weights.sum(), atol=1e-9)


def test_bounds_leave_the_posterior_of_a_prior_times_the_normaliser(tmp_path):
    """Three zones, none below zero: the prior by brute force, times the law and its normaliser."""
    zones, trips = {1: "Arden", 2: "Brook", 3: "Brook"}, {1: 3, 2: 0, 3: 2}
    plan = make_city(tmp_path, zones=zones, trips=trips)
    release(read_plan(plan), tmp_path / "out", base=tmp_path, simulate=8)
    read = cg.read_release(tmp_path / "out")
    law = cg.condition(read.model.mechanism, read.model.invariant)
    assert not law.data_free
    prior = cg.inference.Prior(2.0, dispersion=0.7)
    tree, total = read.tree, read.value("City")
    order = [int(np.flatnonzero(tree.leaves == tree.find(k))[0]) for k in ("1", "2", "3")]
    cells = [(i, k, total - i - k) for i in range(total + 1) for k in range(total + 1 - i)]
    leaves = np.empty((len(cells), 3), dtype=np.int64)
    leaves[:, order] = cells
    x = tree.roll_up(leaves)
    scales = read.model.mechanism.scales
    noise = -(np.abs(x[:, None] - x[None]) / np.where(tree.parents < 0, np.inf, scales)).sum(axis=2)
    normaliser = np.exp(noise).sum(axis=0)  # of the counts x[j], over all that may be released
    known = [[lgamma(k + 0.7) - lgamma(k + 1.0) + k * log(2.0 / 2.7) for k in c] for c in cells]
    weight = np.exp(np.sum(known, axis=1)) * normaliser
    weight *= np.exp(cg.inference.log_likelihood(read.values, law, x))
    values, probabilities = read.posterior(prior).marginal("1")
    np.testing.assert_allclose(probabilities, _of(weight, cells)[values], atol=1e-8)
    # and not that of the prior alone
    assert np.abs(probabilities - _of(weight / normaliser, cells)[values]).max() > 0.01


def _of(weight, cells):
    """Return the law of the first cell."""
    found = np.bincount([c[0] for c in cells], weight)
    return found / found.sum()


def test_images_without_measurements_leave_no_posterior_and_say_so(tmp_path):
    plan = make_city(tmp_path, method='name = "imaging"')
    release(read_plan(plan), tmp_path / "out", base=tmp_path, simulate=8)
    with pytest.raises(UnsupportedError, match="an image without measurements"):
        cg.read_release(tmp_path / "out").posterior()
    # what a notebook shows of it
    assert len(repr(cg.read_release(tmp_path / "out"))) < 200 + len(str(tmp_path))


@pytest.mark.parametrize("spoil", ["table", "name", "plan", "gone", "certificate"])
def test_a_directory_that_contradicts_its_certificate_is_refused(place, tmp_path, spoil):
    out = shutil.copytree(place / "equal" / "out", tmp_path / "out")
    stated = json.loads((out / files.CERTIFICATE).read_text())
    if spoil == "table":
        (out / files.CSV).write_text((out / files.CSV).read_text() + "\n")
    elif spoil == "name":
        del stated["files"][files.PARQUET]
    elif spoil == "plan":
        stated["plan"]["privacy"]["epsilon"] = -1.0
    elif spoil == "gone":
        shutil.rmtree(out)
    if spoil in ("name", "plan"):
        (out / files.CERTIFICATE).write_text(json.dumps(stated))
    if spoil == "certificate":
        (out / files.CERTIFICATE).write_text("{}")
    with pytest.raises(ReleaseError):
        cg.read_release(out)


def test_released_counts_alone_serve_where_there_is_no_posterior(tmp_path):
    pytest.importorskip("arviz")
    plan = make_city(tmp_path, method='name = "imaging"')
    release(read_plan(plan), tmp_path / "out", base=tmp_path, simulate=8)
    found = cg.read_release(tmp_path / "out")
    with pytest.raises(UnsupportedError):
        found.to_arviz()
    with pytest.raises(ArgumentError, match="draws is -1"):
        found.to_arviz(-1)
    data = found.to_arviz(0)
    assert "posterior" not in (data.groups() if callable(data.groups) else data.children)
    np.testing.assert_array_equal(data["observed_data"]["released"].values, found.values)


def test_a_missing_extra_is_reported_with_the_command(read, monkeypatch):
    monkeypatch.setitem(sys.modules, "arviz", None)
    law = read.posterior()
    for ask in (read.to_arviz, law.to_arviz):
        with pytest.raises(UnsupportedError, match=r"pip install arviz"):
            ask()


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    place = tmp_path_factory.mktemp("city")
    plan = read_plan(
        make_city(place, method='name = "imaging"', release='publish = ["table", "measurements"]')
    )
    release(plan, place / "out", base=place)
    return place / "out", plan


def test_a_whole_release_is_read(measured):
    place, plan = measured
    found = read_files(place, read_certificate(place / files.CERTIFICATE), plan)
    with (place / files.CSV).open(encoding="utf-8", newline="") as file:
        assert found.values.tolist() == [int(line["value"]) for line in csv.DictReader(file)]
    assert found.tree.is_consistent(found.values)
    assert len(found.measured) == len(found.tree)


@pytest.mark.parametrize("query", [*DAMAGE, *MEASURED])
def test_other_tables_are_refused(measured, tmp_path, query):
    place, plan = shutil.copytree(measured[0], tmp_path / "out"), measured[1]
    if query in DAMAGE:
        rewrite(place, query)
    else:
        rewrite(place, query, files.MEASUREMENTS)
    with pytest.raises(ReleaseError, match=DAMAGE.get(query) or MEASURED[query]):
        read_files(place, read_certificate(place / files.CERTIFICATE), plan)


def test_the_old_name_of_its_files_warns(read):
    with pytest.warns(DeprecationWarning, match="contents is now the release itself"):
        assert read.contents.rows is read.rows
    with pytest.warns(DeprecationWarning, match="parquet is now rows"):
        assert read.parquet is read.rows


def test_the_table_as_a_data_frame_has_the_rows_of_its_files(measured):
    place, _ = measured
    found = cg.read_release(place)
    with (place / files.CSV).open(encoding="utf-8", newline="") as file:
        lines = list(csv.DictReader(file))
    with (place / files.MEASUREMENTS[0]).open(encoding="utf-8", newline="") as file:
        more = list(csv.DictReader(file))
    expected = [one | other for one, other in zip(lines, more, strict=True)]
    frames = found.to_pandas(), found.to_polars(), found.to_arrow()
    rows = (
        frames[0].astype(object).where(frames[0].notna(), None).to_dict("records"),
        frames[1].to_dicts(),
        frames[2].to_pylist(),
    )
    for given in rows:
        texts = [{k: "" if v is None else str(v) for k, v in row.items()} for row in given]
        assert texts == expected
    assert frames[0]["value"].dtype == np.int64


@pytest.mark.parametrize(
    "parts",
    [
        {"method": 'name = "imaging"', "release": 'publish = ["table", "measurements"]'},
        {"invariants": EQUALITIES},
        {},
    ],
    ids=["measurements", "law", "inversion"],
)
def test_the_interval_of_a_sum_is_that_of_a_plan_that_asks_for_it(tmp_path, parts):
    sums = {"accuracy": 'sums = { both = ["Arden/1", "Brook"] }'}
    plans = [read_plan(make_city(tmp_path, **parts, **more)) for more in (sums, {})]
    for name, plan in zip(("asked", "plain"), plans, strict=True):
        release(plan, tmp_path / name, base=tmp_path, simulate=5)
    asked, plain = (cg.read_release(tmp_path / name) for name in ("asked", "plain"))
    assert asked.values.tolist() == plain.values.tolist()
    [stated] = asked.certificate.accuracy.sums
    assert plain.interval_of_sum(["Arden/1", "Brook"]) == (stated.lower, stated.upper)
    at = [plain.tree.find("Arden/1"), plain.tree.find("Brook")]
    assert plain.interval_of_sum(at) == (stated.lower, stated.upper)
    for twice in (["Arden/1", "Brook", "Brook"], [*at, "Brook"], [*at, at[0]], np.array(at * 2)):
        assert plain.interval_of_sum(twice) == (stated.lower, stated.upper)
    # a text would be read letter by letter, and a number be rounded
    for wrong, fault in (
        ("12", "nodes is '12'; give a list"),
        (12, "nodes is 12"),
        ([1.5], "node is 1.5"),
        ([True], "node is true"),
    ):
        with pytest.raises(cg.errors.ArgumentError, match=fault):
            plain.interval_of_sum(wrong)
        with pytest.raises(cg.errors.ArgumentError, match=fault.replace("true", "True")):
            plain.posterior("flat").interval_of_sum(wrong)
    with pytest.raises(cg.errors.ArgumentError, match="no node"):
        plain.interval_of_sum([])
    with pytest.raises(cg.errors.ArgumentError, match="out of range"):
        plain.interval_of_sum([len(plain.tree)])
    with pytest.raises(cg.errors.PlanError, match=r"^nodes names 'Nowhere'"):
        plain.interval_of_sum(["Nowhere"])


def test_a_sum_without_an_interval_says_why(tmp_path):
    plan = read_plan(make_city(tmp_path, method='name = "imaging"'))
    release(plan, tmp_path / "out", base=tmp_path, simulate=5)
    with pytest.raises(UnsupportedError, match="no interval for this sum"):
        cg.read_release(tmp_path / "out").interval_of_sum(["Brook"])


def test_a_release_is_shown_by_its_guarantee_and_first_rows_without_true_counts(tmp_path):
    place = tmp_path / "<b>"
    place.mkdir()
    plan = read_plan(make_city(place, trips={1: 31, 2: 0, 3: 12, 4: 7, 5: 25, 6: 4_000}))
    release(plan, place / "<i>", base=place, simulate=4, with_truth=True)
    read = cg.read_release(place / "<i>")
    assert repr(read) == (
        f"Release({str(place / '<i>')!r}: 10 counts, epsilon 1, SIMULATION: NOT PRIVATE)"
    )
    html = read._repr_html_()
    shown = texts(html)
    assert shown[0] == "Release <i>"
    assert facts(html)["levels"] == "root, borough, zone"
    assert {"SIMULATION: NOT PRIVATE", read.certificate.sentence} <= set(shown)
    assert "truth" not in shown
    assert {f"{value:,}" for value in read.values.tolist()} <= set(shown)
    other = [name for name, _ in read.rows.columns if name != "truth"]
    told = {cell for name in other for cell in read.rows.column(name)}
    secret = {f"{value:,}" for value in set(read.rows.column("truth")) - told}
    assert secret
    assert not secret & set(shown)
    release(plan, place / "real", base=place)
    assert "SIMULATION" not in repr(cg.read_release(place / "real"))


@pytest.mark.parametrize("seed", range(4))
def test_a_part_of_a_random_release_has_its_rows(seed, tmp_path):
    rng = np.random.default_rng([seed, 2031])
    make_world(tmp_path, rng)
    make(tmp_path, simulate=seed)
    whole = cg.read_release(tmp_path / "out")
    for v in rng.choice(len(whole.tree), 6).tolist():
        path = whole.tree.path(v)[1:]
        part = cg.read_release(tmp_path / "out", within=path)
        assert part.within == path
        on = [
            w
            for w in range(len(whole.tree))
            if whole.tree.path(w)[1 : len(path) + 1] == path[: len(whole.tree.path(w)) - 1]
        ]
        assert part.rows.column("value") == part.values.tolist() == whole.values[on].tolist()
        assert [part.tree.path(w) for w in range(len(on))] == [whole.tree.path(w) for w in on]
        assert part.table(level=len(path)).rows == ((*whole.tree.path(v), whole.values[v]),)
        frame = part.to_pandas()
        assert frame.equals(whole.to_pandas().iloc[on].reset_index(drop=True))


def test_a_part_of_a_table_has_the_counts_of_its_places(tmp_path):
    write_rows(tmp_path, random_rows(1))
    cg.release(plan_of(), tmp_path / "out", base=tmp_path, simulate=2)
    whole, part = (cg.read_release(tmp_path / "out", within=path) for path in ((), "South"))
    assert "within South" in repr(part) and "within" not in repr(whole)
    for margin in ((), "sex"):
        for level in ("area", "block"):
            rows = whole.table(margin, level).rows
            assert part.table(margin, level).rows == tuple(r for r in rows if r[1] == "South")


def test_a_part_refuses_what_follows_from_all_counts(tmp_path):
    both = 'publish = ["table", "measurements"]'
    plan = read_plan(make_city(tmp_path, method='name = "topdown"', release=both))
    cg.release(plan, tmp_path / "out", base=tmp_path, simulate=1)
    part = cg.read_release(tmp_path / "out", within="Arden")
    assert part.levels == ("root", "borough", "zone") and len(part.tree) == 5
    assert part.measured.column("measurement")[0] == part.values[0]
    for ask in (
        lambda: part.model,
        lambda: part.mechanism,
        lambda: part.measurements,
        part.posterior,
        lambda: part.posterior("flat"),
        lambda: part.interval_of_sum(["Arden"]),
        lambda: part.to_arviz(draws=0),
    ):
        with pytest.raises(UnsupportedError, match=r"within 'Arden' were read; leave `within` out"):
            ask()


@pytest.mark.parametrize("within", ["Queens", "Arden/9", "", "Arden/1/x", ["Arden/1"], "' OR 1=1"])
def test_a_node_that_a_release_does_not_have_is_refused(place, within):
    with pytest.raises(
        ArgumentError, match=r"has no node .*; give the path of one of borough or z"
    ):
        cg.read_release(place / "equal" / "out", within=within)


@pytest.mark.parametrize("within", [3, ["Arden", 1], "\ud800", "a\0b"])
def test_a_path_that_is_none_is_refused(place, within):
    with pytest.raises(ArgumentError, match=r"within is .*; give a path such as 'a/b'"):
        cg.read_release(place / "equal" / "out", within=within)


def test_a_part_of_a_changed_release_is_refused(place, tmp_path):
    shutil.copytree(place / "equal" / "out", tmp_path / "out")
    (tmp_path / "out" / files.CSV).write_text("x")
    with pytest.raises(ReleaseError, match="is not the file that the certificate"):
        cg.read_release(tmp_path / "out", within="Arden")
