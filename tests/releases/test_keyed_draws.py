"""Sentences about words of keys."""

from __future__ import annotations

import msgspec
import pytest

from congenial.plan.plan import read_plan
from congenial.releases import sentences
from congenial.releases.certificate import Certificate
from congenial.releases.keyed_draws import keyed_words, whoever_reads
from congenial.releases.making.make_release import release
from congenial.releases.specification import KeyedDraws, Simulation
from support.city import make_city


@pytest.fixture(scope="module")
def certificate(tmp_path_factory) -> Certificate:
    place = tmp_path_factory.mktemp("city")
    plan = make_city(place, method='name = "imaging"')
    return release(read_plan(plan), place / "out", base=place).certificate


def test_a_release_says_against_whom_its_guarantee_holds(certificate):
    assert keyed_words(certificate) is None
    assert "however they analyse" in whoever_reads(certificate)
    assert "SHAKE" not in certificate.sentence
    replaced = msgspec.structs.replace(certificate, keyed=KeyedDraws("shake-256", 256, 1200))
    assert "its 1,200 parts were computed from a secret key of 256 bits" in replaced.sentence
    assert "cannot distinguish SHAKE-256" in whoever_reads(replaced)
    assert "however they analyse" not in " ".join(sentences.protected(replaced))
    simulated = msgspec.structs.replace(replaced, simulation=Simulation(1, with_truth=False))
    assert "from a seed" in simulated.sentence
