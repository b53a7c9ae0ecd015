"""A good plan as text, and what is said of bad ones."""

from __future__ import annotations

import pytest

from congenial.errors import PlanError
from congenial.plan.plan import parse_plan

GOOD = """
[data]
source = "trips.parquet"
where = "PULocationID <= 263"
lookup = { source = "taxi_zone_lookup.csv", key = "LocationID", on = "PULocationID" }

[hierarchy]
root = "New York City"
levels = ["Borough", "PULocationID"]
domain = "lookup"

[privacy]
neighbours = "substitute"
epsilon = 1.0
split = { Borough = 0.4, PULocationID = 0.6 }
noise = "discrete-laplace"

[invariants]
publish_exactly = ["root"]
nonnegative = true

[method]
name = "conditioning"
sampler = "auto"
"""


def refusal(text: str) -> str:
    with pytest.raises(PlanError) as caught:
        parse_plan(text)
    message = str(caught.value)
    assert one_sentence(message), message
    error: BaseException | None = caught.value
    assert error is not None and (error.__suppress_context__ or error.__context__ is None)
    return message


def one_sentence(message: str) -> bool:
    return "\n" not in message and message.endswith(".") and ". " not in message


def changed(*pairs: tuple[str, str]) -> str:
    text = GOOD
    for old, new in pairs:
        assert text.count(old) >= 1, old
        text = text.replace(old, new, 1)
    return text
