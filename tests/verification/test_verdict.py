"""Whatever is changed in a release, `verify` finds it."""

from __future__ import annotations

import json
import shutil

import duckdb
import pytest

from congenial.data.counts import build_domain
from congenial.errors import PlanError, ReleaseError
from congenial.plan.plan import parse_plan, read_plan
from congenial.preview.explanation import as_text, explain
from congenial.releases import directory as files
from congenial.releases.certificate import plan_digest
from congenial.releases.making.make_release import release
from congenial.releases.model import build_model
from congenial.report.write import report
from congenial.verification.verdict import verify
from support.city import make_city
from support.edited import failed


@pytest.fixture(scope="module")
def pristine(tmp_path_factory):
    """Return a directory with a release and one with a simulation that shows its truth."""
    place = tmp_path_factory.mktemp("pristine")
    plan = read_plan(make_city(place))
    release(plan, place / "real", base=place)
    release(plan, place / "sham", base=place, simulate=5, with_truth=True)
    return place


@pytest.fixture
def real(pristine, tmp_path):
    """Return a release of its own to spoil."""
    return shutil.copytree(pristine / "real", tmp_path / "real")


@pytest.fixture
def sham(pristine, tmp_path):
    """Return a simulation of its own to spoil."""
    return shutil.copytree(pristine / "sham", tmp_path / "sham")


def restate(directory, change, *, rehash=True):
    """Change the certificate; give it the digests of the files as they are now."""
    path = directory / files.CERTIFICATE
    stated = json.loads(path.read_text())
    change(stated)
    if rehash:
        stated["files"] = {name: files.sha256(directory / name) for name in stated["files"]}
        stated["plan_sha256"] = plan_digest(stated["plan"])
    path.write_text(json.dumps(stated))


def retable(directory, query):
    """Rewrite both tables by a query on `t`, and certify their new digests."""
    parquet, csv = directory / files.PARQUET, directory / files.CSV
    with duckdb.connect(":memory:", config={"threads": 1}) as connection:
        connection.execute(f"CREATE TABLE t AS SELECT * FROM '{parquet}'")
        connection.execute(f"COPY ({query}) TO '{parquet}' (FORMAT parquet)")
        connection.execute(f"COPY ({query}) TO '{csv}' (FORMAT csv, HEADER)")
    restate(directory, lambda stated: None)


def test_an_untouched_release_passes(pristine):
    assert failed(pristine / "real") == []
    assert failed(pristine / "sham") == []
    assert len(verify(pristine / "real")) >= 15


def test_a_release_for_a_goal_passes_and_its_noise_follows_from_it(tmp_path):
    privacy = 'neighbours = "substitute"\nepsilon = 1.0\ngoal = { borough = 3, zone = 1 }'
    plan = read_plan(make_city(tmp_path, privacy=privacy))
    release(plan, tmp_path / "out", base=tmp_path)
    assert failed(tmp_path / "out") == []
    stated = json.loads((tmp_path / "out" / files.CERTIFICATE).read_text())
    model = build_model(plan, build_domain(plan, base=tmp_path))
    assert [v["scale"] for v in stated["noise"]["levels"]] == [v.scale for v in model.levels]
    assert stated["guarantee"]["epsilon"] <= 1.0

    def weigh(certificate):
        certificate["plan"]["privacy"]["goal"]["borough"] = 3.1

    restate(tmp_path / "out", weigh)
    assert "noise" in failed(tmp_path / "out")


def test_rewriting_a_file_unchanged_passes(real):
    # the helper by which the tests below spoil a release does not spoil it by itself
    retable(real, "SELECT * FROM t")
    assert failed(real) == []


def test_verify_needs_no_data(real):
    assert sorted(p.name for p in real.parent.iterdir()) == ["real"]
    assert failed(real) == []


@pytest.mark.parametrize("name", [files.CSV, files.PARQUET, files.CERTIFICATE])
def test_a_missing_file_fails(real, name):
    (real / name).unlink()
    assert failed(real) == ["files"]


@pytest.mark.parametrize("name", [files.CSV, files.PARQUET])
def test_a_changed_byte_fails(real, name):
    path = real / name
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    assert "hashes" in failed(real)


@pytest.mark.parametrize("name", [files.CSV, files.PARQUET])
def test_a_file_that_is_not_a_table_fails(real, name):
    (real / name).write_bytes(b'\xff\xfe"')
    restate(real, lambda stated: None)
    assert failed(real) == ["table"]


@pytest.mark.parametrize("content", ["", "{", "[]", "{}", '{"format": 1}'])
def test_an_invalid_certificate_fails(real, content):
    (real / files.CERTIFICATE).write_text(content)
    assert failed(real) == ["certificate"]


@pytest.mark.parametrize(
    ("query", "check"),
    [
        # one zone more
        (
            "SELECT * REPLACE (value + (zone = '1' AND zone IS NOT NULL)::INT AS value) FROM t",
            "additivity",
        ),
        # every zone twice: boroughs no longer fit
        (
            "SELECT * REPLACE (CASE WHEN level = 2 THEN 2 * value ELSE value END AS value) FROM t",
            "additivity",
        ),
        # a person taken from an empty zone and given to its neighbour
        (
            "SELECT * REPLACE (CASE zone WHEN '1' THEN value + 100000 WHEN '2' THEN value - 100000 "
            "ELSE value END AS value) FROM t",
            "bounds",
        ),
        # its count may be zero, and then everything still adds up
        ("SELECT * FROM t WHERE zone IS DISTINCT FROM '3'", "domain"),
        ("SELECT * FROM t WHERE borough IS DISTINCT FROM 'Combe' OR zone IS NOT NULL", "table"),
        ("SELECT * FROM t UNION ALL SELECT * FROM t WHERE zone = '3'", "table"),
        ("SELECT * REPLACE (value::DOUBLE AS value) FROM t", "table"),
        ("SELECT * REPLACE (value / 2 AS value) FROM t", "table"),
        (
            "SELECT * REPLACE (CASE WHEN level = 1 THEN NULL ELSE value END AS value) FROM t",
            "table",
        ),
        ("SELECT * EXCLUDE (level_name) FROM t", "table"),
        ("SELECT *, value AS truth FROM t", "table"),
        ("SELECT * REPLACE (0::BIGINT AS level) FROM t", "table"),
        ("SELECT * REPLACE ('zone' AS level_name) FROM t", "table"),
        ("SELECT * REPLACE ('Town' AS root) FROM t", "table"),
        (
            "SELECT * REPLACE (CASE WHEN zone = '4' THEN NULL ELSE borough END AS borough) FROM t",
            "table",
        ),
        ("SELECT * FROM t WHERE zone IS NULL", "levels"),
        ("SELECT * FROM t WHERE false", "table"),
    ],
)
def test_a_changed_table_with_new_hashes_fails(real, query, check):
    retable(real, query)
    assert check in failed(real)


def test_csv_and_parquet_that_differ_fail(real):
    path = real / files.CSV
    lines = path.read_text().splitlines()
    at = next(i for i, line in enumerate(lines) if line.startswith("2,"))
    head, value, lower, upper = lines[at].rsplit(",", 3)
    lines[at] = f"{head},{int(value) + 1},{lower},{upper}"
    path.write_text("\n".join(lines) + "\n")
    restate(real, lambda stated: None)
    assert failed(real) == ["CSV and Parquet"]
    lines[at] = f"{head},{value}.0,{lower},{upper}"
    path.write_text("\n".join(lines) + "\n")
    restate(real, lambda stated: None)
    assert failed(real) == ["CSV and Parquet", "integers"]


def put(*path, value):
    """Return a change of the certificate at a path of keys."""

    def change(stated):
        for key in path[:-1]:
            stated = stated[key]
        assert stated[path[-1]] != value
        stated[path[-1]] = value

    return change


@pytest.mark.parametrize(
    ("change", "check"),
    [
        (put("guarantee", "epsilon", value=0.5), "guarantee"),
        (put("guarantee", "epsilon", value=1.0 + 1e-9), "guarantee"),
        (put("guarantee", "delta", value=1e-9), "guarantee"),
        (put("guarantee", "gamma", value=0.0), "guarantee"),
        (put("guarantee", "gamma_source", value="trivial"), "guarantee"),
        (put("guarantee", "gamma_source", value="proved elsewhere"), "certificate"),
        (put("guarantee", "base_epsilon", value=1.0), "guarantee"),
        (put("guarantee", "neighbours", "relation", value="add-remove"), "guarantee"),
        (put("guarantee", "datasets", "agree_on_exact_counts", value=False), "guarantee"),
        (put("guarantee", "numerical_error", value=1e-9), "guarantee"),
        (put("guarantee", "unprotected", value=[]), "unprotected"),
        (put("noise", "levels", 1, "scale", value=20.0), "noise"),
        (put("domain", "levels", 0, "published_exactly", value=0), "domain"),
        (put("domain", "levels", 2, "nodes", value=7), "domain"),
        (put("noise", "kind", value="discrete-gaussian"), "noise"),
        (put("guarantee", "numerical_error", value=1e-30), "proofs"),
        (put("method", value={"kind": "imaging", "norm": "l2"}), "method"),
        (put("simulation", value={"seed": 1, "with_truth": False}), "table"),
        (put("domain", "row_filter", value="zone < 3"), "domain"),
        (put("format", value=1), "certificate"),
        (put("format", value=3), "certificate"),
        (put("plan", "privacy", "epsilon", value=0.1), "guarantee"),
        (put("plan", "privacy", "epsilon", value=-1.0), "plan"),
        (put("plan", "privacy", "split", value={"borough": 0.6, "zone": 0.4}), "noise"),
        (put("plan", "privacy", "split", value={"borough": 0.6, "zone": 0.3}), "plan"),
        (put("plan", "privacy", "neighbours", value="add-remove"), "plan"),
        (put("plan", "invariants", "nonnegative", value=False), "guarantee"),
        (put("plan", "invariants", "publish_exactly", value=[]), "unprotected"),
        (put("plan", "invariants", "publish_exactly", value=["Nowhere"]), "guarantee"),
        (put("plan", "invariants", "at_most", value={"borough": 1}), "bounds"),
        (put("plan", "invariants", "at_least", value={"Arden": 10**6}), "bounds"),
        (put("plan", "invariants", "at_least", value={"zone": 0}), "invariants"),
        (put("plan", "invariants", "at_most", value={"Nowhere": 9}), "bounds"),
        (put("plan", "hierarchy", "domain", value="data"), "unprotected"),
        (put("plan", "hierarchy", "root", value="Town"), "table"),
        (put("plan", "hierarchy", "levels", value=["borough", "block"]), "plan"),
        (put("plan", "method", "name", value="imaging"), "guarantee"),
        (put("plan", "data", "where", value="zone > 3"), "domain"),
        (put("plan", "data", "source", value=3), "plan"),
    ],
)
def test_a_changed_claim_fails(real, change, check):
    restate(real, change)
    assert check in failed(real)


@pytest.mark.parametrize(
    "path",
    [
        ("guarantee", "measure", "kind"),
        ("noise", "levels", 1, "rho"),
        ("noise", "levels", 1, "scale"),
        ("ledger",),
        ("simulation",),
        ("domain", "row_filter"),
        ("method", "sampler"),
        ("made",),
        ("versions",),
    ],
)
def test_a_missing_part_fails(real, path):
    def change(stated):
        for key in path[:-1]:
            stated = stated[key]
        del stated[path[-1]]

    restate(real, change)
    assert failed(real) == ["certificate"]


def test_a_changed_plan_without_its_hash_fails(real):
    restate(real, put("plan", "data", "source", value="other.csv"), rehash=False)
    assert failed(real) == ["plan hash"]


def test_a_file_that_is_not_certified_fails(real):
    restate(real, lambda stated: stated["files"].pop(files.PARQUET))
    assert failed(real) == ["hashes"]


def test_an_unknown_field_fails(real):
    restate(real, lambda stated: stated.update(audited=True))
    assert failed(real) == ["certificate"]


def test_a_budget_larger_than_the_plan_allows_fails(real):
    # scales, claim and sentence all agree with each other, and not with the plan
    def halve(stated):
        for level in stated["noise"]["levels"][1:]:
            level["scale"] /= 2
        stated["guarantee"]["epsilon"] *= 2
        stated["guarantee"]["base_epsilon"] *= 2

    restate(real, halve)
    assert {"noise", "guarantee"} <= set(failed(real))


def test_a_simulation_without_its_marker_or_notes_fails(sham):
    (sham / files.MARKER).unlink()
    assert {"hashes", "simulation"} <= set(failed(sham))


def test_a_simulation_with_a_clean_note_fails(sham):
    retable(sham, "SELECT * REPLACE ('' AS note) FROM t")
    assert "simulation" in failed(sham)


def test_a_simulation_that_claims_to_be_real_fails(sham):
    restate(sham, put("simulation", value=None))
    assert failed(sham)


def test_a_pinned_count_that_is_not_the_true_count_fails(sham):
    retable(sham, "SELECT * REPLACE (truth + 1 AS truth) FROM t")
    assert failed(sham) == ["simulation"]


def test_a_simulation_of_a_plan_that_does_not_fit_its_nodes_fails(sham):
    restate(sham, put("plan", "invariants", "publish_exactly", value=["Nowhere"]))
    assert failed(sham) == ["guarantee"]


def test_a_place_without_a_release_is_refused(tmp_path):
    assert failed(tmp_path) == ["files"]
    with pytest.raises(ReleaseError, match=r"there is no directory '.*nowhere'"):
        verify(tmp_path / "nowhere")
    (tmp_path / "a file").touch()
    with pytest.raises(ReleaseError, match="a file' is not a directory"):
        verify(tmp_path / "a file")


@pytest.mark.parametrize("name", ["notes.txt", ".hidden", "truth.csv"])
def test_an_unknown_file_fails(real, name):
    (real / name).write_text("x")
    checks = verify(real)
    assert [(c.name, name in c.text) for c in checks if not c.passed] == [("files", True)]


@pytest.mark.parametrize("text", ["", "private", "SIMULATION: NOT PRIVATE"])
def test_a_marker_with_another_text_fails(sham, text):
    (sham / files.MARKER).write_text(text)
    restate(sham, lambda stated: None)
    assert failed(sham) == ["simulation"]


def release_with_error(place):
    """Release with noise so wide that its draws have a numerical error."""
    privacy = """
        neighbours = "substitute"
        epsilon = 0.001
        noise = "discrete-gaussian"
        delta = 1e-6
        split = { borough = 0.4, zone = 0.6 }
    """
    plan = make_city(place, method='name = "imaging"', privacy=privacy)
    release(read_plan(plan), place / "out", base=place)
    return place / "out"


def test_an_error_missing_everywhere_fails(tmp_path):
    out = release_with_error(tmp_path)
    assert failed(out) == []

    def forget(stated):
        part = stated["guarantee"]
        assert part["numerical_error"] > 0
        part["numerical_error"] = 0.0

    restate(out, forget)
    assert "numerical error" in failed(out)


@pytest.mark.parametrize("method", ["conditioning", "imaging", "posterior"])
def test_noise_that_is_drawn_exactly_has_no_delta(tmp_path, method):
    plan = make_city(tmp_path, method=f'name = "{method}"')
    made = release(read_plan(plan), tmp_path / "out", base=tmp_path)
    assert made.certificate.guarantee.delta == made.certificate.guarantee.numerical_error == 0.0
    assert made.certificate.sentence.startswith("1-differentially private: ")
    assert ", plus" not in made.certificate.sentence
    told = {check.name: check.text for check in verify(tmp_path / "out")}
    assert (
        told["numerical error"]
        == "the certificate states that a draw has no numerical error, as the method implies"
    )


def test_an_error_made_smaller_than_the_engine_s_is_noticed(tmp_path):
    real = release_with_error(tmp_path)
    file = real / files.CERTIFICATE
    text = json.loads(file.read_text(encoding="utf-8"))
    assert text["guarantee"]["numerical_error"] > 0
    text["guarantee"]["numerical_error"] = 0.0
    file.write_text(json.dumps(text), encoding="utf-8")
    assert "numerical error" in {check.name for check in verify(real) if not check.passed}


EXACT = 'publish_exactly = ["root"]'


@pytest.mark.parametrize("part", ["lower + 1 AS lower", "upper - 1 AS upper", "both", "stated"])
@pytest.mark.parametrize("version", [None, "0.0.9"])
def test_simulated_ends_pass_for_every_version(tmp_path, part, version):
    made = make_city(tmp_path, method='name = "imaging"', invariants=EXACT)
    release(read_plan(made), tmp_path / "out", base=tmp_path)
    here = tmp_path / "out"
    if version:
        restate(here, lambda stated: stated["versions"].update(congenial=version))
    assert failed(here) == []
    if part == "stated":

        def narrow(stated):
            stated["accuracy"]["levels"][2]["margin"] -= 1

        restate(here, narrow)
    else:
        part = "lower + 1 AS lower, upper - 1 AS upper" if part == "both" else part
        retable(here, f"SELECT * REPLACE ({part}) FROM t")
    assert failed(here) == ["intervals"]


def test_names_of_sums_and_versions_break_no_line(tmp_path):
    asked = 'sums = { "x\\u001b[31m\\nred" = ["Arden"], plain = ["Brook"] }'
    plan = read_plan(make_city(tmp_path, accuracy=asked, invariants=EXACT))
    lines = as_text(explain(plan, tmp_path)).splitlines()
    assert any(line.startswith(r"The sum 'x\x1b[31m\nred': within ±") for line in lines)
    assert any(line.startswith("The sum plain: within ±") for line in lines)
    release(plan, tmp_path / "out", base=tmp_path)
    restate(tmp_path / "out", lambda stated: stated["versions"].update(congenial="0.0\x1b[2J"))
    page = report(tmp_path / "out", tmp_path / "page.html").read_text()
    assert "\x1b" not in page
    assert r"x\x1b[31m\nred" in page and r"0.0\x1b[2J" in page
    text = (tmp_path / "plan.toml").read_text()
    text = text.replace('["Arden"]', "[]")
    with pytest.raises(PlanError) as told:
        parse_plan(text)
    assert "\x1b" not in str(told.value) and "\n" not in str(told.value)


BEST = {"method": 'name = "posterior"', "release": 'publish = ["table", "measurements"]'}


@pytest.fixture(scope="module")
def best(tmp_path_factory):
    """Return a directory with releases by the posterior: with and without its measurements."""
    place = tmp_path_factory.mktemp("best")
    release(read_plan(make_city(place, **BEST)), place / "both", base=place, simulate=2)
    alone = read_plan(make_city(place, **BEST | {"release": ""}))
    release(alone, place / "table", base=place, simulate=2)
    return place


@pytest.mark.parametrize("level", [0, 1])
@pytest.mark.parametrize("factor", [0.5, 0.99, 1.01, 2.0])
def test_a_prior_that_was_not_fitted_to_the_measurements_fails(best, tmp_path, level, factor):
    """Most of these priors give the same table, so that the table does not tell."""
    spoilt = shutil.copytree(best / "both", tmp_path / "both")

    def scale(stated):
        stated["prior"][level]["alpha"] *= factor

    restate(spoilt, scale)
    assert "prior" in failed(spoilt)


@pytest.mark.parametrize("name", ["both", "table"])
def test_a_prior_passes_up_to_rounding_and_has_every_level(best, tmp_path, name):
    assert not failed(best / name)
    spoilt = shutil.copytree(best / name, tmp_path / name)

    def rounded(stated):
        for one in stated["prior"]:
            one["alpha"] *= 1.0 + 1e-7

    def named(stated):
        stated["prior"][0]["level"] = "zone"

    restate(spoilt, rounded)
    assert not failed(spoilt)
    restate(spoilt, named)
    assert "prior" in failed(spoilt)


def test_the_gap_up_to_which_a_table_is_the_best_is_stated(best):
    told = {check.name: check.text for check in verify(best / "both")}
    assert told["table from measurements"] == (
        "no table has a smaller expected error (tolerance for an error e: 1e-06 times (1 + e))"
    )


def test_a_prior_of_a_method_without_one_fails(real):
    restate(
        real,
        lambda stated: stated.update(prior=[{"level": "borough", "alpha": 1.0, "spread": 0.0}]),
    )
    assert "prior" in failed(real)
