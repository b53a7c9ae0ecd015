"""Plans of releases conditioned on bounds, and what their tests look at."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import congenial as cg
from congenial.plan.plan import parse_plan, read_plan
from congenial.releases import directory as files
from congenial.releases.accuracy import margins
from congenial.releases.intervals import intervals
from congenial.releases.making.make_release import release
from congenial.releases.model import build_model, choose_method
from support.city import make_city

ASKED = """
confidence = 0.8
simultaneous = true
required = { zone = 50 }
sums = { north = ["Arden"], odd = ["1", "3", "5"], everything = ["City"] }
"""
SMALL = """
data = { source = "rows.parquet" }
hierarchy = { root = "root", levels = ["district", "zone"], domain = "zones.csv" }
privacy = { neighbours = "add-remove", epsilon = 1.0 }
invariants = { nonnegative = true }
method = { name = "conditioning" }
accuracy = { sums = { some = ["d0", "d1"] } }
"""


def make_release(place):
    """Make a city and a release of it, conditioned on bounds, below a directory."""
    release(read_plan(make_city(place, accuracy=ASKED)), place / "out", base=place)
    return place


def column(directory, name):
    """Return a column of a released table."""
    return files.read_table(directory).column(name)


def small_worlds() -> Iterator[tuple]:
    """Yield a tree of 10 districts of 20 zones with 2 people each, counts, a release, intervals."""
    paths = [("root", f"d{i}", f"z{i}.{j}") for i in range(10) for j in range(20)]
    tree = cg.Tree.from_paths(paths)
    model = build_model(parse_plan(SMALL), tree)
    found, rng = margins(model, choose_method(model)), np.random.default_rng(20_261_121)
    for made in range(12):
        x = tree.roll_up(rng.poisson(rng.gamma(1.0, 2.0, 200)))
        z = choose_method(model).sample(x, rng=cg.seeded(made))
        yield tree, x, z, intervals(model, choose_method(model), found, z)
