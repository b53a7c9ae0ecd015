"""A release that is read as a whole."""

from __future__ import annotations

from congenial.releases import directory as files
from congenial.releases.certificate import read_certificate, stated_plan
from congenial.verification.verdict import verify
from congenial.verification.whole import read_at_once
from support.city import make_city
from support.parts import PARTED, make


def test_its_checks_are_those_of_the_verdict(tmp_path):
    make_city(tmp_path, **PARTED)
    make(tmp_path, simulate=3)
    place = tmp_path / "out"
    certificate = read_certificate(place / files.CERTIFICATE)
    read = read_at_once(place, certificate, stated_plan(certificate))
    assert read.csv.same and read.measured_csv is not None and read.measured_csv.same
    assert (read.plain.counts, read.plain.totals, read.plain.short) == (10, 4, 0)
    least, found = read.specified()
    assert least == 0.0
    assert found.guarantee == certificate.guarantee
    assert tuple(read.by_model()) == verify(place)[-4:]
