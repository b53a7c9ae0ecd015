"""Samplers are found by the names of their files, loaded one by one, or given as objects."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass, replace
from textwrap import dedent

import numpy as np
import pytest

import congenial as cg
from congenial.conditioning import Sampler, find_sampler, sampler_names, samplers
from congenial.conditioning.laws.forest_sampler import Conditioned
from congenial.conditioning.samplers import exact
from congenial.errors import ArgumentError, PrivacyError, UnsupportedError

TREE = cg.Tree.from_parents((-1, 0, 0, 1, 1))
NOISY = cg.Additive(cg.DiscreteLaplace(1.5), TREE)
ADDS_UP = cg.consistent(TREE)
X = TREE.roll_up(np.array([3, 1, 2]))


@dataclass(frozen=True)
class Slow:
    """A sampler from outside the package."""

    name: str = "slow"
    certified: bool = True

    def condition(self, mechanism, resolved):
        return exact.SAMPLER.condition(mechanism, resolved)


def test_every_file_is_a_sampler_of_its_name():
    assert sampler_names()[:2] == ("auto", "exact")
    for name in sampler_names():
        sampler = find_sampler(name)
        assert isinstance(sampler, Sampler)
        assert sampler.name == name
    certified = {name for name in sampler_names() if find_sampler(name).certified}
    assert certified == {"exact"}


def test_only_the_requested_sampler_is_loaded():
    asked = """
        import sys
        import congenial as cg
        tree = cg.Tree.from_parents((-1, 0, 0))
        noisy, adds_up = cg.Additive(cg.DiscreteLaplace(1.0), tree), cg.consistent(tree)
        home = "congenial.conditioning.samplers."
        def loaded():
            return sorted(m.removeprefix(home) for m in sys.modules if m.startswith(home))
        cg.condition
        print(*loaded())
        for name in ("exact", "auto", "tree-mh", "rejection"):
            cg.condition(noisy, adds_up, name)
            print(*loaded())
    """
    told = subprocess.run(
        [sys.executable, "-c", dedent(asked)], capture_output=True, text=True, check=True
    )
    assert told.stdout.splitlines() == [
        "",
        "exact",
        "auto exact",
        "auto exact tree_mh",
        "auto exact rejection tree_mh",
    ]


def test_a_sampler_object_draws_the_same_as_its_name():
    for name in ("exact", "gibbs", "independence", "perfect", "rejection", "tree-mh"):
        by_name = cg.condition(NOISY, ADDS_UP, name).sample(X, 5, cg.seeded(3))
        by_object = cg.condition(NOISY, ADDS_UP, find_sampler(name)).sample(X, 5, cg.seeded(3))
        np.testing.assert_array_equal(by_name, by_object)


def test_a_custom_sampler_covers_grids_mixtures_and_unions():
    made = cg.condition(NOISY, ADDS_UP, Slow())
    np.testing.assert_array_equal(
        made.sample(X, 5, cg.seeded(3)),
        cg.condition(NOISY, ADDS_UP, "exact").sample(X, 5, cg.seeded(3)),
    )
    fine = cg.Additive(cg.DiscreteLaplace(1.5, granularity=0.25), TREE)
    assert (cg.condition(fine, ADDS_UP, Slow()).sample(X, rng=cg.seeded(1)) % 0.25 == 0.0).all()
    mixed = cg.mixture([NOISY, NOISY], [0.5, 0.5])
    below, above = np.full(5, np.inf), np.full(5, -np.inf)
    below[0], above[0] = 9, 10
    for mechanism, invariant in (
        (mixed, ADDS_UP),
        (NOISY, (ADDS_UP & cg.bounds(-np.inf, below)) | (ADDS_UP & cg.bounds(above, np.inf))),
    ):
        named = cg.condition(mechanism, invariant, "exact")
        own = cg.condition(mechanism, invariant, Slow())
        assert own.log_normalizer(X) == named.log_normalizer(X)


def test_settings_are_fields_of_the_record():
    given = cg.conditioning.Proposal(scale=3.0)
    named = cg.condition(NOISY, ADDS_UP, "rejection", proposal=given)
    own = cg.condition(NOISY, ADDS_UP, replace(find_sampler("rejection"), proposal=given))
    assert own.acceptance(X) == named.acceptance(X)
    chain = cg.Additive(cg.Laplace(1.0), TREE)
    longer = replace(find_sampler("laplace-chain"), warmup=7, thin=3)
    assert cg.condition(chain, ADDS_UP, longer).warmup == 7
    assert cg.condition(chain, ADDS_UP, "laplace-chain").warmup == 200


def test_a_new_sampler_is_a_new_file(tmp_path, monkeypatch):
    (tmp_path / "dear_me.py").write_text(
        dedent("""
            from congenial.conditioning.samplers.exact import SAMPLER as exact

            class DearMe:
                name = "dear-me"
                certified = True

                def condition(self, mechanism, resolved):
                    return exact.condition(mechanism, resolved)

            SAMPLER = DearMe()
        """),
        encoding="utf-8",
    )
    monkeypatch.setattr(samplers, "__path__", [*samplers.__path__, str(tmp_path)])
    assert "dear-me" in sampler_names()
    try:
        assert isinstance(cg.condition(NOISY, ADDS_UP, "dear-me"), Conditioned)
    finally:
        sys.modules.pop("congenial.conditioning.samplers.dear_me", None)


def test_an_object_that_is_not_a_sampler_is_refused():
    for wrong in ("", "Exact", "tree_mh", "exact.SAMPLER", "__init__", "../choice"):
        with pytest.raises(ArgumentError, match=r"sampler is .* give one of auto, exact, gibbs"):
            cg.condition(NOISY, ADDS_UP, wrong)
    for wrong in (None, 3, Slow, object()):
        with pytest.raises(ArgumentError, match="or an object with name, certified and condition"):
            cg.condition(NOISY, ADDS_UP, wrong)
    with pytest.raises(ArgumentError, match=r"'slow' takes no proposal.*independence, perfect"):
        cg.condition(NOISY, ADDS_UP, Slow(), proposal=cg.conditioning.Proposal(scale=3.0))


def test_only_samplers_with_a_known_normaliser_cover_mixtures():
    mixed = cg.mixture([NOISY, NOISY], [0.5, 0.5])
    for name in ("rejection", "independence", "perfect", "tree-mh"):
        with pytest.raises(UnsupportedError, match="covers neither mixtures nor unions"):
            cg.condition(mixed, ADDS_UP, name)
    with pytest.raises(UnsupportedError, match="weighed by their probabilities"):
        cg.condition(mixed, ADDS_UP, "gibbs")


def test_the_laplace_chain_accepts_laplace_noise_only():
    for noise in (cg.DiscreteLaplace(1.0), cg.Gaussian(1.0)):
        with pytest.raises(UnsupportedError, match="continuous Laplace noise and was given"):
            cg.condition(cg.Additive(noise, TREE), ADDS_UP, "laplace-chain")
    made = cg.condition(cg.Additive(cg.Laplace(1.0), TREE), ADDS_UP, "laplace-chain")
    with pytest.raises(PrivacyError, match="not certified"):
        made.guarantee("add-remove")
