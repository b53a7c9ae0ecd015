"""Plans with discrete Gaussian noise: the final epsilon and delta are as asked."""

from __future__ import annotations

import functools
import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

import congenial as cg
from congenial.accounting.amounts import amount_of
from congenial.accounting.guarantee import with_sampler_error
from congenial.accounting.loss.zero_concentrated import zcdp_epsilon, zcdp_rho
from congenial.accounting.proofs import proofs_of
from congenial.errors import ArgumentError, PlanError, PrivacyError
from congenial.ledger.debits import read_ledger
from congenial.ledger.ledger_file import init_ledger
from congenial.plan.plan import parse_plan, read_plan
from congenial.preview.explanation import as_text, expected_noise, explain
from congenial.preview.plan_audit import audit_model
from congenial.releases.making import make_release
from congenial.releases.making.make_release import release
from congenial.releases.model import build_model, choose_method, claim
from congenial.releases.specification import ByImaging
from congenial.verification.verdict import verify
from support.city import ZONES, make_city, plan_text
from support.claims import guaranteed

TREE = cg.Tree.from_paths([("City", borough, str(zone)) for zone, borough in ZONES.items()])
SPLIT = "split = { borough = 0.2, zone = 0.8 }"
EQUALITIES = 'publish_exactly = ["root"]'


def privacy(rest=SPLIT, *, neighbours="substitute", epsilon=1.0, delta=1e-6):
    """Return the section that asks for Gaussian noise."""
    return (
        f'neighbours = "{neighbours}"\nepsilon = {epsilon}\nnoise = "discrete-gaussian"\n'
        f"delta = {delta}\n{rest}\n"
    )


def build(method="imaging", tree=TREE, **sections):
    """Return the model of a plan with Gaussian noise on the small city."""
    sections = {"privacy": privacy()} | sections
    return build_model(parse_plan(plan_text(method=f'name = "{method}"', **sections)), tree)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ('noise = "discrete-gaussian"', r"privacy.delta is missing, .*discrete-gaussian.*1e-6\.$"),
        ("delta = 1e-6", r"privacy.delta is 1e-06 while .*'discrete-laplace'.*leave it out"),
        ('noise = "discrete-gaussian"\ndelta = 0', "privacy.delta is 0; give a number from"),
        ('noise = "discrete-gaussian"\ndelta = 1.0', "privacy.delta is 1.0; .* to 0.01"),
        ('noise = "discrete-gaussian"\ndelta = nan', "privacy.delta is nan; give a number"),
        ('noise = "discrete-gaussian"\ndelta = true', "privacy.delta is true; give a number"),
        ('noise = "discrete-gaussian"\ndelta = "x"', "privacy.delta is 'x'; give a number"),
    ],
)
def test_an_invalid_delta_is_refused_in_one_sentence(asked, message):
    with pytest.raises(PlanError, match=message) as caught:
        parse_plan(plan_text(privacy=f'neighbours = "substitute"\nepsilon = 1.0\n{asked}'))
    assert str(caught.value).endswith(".")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("epsilon", [1e-3, 0.1, 1.0, 16.0])
@pytest.mark.parametrize("delta", [1e-15, 1e-6, 1e-2])
def test_rho_is_the_largest_that_gives_epsilon(epsilon, delta):
    rho = zcdp_rho(epsilon, delta)
    assert zcdp_epsilon(rho, delta) <= epsilon < zcdp_epsilon(1.001 * rho, delta)


@pytest.mark.parametrize(
    ("epsilon", "delta"), [(0.0, 0.1), (1.0, 0.0), (1.0, 1.0), (math.inf, 0.1)]
)
def test_an_unattainable_epsilon_and_delta_is_refused(epsilon, delta):
    with pytest.raises(ArgumentError, match="give a number above 0"):
        zcdp_rho(epsilon, delta)


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 8.0])
@pytest.mark.parametrize("delta", [1e-12, 1e-6, 1e-2])
@pytest.mark.parametrize("neighbours", ["substitute", "add-remove"])
def test_the_final_epsilon_and_delta_are_as_asked(epsilon, delta, neighbours):
    asked = privacy("", neighbours=neighbours, epsilon=epsilon, delta=delta)
    model = build(privacy=asked, invariants="nonnegative = true")
    found = guaranteed(model)
    assert found.epsilon == pytest.approx(epsilon, rel=1e-9)
    assert found.epsilon <= epsilon
    assert found.delta == delta
    # what is told of the noise, and what the draw adds, fit into delta
    assert zcdp_epsilon(found.rho, model.delta) == pytest.approx(found.epsilon)
    assert with_sampler_error(epsilon, model.delta, found.sampler_error) <= delta
    assert found.sampler_error == 0.0


def test_levels_share_rho():
    model = build()
    rho = zcdp_rho(1.0, model.delta)
    borough, zone = (v.scale for v in model.levels[1:])
    # two counts of a level change by one each
    assert 1.0 / borough**2 == pytest.approx(0.2 * rho)
    assert 1.0 / zone**2 == pytest.approx(0.8 * rho)
    alone = build(privacy=privacy("", neighbours="add-remove"), invariants="")
    assert [v.scale for v in alone.levels] == [pytest.approx(math.sqrt(1.5 / rho))] * 3


def test_the_exact_delta_of_the_noise_is_within_the_claim():
    """The convolution over the four counts that change, and noise 30% narrower, which is not."""
    model = build()
    scales = [v.scale for v in model.levels[1:]]
    reach = 400
    u = np.arange(-reach, reach + 1)

    def delta(factor):
        law = np.ones(1)
        loss = np.zeros(1)
        for scale in scales:
            sigma = factor * scale
            noise = np.exp(-0.5 * (u / sigma) ** 2)
            noise /= noise.sum()
            own = (1.0 - 2.0 * u) / (2.0 * sigma * sigma)
            law, loss = np.outer(law, noise).ravel(), np.add.outer(loss, own).ravel()
            if law.size > u.size:
                order = np.argsort(loss)
                law, loss = law[order], loss[order]
        # the other two counts change the other way: the same law once more, on a fine grid
        grid = 2.0**-14
        steps = np.rint(loss / grid).astype(np.int64)
        mass = np.bincount(steps - steps.min(), weights=law)
        both = np.fft.irfft(np.fft.rfft(mass, 2 * mass.size) ** 2, 2 * mass.size)
        at = (np.arange(both.size) + 2 * steps.min()) * grid
        worse = at > 1.0
        return float((both[worse] * -np.expm1(1.0 - at[worse])).sum())

    assert 1e-8 < delta(1.0) < model.delta
    assert delta(0.7) > 1e-6


def test_the_split_for_a_goal_has_the_least_weighted_sigmas():
    model = build(privacy=privacy("goal = { borough = 3, zone = 1 }"))
    assert model.split[1] == pytest.approx(3 ** (2 / 3) / (1 + 3 ** (2 / 3)), abs=1e-4)

    def error(share):
        given = f"split = {{ borough = {share}, zone = {1 - share} }}"
        borough, zone = (v.scale for v in build(privacy=privacy(given)).levels[1:])
        return 3 * borough + zone

    best = error(model.split[1])
    assert all(error(share) > best for share in (0.5, 0.6, 0.66, 0.7, 0.8))


def test_pins_that_no_pair_avoids_are_part_of_the_search():
    """With an exact borough a pair may pay at one level alone; the sum of sigmas still is least."""
    exact = 'publish_exactly = ["Arden"]'
    model = build(privacy=privacy("goal = { borough = 1, zone = 2 }"), invariants=exact)
    shares = np.linspace(0.05, 0.95, 19)
    best = sum(w * v.scale for w, v in zip((1, 2), model.levels[1:], strict=True))
    for share in shares:
        given = f"split = {{ borough = {share}, zone = {1 - share} }}"
        other = build(privacy=privacy(given), invariants=exact)
        tried = sum(w * v.scale for w, v in zip((1, 2), other.levels[1:], strict=True))
        assert tried >= best * (1 - 1e-9)


def test_conditioning_under_equalities_has_the_same_noise():
    model = build("conditioning", invariants=EQUALITIES)
    image = build("imaging", invariants=EQUALITIES)
    assert np.array_equal(model.mechanism.scales, image.mechanism.scales)
    assert guaranteed(model).epsilon == guaranteed(image).epsilon
    assert guaranteed(model).delta == 1e-6
    assert "proofs/composition.md" in proofs_of(guaranteed(model))


def test_conditioning_under_bounds_only_pays_for_integer_orders():
    model, image = build("conditioning"), build("imaging")
    found = guaranteed(model)
    assert found.whole_orders and not guaranteed(image).whole_orders
    assert found.epsilon == pytest.approx(1.0, rel=1e-9)
    assert found.epsilon <= 1.0
    assert found.rho == pytest.approx(zcdp_rho(1.0, model.delta, whole_orders=True))
    assert found.rho < guaranteed(image).rho < 1.001 * found.rho
    assert "proofs/gaussian-bounds.md" in proofs_of(found)
    counts = TREE.roll_up(np.arange(len(TREE.leaves)) % 3)
    assert (choose_method(model).sample(counts, rng=cg.seeded(1)) >= 0).all()


def test_a_numerical_error_beyond_delta_is_refused():
    """Noise so wide that its table holds doubles."""
    with pytest.raises(PrivacyError, match=r"privacy.delta is 1e-09, .* ask for a delta of at le"):
        build(privacy=privacy(epsilon=1e-3, delta=1e-9))
    # as much as it takes is kept for it
    model = build(privacy=privacy(epsilon=1e-3, delta=1e-8))
    assert 0.5 * 1e-8 < model.delta < 0.98 * 1e-8
    assert guaranteed(model).delta == 1e-8
    with pytest.raises(PrivacyError, match="ask for a larger delta"):
        claim(model, 1e-7)


def test_noise_too_wide_to_draw_is_refused_with_the_plan():
    """And not when the ledger has been debited."""
    with pytest.raises(PrivacyError, match=r"privacy.epsilon is 1e-06, .* sigma .* is 2\^20"):
        build(privacy=privacy(epsilon=1e-6))
    share = "split = { borough = 0.999999999999, zone = 1e-12 }"
    with pytest.raises(PrivacyError, match=r"sigma .* is 2\^20"):
        build("topdown", privacy=privacy(share))


def test_explain_states_rho_and_the_error_of_the_noise(tmp_path):
    plan = read_plan(make_city(tmp_path, privacy=privacy(), method='name = "imaging"'))
    found = explain(plan, tmp_path)
    text = as_text(found)
    assert f"The noise satisfies zCDP with rho = {found.guarantee.rho:.6g}," in text
    assert "(1, 1e-06)-differentially private" in text
    zone = found.forecasts[2]
    assert zone.noise_error == pytest.approx(math.sqrt(2 / math.pi) * zone.level.scale, rel=1e-2)


@pytest.mark.parametrize("sigma", [0.2, 0.7, 9.0, 99.0, 101.0, 800.0])
def test_expected_noise_is_that_of_the_law(sigma):
    u = np.arange(-40_000, 40_001)
    law = np.exp(cg.DiscreteGaussian(sigma).log_pmf(u, np.array([sigma])))
    mean = float((np.abs(u) * law).sum())
    assert expected_noise(sigma, "discrete-gaussian") == pytest.approx(mean, rel=1e-8)


def test_a_release_is_verified_and_debited(tmp_path):
    asked = privacy() + 'ledger = "ledger.sqlite"'
    path = make_city(tmp_path, privacy=asked, method='name = "imaging"\nnorm = "l1"')
    init_ledger(tmp_path / "ledger.sqlite", budget=amount_of(2.0, 1e-6), neighbours="substitute")
    done = release(read_plan(path), tmp_path / "out", base=tmp_path)
    assert done.debit.cost.delta_text == "1e-6"
    assert done.certificate.guarantee.delta == 1e-6
    assert done.certificate.method == ByImaging("l1")
    assert done.certificate.noise.kind == "discrete-gaussian"
    checks = {check.name: check for check in verify(tmp_path / "out")}
    assert all(check.passed for check in checks.values())
    assert "delta is 1e-06, and the plan allows 1e-06" in checks["budget"].text
    (account,) = read_ledger(tmp_path / "ledger.sqlite").accounts
    assert account.total("spent") == amount_of(1.0, 1e-6)


def test_all_of_delta_is_the_noises_where_draws_have_no_error():
    for method in ("imaging", "conditioning", "posterior"):
        assert build(method).delta == 1e-6


@pytest.mark.parametrize("method", ["imaging", "conditioning"])
def test_a_release_that_kept_a_part_of_delta_is_verified(tmp_path, monkeypatch, method):
    """Versions before kept a hundredth, so their noise is a little larger."""
    path = make_city(tmp_path, privacy=privacy(), method=f'name = "{method}"')
    earlier = functools.partial(build_model, at_delta=0.99e-6)
    with monkeypatch.context() as patched:
        patched.setattr(make_release, "build_model", earlier)
        release(read_plan(path), tmp_path / "out", base=tmp_path)
    release(read_plan(path), tmp_path / "new", base=tmp_path)
    scales = []
    for made, delta in (("out", 0.99e-6), ("new", 1e-6)):
        found = cg.read_release(tmp_path / made)
        assert found.certificate.guarantee.at_delta == delta
        assert found.certificate.guarantee.delta == 1e-6
        assert all(check.passed for check in verify(tmp_path / made))
        scales.append(found.model.mechanism.scales[1])
    assert 1.0 < scales[0] / scales[1] < 1.01


@pytest.mark.parametrize("factor", [1.0, 0.7])
def test_the_audit_checks_the_claim_of_the_noise(factor):
    """Laws enumerated on a part of the plan; noise 30% narrower is refuted."""
    model = build("conditioning", invariants=EQUALITIES)
    narrow = cg.Additive(cg.DiscreteGaussian(factor * model.mechanism.scales), TREE)
    tampered = replace(model, mechanism=narrow)
    found = audit_model(tampered, guarantee=guaranteed(model), draws=200)
    assert found.exact.passed is (factor == 1.0)
    assert found.exact.findings[0].check == "loss, enumerated"


def test_every_pair_of_two_levels_has_its_cost():
    """The rho of the guarantee is the dearest of all moves between two zones."""
    model = build()
    scales = model.mechanism.scales
    paths = {v: {int(v), int(TREE.parents[v])} for v in TREE.leaves}
    costs = [
        sum(0.5 / scales[q] ** 2 for q in paths[a] ^ paths[b])
        for a, b in itertools.combinations(TREE.leaves, 2)
    ]
    assert guaranteed(model).rho == pytest.approx(max(costs))
