"""The schema of certificates."""

from __future__ import annotations

import json
import re
from pathlib import Path

from congenial.releases.certificate import json_schema

SCHEMA = Path(__file__).parents[2] / "docs" / "certificate.schema.json"


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
    told = "write it anew as congenial.releases.certificate.json_schema says"
    assert SCHEMA.read_text(encoding="utf-8") == json_schema(), told
