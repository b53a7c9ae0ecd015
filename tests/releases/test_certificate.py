"""The schema of certificates."""

from __future__ import annotations

import json
import re

import msgspec
import pytest

from congenial.accounting.amounts import Amount, amount_of
from congenial.errors import ReleaseError
from congenial.plan.plan import read_plan
from congenial.releases.certificate import (
    check_debit,
    plain_plan,
    read_certificate,
    write_certificate,
)
from congenial.releases.directory import CERTIFICATE
from congenial.releases.making.make_release import release
from congenial.releases.specification import Debited
from support.city import make_city
from support.schema import SCHEMA, json_schema


def test_every_property_of_the_schema_is_described_on_one_line():
    records = json.loads(SCHEMA.read_text(encoding="utf-8"))["$defs"]
    texts = {
        f"{name}.{key}": value.get("description", "")
        for name, record in records.items()
        for key, value in record["properties"].items()
    }
    assert len(texts) > 100
    assert [name for name, text in texts.items() if not re.fullmatch(r"[^\n]+\.", text)] == []


def test_the_schema_in_the_repository_is_that_of_the_code():
    told = "write it anew: cd tests; python -m support.schema"
    assert SCHEMA.read_text(encoding="utf-8") == json_schema(), told


@pytest.fixture(scope="module")
def stated(tmp_path_factory):
    """The certificate of a small release, and its path."""
    place = tmp_path_factory.mktemp("city")
    plan = make_city(place, method='name = "imaging"')
    release(read_plan(plan), place / "out", base=place)
    path = place / "out" / CERTIFICATE
    return read_certificate(path), path


def test_an_invalid_certificate_is_refused(stated, tmp_path):
    found, path = stated
    text = path.read_text(encoding="utf-8")
    for changed, told in (
        (text.replace('"format":', '"format": 2, "format":', 1), "the key 'format' occurs twice"),
        (text.replace(found.made, found.made[:-6]), "which is no time such as"),
        (text.replace(found.made, "yesterday"), "made is 'yesterday'"),
        ("[" * 100_000, "nested too deep"),
    ):
        assert changed != text
        (tmp_path / "c.json").write_text(changed, encoding="utf-8")
        with pytest.raises(ReleaseError, match=told):
            read_certificate(tmp_path / "c.json")
    write_certificate(tmp_path / "c.json", found)
    assert read_certificate(tmp_path / "c.json") == found


def test_a_debit_covers_the_claim_and_is_stated_with_a_ledger(stated):
    found, _ = stated
    owed = amount_of(found.guarantee.epsilon, found.guarantee.delta)
    plan = found.plan | {"privacy": found.plan["privacy"] | {"ledger": "l.sqlite"}}

    def checked(debit, plan=plan):
        made = None if debit is None else Debited("0" * 32, *debit)
        return check_debit(msgspec.structs.replace(found, plan=plan, ledger=made))[0]

    assert checked((owed.epsilon_text, owed.delta_text))
    for epsilon, delta, covers in ((0, 1, True), (0, 2, False), (1, 0, False), (-1, 0, False)):
        other = Amount(owed.epsilon + epsilon, owed.delta + delta)
        assert checked((other.epsilon_text, other.delta_text)) == covers
    assert not checked(None)
    assert checked(None, found.plan)
    assert not checked((owed.epsilon_text, owed.delta_text), found.plan)


def test_directories_of_this_machine_are_left_out(tmp_path):
    plan = read_plan(make_city(tmp_path))
    for source, kept in (
        ("/" + "home/me/rows.csv", "rows.csv"),
        ("~/rows.csv", "rows.csv"),
        ("C:\\data\\rows.csv", "rows.csv"),
        ("data/rows.csv", "data/rows.csv"),
    ):
        data = msgspec.structs.replace(plan.data, source=source)
        assert plain_plan(msgspec.structs.replace(plan, data=data))["data"]["source"] == kept
