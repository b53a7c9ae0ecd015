"""Plans, and the share of releases within their margins."""

from __future__ import annotations

import numpy as np

from congenial.domain.tree import Tree
from congenial.plan.plan import parse_plan
from congenial.randomness import seeded
from congenial.releases.accuracy import (
    margins,
)
from congenial.releases.intervals import intervals
from congenial.releases.model import build_model, choose_method

SHARE = 0.9


PLAN = """
[data]
source = "rows.csv"
[hierarchy]
root = "all"
levels = ["town", "block"]
domain = "nodes.csv"
names_repeat = true
[privacy]
neighbours = "substitute"
epsilon = 0.8
split = { SPLIT }
[invariants]
publish_exactly = EXACT
nonnegative = BOUND
[method]
name = "METHOD"
[release]
publish = PUBLISH
[accuracy]
"""


def made(
    fans,
    *,
    exact=("root",),
    bound=False,
    method="conditioning",
    publish=("table",),
    accuracy="",
    split="town = 0.4, block = 0.6",
):
    """Return the model of a plan whose towns have so many blocks."""
    paths = [("all", f"t{t}", f"b{k}") for t, fan in enumerate(fans) for k in range(fan)]
    text = PLAN.replace("EXACT", str(list(exact)).replace("'", '"')).replace("METHOD", method)
    text = text.replace("PUBLISH", str(list(publish)).replace("'", '"')).replace("SPLIT", split)
    plan = parse_plan(text.replace("BOUND", str(bound).lower()) + accuracy)
    return build_model(plan, Tree.from_paths(paths))


SLACK = 5 * np.sqrt(0.09 / 4_000)


def ends_of(model, counts, size):
    """Return released values and the ends of their intervals in many releases."""
    mechanism = choose_method(model)
    found, rng = margins(model, mechanism), seeded(1)
    out = []
    for _ in range(size):
        y = mechanism.measure(counts, rng=rng) if hasattr(mechanism, "measure") else None
        z = mechanism.sample(counts, rng=rng) if y is None else mechanism.apply(y, rng)
        out.append(
            intervals(model, mechanism, found, z, y if model.plan.release.measurements else None)
        )
    return found, out
