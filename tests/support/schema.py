"""The JSON Schema of a certificate, with the comments of its records' fields as descriptions.

`python -m support.schema`, run in `tests/`, writes `docs/certificate.schema.json` anew.
"""

from __future__ import annotations

import inspect
import re

import msgspec

from congenial.accounting.neighbours import scope
from congenial.releases import accuracy, certificate, intervals, specification
from support.sources import ROOT

SCHEMA = ROOT / "docs" / "certificate.schema.json"
_HOMES = (scope, accuracy, intervals, specification, certificate)
_FIELD = re.compile(r"    (\w+): .*?(?:  # (.+))?")


def json_schema() -> str:
    """Return the JSON Schema of a certificate."""
    schema = msgspec.json.schema(certificate.Certificate)
    for name, record in schema["$defs"].items():
        kind = next(vars(home)[name] for home in _HOMES if name in vars(home))
        kind = specification.Statement if kind is certificate.Certificate else kind
        record["description"] = " ".join(str(kind.__doc__).split())
        record["properties"].get("kind", {}).setdefault("description", "The kind of this record.")
        for key, text in comments(kind).items():
            record["properties"][key]["description"] = text
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}
    return msgspec.json.format(msgspec.json.encode(schema), indent=2).decode() + "\n"


def comments(kind: type) -> dict[str, str]:
    """Return what the comments beside or above the fields of a record say, by field."""
    found: dict[str, str] = {}
    above: list[str] = []
    for line in inspect.getsource(kind).splitlines():
        field = _FIELD.fullmatch(line)
        if field is None:
            above = [*above, line.strip("# ")] if line.startswith("    # ") else []
            continue
        text = field[2] or " ".join(above)
        both = re.fullmatch(r"`(\w+)` and `(\w+)`: (.+)", text)
        named = {both[1]: both[3], both[2]: both[3]} if both else {field[1]: text}
        found |= {key: said for key, said in named.items() if said}
        above = []
    return found


if __name__ == "__main__":
    SCHEMA.write_text(json_schema(), encoding="utf-8")
