"""Stored images, inference and whole releases; see `stored_draws`."""

from __future__ import annotations

import csv
import runpy
import shutil
import tempfile
from pathlib import Path

import numpy as np

import congenial as cg
from congenial.plan.plan import parse_plan, read_plan
from congenial.releases.making.make_release import release
from congenial.verification.verdict import verify
from support.city import make_city
from support.stored_cases import (
    BOUNDS,
    INF,
    LAWS,
    TREE_SCALES,
    case,
    crossing,
    margins,
    near,
    numbers,
    source,
    tree_of,
    wide_tree,
)

ROOT = next(place for place in Path(__file__).parents if (place / "pyproject.toml").is_file())
# The stored value of an empty cell of a released table.
_MISSING = np.iinfo(np.int64).min


# images

IMAGES = {
    ("l2", False): {},
    ("l2", True): {},
    ("l1", False): {},
    ("l1", True): {},
}
IMAGED_SUMS = {
    "tree": cg.consistent,
    "root and bounds": lambda tree: cg.consistent(tree) & cg.exactly([0]) & cg.nonnegative(),
    "boxes": lambda tree: cg.consistent(tree) & BOUNDS["boxes"],
}


@case(
    *(
        (kind, which, norm, integer)
        for kind in LAWS
        for which in IMAGED_SUMS
        for norm, integer in IMAGES
    )
)
def image(kind, which, norm, integer):
    tree, x = tree_of()
    mechanism = cg.Additive(LAWS[kind](TREE_SCALES["a scale a node"]), tree)
    made = cg.image(mechanism, IMAGED_SUMS[which](tree), norm, integer)
    return {
        "draws": made.sample(x, 6, source(1)),
        "measured": made.measure(x, 2, source(2)),
        "applied": made.apply(made.measure(x, rng=source(2)), source(3)),
    }


@case(*((norm, integer) for norm, integer in IMAGES))
def image_of_continuous_noise(norm, integer):
    tree, x = tree_of()
    made = cg.image(cg.Additive(cg.Gaussian(2.0), tree), cg.consistent(tree), norm, integer)
    return {"draws": made.sample(x, 6, source(1))}


@case(*((norm, integer) for norm, integer in IMAGES))
def image_of_many(norm, integer):
    tree, x = wide_tree(40, 60, 5)
    mechanism = cg.Additive(cg.DiscreteLaplace(4.0), tree)
    made = cg.image(mechanism, IMAGED_SUMS["root and bounds"](tree), norm, integer)
    return {"draws": made.sample(x, 2, source(1))}


@case(0.2, 0.5)
def l1_image_with_a_share(beta):
    tree, x = tree_of((-1, 0, 0))
    invariant = cg.consistent(tree) & cg.exactly("root")
    made = cg.image(cg.Additive(cg.DiscreteLaplace(3.0), tree), invariant, "l1", beta=beta)
    shares = cg.project(
        [9.0, 2.0, 3.5], cg.linear([[1, 1, 1]], [10]), norm="l1", beta=[0.5, 0.2, 0.3]
    )
    return {"draws": made.sample(x, 8, source(1)), "shares": shares}


@case(*((which, integer) for which in ("crossing", "bounds", "inequalities") for integer in (0, 1)))
def image_by_general_solvers(which, integer):
    rows, x = margins(3, 4), numbers(12, 6)
    invariant = cg.linear(rows, rows @ x)
    if which != "crossing":
        invariant = invariant & cg.nonnegative()
    if which == "inequalities":
        invariant = invariant & cg.at_least([[1, -1, *[0] * 10]], [x[0] - x[1] - 2])
    made = cg.image(cg.Additive(cg.DiscreteLaplace(2.0), 12), invariant, "l2", bool(integer))
    return {"draws": made.sample(x, 6, source(1))}


@case(*((exact, integer) for exact in ("axis0", "axis1") for integer in (False, True)))
def image_of_a_crossing_table(exact, integer):
    workload, x = crossing(3, 4)
    invariant = cg.consistent(workload) & cg.exactly(margins=[exact]) & cg.nonnegative()
    mechanism = cg.Additive(cg.DiscreteLaplace(np.full(len(workload), 2.0)), workload)
    return {"draws": cg.image(mechanism, invariant, "l2", integer).sample(x, 4, source(1))}


def sex_by_age():
    """Return a nested workload over a geography, and counts."""
    geography = cg.Tree.from_paths([("north", "a"), ("north", "b"), ("south", "c")])
    axes = {"sex": ("F", "M"), "age": ("0", "1", "2")}
    table = cg.Table(axes, geography=geography)
    workload = cg.Workload.of(table, {0: [("sex",)], 1: [("sex", "age")]})
    return workload, workload.answers(numbers(18, 7).reshape(3, 2, 3))


def nested(which):
    if which == "tree":
        return tree_of()
    return wide_tree(40, 60, 5) if which == "many nodes" else sex_by_age()


@case(*((which, integer) for which in ("tree", "table", "many nodes") for integer in (False, True)))
def topdown(which, integer):
    domain, x = nested(which)
    mechanism = cg.Additive(cg.DiscreteLaplace(3.0), domain)
    y = mechanism.sample(x, rng=source(1))
    invariant = cg.consistent(domain) & cg.nonnegative()
    return {"released": cg.topdown(y, domain, invariant, source(2), integer=integer)}


@case(*((kind, which) for kind in LAWS for which in ("tree", "table", "many nodes")))
def topdown_image(kind, which):
    domain, x = nested(which)
    made = cg.imaging.topdown_image(cg.Additive(LAWS[kind](3.0), domain), cg.nonnegative())
    return {"draws": made.sample(x, 3, source(1))}


@case("tree", "table", "many nodes")
def round_unbiased(which):
    domain, x = nested(which)
    z = cg.project(x + 0.37 * numbers(x.size, 11), cg.consistent(domain))
    return {
        "real": z,
        "rounded": [cg.imaging.round_unbiased(z, domain, source(k)) for k in range(4)],
    }


# inference

PRIORS = {
    "flat": "flat",
    "poisson": "poisson",
    "negative-binomial": "negative-binomial",
    "given": cg.inference.Prior(8.0, 2.0, 0.1),
}


@case(*((kind, which, low) for kind in LAWS for which in PRIORS for low in (-INF, 0)))
def posterior(kind, which, low):
    tree, x = tree_of()
    mechanism = cg.Additive(LAWS[kind](TREE_SCALES["inner nodes not measured"]), tree)
    y = mechanism.sample(x, rng=source(1))
    found = cg.posterior(y, mechanism, cg.consistent(tree) & cg.bounds(low), PRIORS[which])
    told = {
        "draws": found.sample(6, source(2)),
        "point l1": found.point(rng=source(3)),
        "point l2": found.point("l2", rng=source(3)),
        "mean": found.mean(),
        "deviation": found.standard_deviation(),
        "median": found.median(),
        "intervals": found.intervals(0.1),
        "sum": found.interval_of_sum([3, 8], size=500, rng=source(4)),
        "probability": found.probability(lambda z: z[:, 3] > z[:, 8], size=500, rng=source(5)),
        "marginal": near(found.marginal(3), found.median()[3]),
    }
    if which == "flat":
        return told
    gradient = found.log_evidence_gradient()
    return told | {
        "prior": [found.prior.mean.mean(), np.minimum(found.prior.dispersion, 1e9).mean()],
        "log_evidence": found.log_evidence(),
        "gradient": gradient.mean,
    }


@case(*PRIORS)
def posterior_of_many(which):
    tree, x = wide_tree(20, 50, 9)
    mechanism = cg.Additive(cg.DiscreteLaplace(3.0), tree)
    y = mechanism.sample(x, rng=source(1))
    found = cg.posterior(y, mechanism, cg.consistent(tree) & cg.nonnegative(), PRIORS[which])
    return {"draws": found.sample(2, source(2)), "mean": found.mean(), "median": found.median()}


def conditioned_for_readers(kind, which):
    tree, x = tree_of(most=9)
    invariant = cg.consistent(tree) & BOUNDS["pin"] if which == "bounds" else cg.consistent(tree)
    made = cg.condition(cg.Additive(LAWS[kind](2.0), tree), invariant)
    return made, x, made.sample(x, rng=source(1))


@case(*((kind, which) for kind in LAWS for which in ("equalities", "bounds")))
def inverted_intervals(kind, which):
    made, _, z = conditioned_for_readers(kind, which)
    return {
        "released": z,
        "alone": cg.inference.inverted_intervals(made, z),
        "together": cg.inference.inverted_intervals(made, z, 0.2, together=7),
    }


@case()
def inverted_intervals_of_many():
    tree, x = wide_tree(12, 12, 5)
    invariant = cg.consistent(tree) & cg.nonnegative()
    made = cg.condition(cg.Additive(cg.DiscreteLaplace(2.0), tree), invariant)
    return {"ends": cg.inference.inverted_intervals(made, made.sample(x, rng=source(1)))}


@case(*((kind, which) for kind in LAWS for which in ("conditioned", "l2", "l1", "topdown")))
def error_margins(kind, which):
    tree, _ = tree_of()
    mechanism = cg.Additive(LAWS[kind](TREE_SCALES["a scale a node"]), tree)
    invariant = cg.consistent(tree) & cg.exactly([0])
    if which == "conditioned":
        made = cg.condition(mechanism, invariant)
    elif which == "topdown":
        made = cg.imaging.topdown_image(mechanism, invariant)
    else:
        made = cg.image(mechanism, invariant, which, True)
    return {
        "each": cg.inference.error_margins(made, size=499, rng=source(1)),
        "sum": cg.inference.error_margin_of_sum(made, [3, 8], size=499, rng=source(2)),
        "together": cg.inference.simultaneous_error_margins(made, size=499, rng=source(3)),
    }


@case(*((kind, which) for kind in LAWS for which in ("equalities", "bounds")))
def log_likelihood(kind, which):
    made, x, z = conditioned_for_readers(kind, which)
    told = {"of counts": cg.inference.log_likelihood(z, made, x)}
    if which == "bounds":
        return told
    prior = cg.inference.Prior(8.0, 2.0)
    gradient = cg.inference.log_likelihood_gradient(z, made, prior)
    return told | {
        "of a model": cg.inference.log_likelihood(z, made, prior),
        "by means": gradient.mean,
        "by dispersions": gradient.dispersion,
    }


@case("conditioned", "image")
def audit(which):
    tree, _ = tree_of((-1, 0, 0))
    mechanism, invariant = cg.Additive(cg.DiscreteLaplace(1.0), tree), cg.consistent(tree)
    made = (cg.condition if which == "conditioned" else cg.image)(mechanism, invariant)
    found = cg.audit(made, neighbours="substitute", method="statistical", draws=500, rng=source(1))
    return {"losses": [one.found for one in found.findings]}


# whole releases

LAPLACE = 'neighbours = "{}"\nepsilon = 1.0\nsplit = {{ borough = 0.4, zone = 0.6 }}'
NOISES = {
    "laplace": LAPLACE,
    "gaussian": LAPLACE + '\nnoise = "discrete-gaussian"\ndelta = 1e-6',
    "one level": 'neighbours = "{}"\nepsilon = 1.0\nsplit = {{ borough = 0.0, zone = 1.0 }}',
}
METHODS = {
    "conditioning": 'name = "conditioning"',
    "l2": 'name = "imaging"',
    "l1": 'name = "imaging"\nnorm = "l1"',
    "topdown": 'name = "topdown"',
}
IMAGING = ("l2", "l1", "topdown")
MANDATES = {
    "root and bounds": 'publish_exactly = ["root"]\nnonnegative = true',
    "equalities": 'publish_exactly = ["root"]',
    "nothing": "",
}
ASKED = """
confidence = 0.8
simultaneous = true
sums = { north = ["Arden"], odd = ["1", "3", "5"] }
"""


def columns_of(directory: Path) -> dict[str, np.ndarray]:
    """Return the columns of integers of a release's tables; a missing cell is the least integer."""
    out = {}
    for file in sorted(directory.glob("*.csv")):
        with file.open(newline="") as opened:
            rows = list(csv.DictReader(opened))
        for name in rows[0]:
            if name in ("value", "measurement", "lower", "upper", "level_lower", "level_upper"):
                cells = [int(row[name]) if row[name] else _MISSING for row in rows]
                out[f"{file.stem}: {name}"] = np.array(cells)
    return out


def whole(plan, base: Path, place: Path, seed: int) -> dict[str, object]:
    """Release a plan from a seed, check the release and return its columns."""
    made = release(plan, place, base=base, simulate=seed)
    assert all(check.passed for check in verify(place))
    assert made.nodes == len(cg.read_release(place).tree)
    return columns_of(place)


@case(
    *(("laplace", "conditioning", mandates, "substitute") for mandates in MANDATES),
    *(
        ("gaussian", "conditioning", mandates, "substitute")
        for mandates in ("nothing", "root and bounds")
    ),
    *((noise, method, "root and bounds", "substitute") for noise in LAWS for method in IMAGING),
    *((noise, "conditioning", "nothing", "add-remove") for noise in LAWS),
    *(("one level", method, "equalities", "substitute") for method in ("conditioning", "l2")),
)
def released(noise, method, mandates, neighbours):
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        plan = make_city(
            place,
            privacy=NOISES[noise].format(neighbours),
            method=METHODS[method],
            invariants=MANDATES[mandates],
            accuracy=ASKED if method == "conditioning" else "",
            release='publish = ["table", "measurements"]' if method != "conditioning" else "",
        )
        return whole(read_plan(plan), place, place / "out", 7)


TAXI = """
method = { name = "conditioning" }

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

[invariants]
publish_exactly = ["root"]
nonnegative = true
"""


@case()
def released_taxi_trips():
    """A real data set: 263 zones, an exact total and nonnegative counts."""
    taxi = ROOT / "examples" / "taxi"
    with tempfile.TemporaryDirectory() as name:
        base = Path(name)
        runpy.run_path(str(taxi / "build_trips.py"))["build"](trips=base / "trips.parquet")
        shutil.copy(taxi / "taxi_zone_lookup.csv", base)
        return whole(parse_plan(TAXI), base, base / "out", 7)
