"""The sentences of a page are true for the noise."""

from __future__ import annotations

import math
import re
from decimal import Decimal, localcontext
from statistics import NormalDist

import pytest

from congenial.plan.plan import read_plan
from congenial.releases import sentences
from congenial.releases.accuracy import NoIntervals
from congenial.releases.certificate import read_certificate
from congenial.releases.directory import CERTIFICATE
from congenial.releases.making.make_release import release
from congenial.report.write import report
from support.city import make_city
from support.readability import ease


@pytest.mark.parametrize("delta", [1e-9, 1e-6, 1e-3])
def test_the_statement_about_a_readers_belief_is_true_for_gaussian_noise(tmp_path, delta):
    """The loss of Gaussian noise of rho-zCDP is normal, of mean rho and variance 2 rho."""
    privacy = f"""
        neighbours = "substitute"
        epsilon = 1.0
        delta = {delta}
        noise = "discrete-gaussian"
        """
    plan = make_city(tmp_path, privacy=privacy, method='name = "imaging"')
    release(read_plan(plan), tmp_path / "out", base=tmp_path, simulate=1)
    certificate = read_certificate(tmp_path / "out" / CERTIFICATE)
    rho = certificate.guarantee.measure.rho
    assert rho is not None
    loss = NormalDist(rho, math.sqrt(2.0 * rho))
    found = re.search(
        r"(\d+)% sure of the true one, .* at most (\S+)\.$", sentences.plain(certificate)
    )
    assert found
    sure, stated = int(found[1]) / 100.0, float(found[2])
    assert 1.0 - loss.cdf(math.log(sure / (1.0 - sure))) <= stated <= 12.0 * delta
    # delta itself is no bound on the probability that epsilon is exceeded
    assert 1.0 - loss.cdf(1.0) > 2.0 * delta


@pytest.mark.parametrize(
    ("exact", "shown"), [(4.07e-8, "4.1e-08"), (1.1e-5, "1.1e-05"), (1.0, "1")]
)
def test_a_bound_is_rounded_up(exact, shown):
    assert sentences._up(exact) == shown
    assert float(shown) >= exact * (1.0 - 1e-9)


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 4.6, 10.0, 13.9, 16.0, 40.0, 700.0])
def test_a_probability_is_rounded_up_and_stays_below_1(epsilon):
    with localcontext(prec=400):
        rest = 1 / (1 + Decimal(epsilon).exp())
    text = sentences._percent(float(rest))
    with localcontext(prec=400):
        shown = Decimal(text.removesuffix("%")) / 100
        assert 1 - rest <= shown < 1
        assert shown - (1 - rest) <= min(Decimal("0.01"), rest)


BOTH = 'publish = ["table", "measurements"]'
BOUND = "at_most = { zone = 1000 }"


@pytest.mark.parametrize(
    ("method", "invariants", "published", "told", "untold"),
    [
        ("posterior", "", "", "unless it asks for the posterior", "margins of the noise alone"),
        ("posterior", "", BOTH, "cut at zero if the plan allows no negative", "within ±"),
        ("conditioning", BOUND, "", "near a bound come out too far away", "near zero come"),
        ("imaging", BOUND, BOTH, "Counts near a bound tend to come out too far", "near zero"),
        ("imaging", "nonnegative = true", "", "counts near zero tend to be too large", "a bound t"),
    ],
)
def test_a_page_says_of_errors_what_holds_under_its_plan(
    tmp_path, method, invariants, published, told, untold
):
    """A posterior's errors depend on the counts without bounds too; upper bounds push down."""
    sections = {"invariants": invariants, "release": published}
    plan = make_city(tmp_path, method=f'name = "{method}"', **sections)
    release(read_plan(plan), tmp_path / "out", base=tmp_path, simulate=1)
    page = report(tmp_path / "out").read_text()
    assert told in page
    assert untold not in page
    assert sentences.bent(read_certificate(tmp_path / "out" / CERTIFICATE))


def test_too_many_counts_to_simulate_have_no_remedy_that_has_the_same_limit():
    told = sentences.about_intervals(NoIntervals(("too-many-counts",)), 0.9)
    assert "conditioning has margins" in told
    assert "imaging" not in told
    assert "without bounds" not in told


PLANS = {
    "conditioning on bounds": {"method": 'name = "conditioning"'},
    "posterior": {
        "method": 'name = "posterior"',
        "release": 'publish = ["table", "measurements"]',
    },
    "imaging of sums": {
        "method": 'name = "imaging"',
        "invariants": 'publish_exactly = ["root"]',
    },
    "topdown under upper bounds": {
        "method": 'name = "topdown"',
        "invariants": 'publish_exactly = ["root"]\nat_most = { zone = 2000 }',
    },
}


@pytest.mark.parametrize("name", PLANS)
def test_what_the_page_says_can_be_read_at_once(name, tmp_path):
    plan = make_city(tmp_path, **PLANS[name])
    release(read_plan(plan), tmp_path / "out", base=tmp_path, simulate=1)
    certificate = read_certificate(tmp_path / "out" / CERTIFICATE)
    first = (
        *sentences.lead(certificate, 10, 1),
        *sentences.protected(certificate),
        *sentences.unprotected(certificate),
        *sentences.accuracy(certificate, ""),
        *sentences.reuse(certificate),
    )
    found = ease("\n\n".join(first))
    assert found.score > 70.0
    assert found.longer_than(25) == []
    more = ease("\n\n".join(line for _, lines in sentences.details(certificate) for line in lines))
    assert more.score > 65.0
    assert more.longer_than(30) == []


@pytest.mark.parametrize(
    ("exact", "text"),
    [
        (["root"], "both are counted, or neither"),
        (["borough"], "both are counted, or neither"),
        (["Arden"], "may leave out either"),
        ([], "may leave out either"),
    ],
)
def test_an_exact_total_lets_no_record_pass_the_row_filter(tmp_path, exact, text):
    plan = make_city(
        tmp_path,
        data="""
        source = "rows.csv"
        where = "hour < 12"
        types = { hour = "INTEGER" }
        lookup = { source = "zones.csv", key = "zone_id", on = "zone" }
        """,
        invariants=f"nonnegative = true\npublish_exactly = {exact}",
        privacy='neighbours = "substitute"\nepsilon = 1.0',
    )
    certificate = release(read_plan(plan), tmp_path / "out", base=tmp_path).certificate
    assert text in sentences.neighbours(certificate)
