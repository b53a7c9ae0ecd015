"""Cases of every method and route whose answers `stored_draws` stores.

Each case is a function that returns named arrays. Counts are made up by arithmetic, so that no
version of numpy changes them. The imports of inner modules are all here; cases use public names.
"""

from __future__ import annotations

import csv
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
from city import make_city

import congenial as cg
from congenial.plan import parse_plan, read_plan
from congenial.release import release
from congenial.verify import verify

ROOT = next(place for place in Path(__file__).parents if (place / "pyproject.toml").is_file())
INF = np.inf
LAWS = {"laplace": cg.DiscreteLaplace, "gaussian": cg.DiscreteGaussian}
REAL_LAWS = {"laplace": cg.Laplace, "gaussian": cg.Gaussian}
# The stored value of an empty cell of a released table.
_MISSING = np.iinfo(np.int64).min

CASES: dict[str, Callable[[], dict[str, object]]] = {}


def case(*names: object) -> Callable[[Callable[..., dict[str, object]]], Callable[..., object]]:
    """Register a function as one case, named after it, or as one for each name that it takes."""

    def register(function: Callable[..., dict[str, object]]) -> Callable[..., object]:
        base = function.__name__
        if not names:
            CASES[base] = function
        for name in names:
            told = name if isinstance(name, tuple) else (name,)
            CASES[f"{base}: {', '.join(map(str, told))}"] = lambda told=told: function(*told)
        return function

    return register


def source(seed: int):
    """Return the words of a seed; every case without a plan draws from here."""
    return cg.seeded(seed)


# what is asked of mechanisms


def numbers(n: int, most: int = 23) -> np.ndarray:
    """Return made-up counts below `most`, the same whatever the version of numpy."""
    return (np.arange(n) * 7919 + 13) % 1009 % most


def in_steps(values: np.ndarray, step: float) -> np.ndarray:
    """Return values on a grid as whole numbers of steps, which are exact."""
    steps = np.rint(values / step).astype(np.int64)
    assert (steps * step == values).all()
    return steps


def near(law, value: float, step: float = 1.0) -> np.ndarray:
    """Return the probabilities of a value and of the four next to it."""
    values, probabilities = law
    table = dict(zip(np.rint(values / step).astype(int).tolist(), probabilities, strict=True))
    at = round(value / step)
    return np.array([table.get(k, 0.0) for k in range(at - 2, at + 3)])


def law_of(made, x, *, rows=6, step=1.0, nodes=None) -> dict[str, object]:
    """Draws and what is known of their law."""
    x = np.asarray(x)
    z = made.sample(x, rows, source(1))
    nodes = (0, x.size // 2, x.size - 1) if nodes is None else nodes
    return {
        "draws": in_steps(z, step),
        "draw": in_steps(made.sample(x, rng=source(2)), step),
        "log_normalizer": made.log_normalizer(x),
        "log_prob": made.log_prob(z, x),
        "marginals": np.array([near(made.marginal(v, x), x[v], step) for v in nodes]),
        "error_bound": np.ceil(np.log10(max(made.error_bound, 1e-300))).astype(int),
    }


SMALL = (-1, 0, 0, 1, 1, 1, 2, 2, 7, 7)


def tree_of(parents=SMALL, most=23):
    """Return a tree and counts of its nodes."""
    tree = cg.Tree.from_parents(list(parents))
    return tree, np.asarray(tree.roll_up(numbers(tree.leaves.size, most)))


def wide_tree(inner: int, leaves: int, most: int = 23):
    """Return a tree of three levels and its counts."""
    parents = [-1, *[0] * inner, *np.repeat(np.arange(1, inner + 1), leaves).tolist()]
    return tree_of(parents, most)


def crossing(*sizes: int, impossible=None):
    """Return the total and all margins of one axis of a table, and counts."""
    axes = {f"axis{i}": [f"v{j}" for j in range(size)] for i, size in enumerate(sizes)}
    table = cg.Table(axes, impossible=impossible)
    workload = cg.Workload.of(table, [(), *((axis,) for axis in axes)])
    cells = numbers(int(np.prod(sizes)), 7).reshape(sizes)
    return workload, workload.answers(np.where(table.possible.reshape(table.shape), cells, 0))


def margins(rows: int, columns: int) -> np.ndarray:
    """Return the row sums and column sums of a table, row by row."""
    cells = np.arange(rows * columns).reshape(rows, columns)
    return np.array([np.isin(cells, line).ravel() for line in (*cells, *cells.T)], dtype=np.int64)


# noise alone

SCALES = {
    "one scale": (2.5, 1.0),
    "a scale a node": (np.linspace(0.3, 40.0, 10), 1.0),
    "not all measured": (np.where(np.arange(10) % 3 == 0, INF, 1.7), 1.0),
    "narrow": (0.4, 1.0),
    "wide": (5000.0, 1.0),
    "fine grid": (2.5, 2.0**-6),
    "coarse grid": (40.0, 8.0),
}


@case(*((kind, which) for kind in LAWS for which in SCALES))
def noise(kind, which):
    scales, step = SCALES[which]
    mechanism = cg.Additive(LAWS[kind](scales, step), 10)
    x = numbers(10) * max(step, 1.0)
    z = mechanism.sample(x, 12, source(1))
    return {
        "draws": in_steps(z, step),
        "draw": in_steps(mechanism.sample(x, rng=source(2)), step),
        "log_prob": mechanism.log_prob(z, x),
        "variances": mechanism.noise.variances(mechanism.scales),
        "spread": mechanism.noise.spread,
    }


@case(*LAWS)
def noise_of_many(kind):
    tree, x = wide_tree(40, 60)
    scales = np.array([3.0, 5.0, 8.0])[tree.level]
    return {"draws": cg.Additive(LAWS[kind](scales), tree).sample(x, 5, source(3))}


@case(*((kind, which) for kind in REAL_LAWS for which in ("one scale", "not all measured")))
def continuous_noise(kind, which):
    mechanism = cg.Additive(REAL_LAWS[kind](SCALES[which][0]), 10)
    z = mechanism.sample(numbers(10), 12, source(1))
    return {"draws": z, "log_prob": mechanism.log_prob(np.nan_to_num(z), numbers(10))}


# conditioning on sums without cycles

PINS = {
    "nothing": (),
    "the root": (0,),
    "inner nodes": (1, 2),
    "leaves": (3, 9),
    "a branch": (2, 6, 7),
}


@case(*((kind, which) for kind in LAWS for which in PINS))
def tree_with_pins(kind, which):
    tree, x = tree_of()
    need = cg.consistent(tree)
    if PINS[which]:
        need = need & cg.exactly(list(PINS[which]))
    made = cg.condition(cg.Additive(LAWS[kind](1.9), tree), need)
    joint = made.joint([3, 8], x)[1]
    ends = [made.interval(v, 0.1) for v in range(x.size)]
    guarantee = made.guarantee("substitute")
    return law_of(made, x) | {
        "joint": np.sort(joint.ravel())[::-1][:5],
        "intervals": ends,
        "spent": guarantee.epsilon if kind == "laplace" else guarantee.rho,
        "log_mass": made.log_mass,
    }


BOUNDS = {
    "nonnegative": cg.nonnegative(),
    "above": cg.bounds(-INF, np.where(np.arange(10) > 2, 25.0, INF)),
    "boxes": cg.bounds(np.where(np.arange(10) > 2, 0.0, -INF), np.where(np.arange(10), 60.0, INF)),
    "pin": cg.nonnegative() & cg.exactly([0]),
    "pins": cg.nonnegative() & cg.exactly([2, 3]),
    "at least": cg.at_least([[0, 1, -1, *[0] * 7]], [-30]),
    "at least, of leaves": cg.at_least([[0, 0, 0, 1, 1, 0, 0, 0, 0, 0]], [5]) & cg.nonnegative(),
}
TREE_SCALES = {
    "one scale": np.full(10, 1.9),
    "a scale a node": np.linspace(0.6, 4.0, 10),
    "leaves not measured": np.where(np.isin(np.arange(10), (4, 8)), INF, 1.9),
    "inner nodes not measured": np.where(np.isin(np.arange(10), (0, 2, 7)), INF, 1.9),
}


@case(*((kind, which) for kind in LAWS for which in BOUNDS))
def tree_with_bounds(kind, which):
    tree, x = tree_of()
    made = cg.condition(cg.Additive(LAWS[kind](1.9), tree), cg.consistent(tree) & BOUNDS[which])
    return law_of(made, x)


@case(*((kind, which) for kind in LAWS for which in TREE_SCALES))
def tree_of_scales(kind, which):
    tree, x = tree_of()
    mechanism = cg.Additive(LAWS[kind](TREE_SCALES[which]), tree)
    bounded = cg.condition(mechanism, cg.consistent(tree) & cg.nonnegative())
    free = cg.condition(mechanism, cg.consistent(tree))
    return {
        "free": free.sample(x, 6, source(4)),
        "free log_normalizer": free.log_normalizer(x),
    } | law_of(bounded, x)


@case(*((kind, step) for kind in LAWS for step in (0.25, 4.0)))
def tree_on_a_grid(kind, step):
    tree, x = tree_of()
    mechanism = cg.Additive(LAWS[kind](2.0 * step, step), tree)
    made = cg.condition(mechanism, cg.consistent(tree) & cg.exactly([0]) & cg.nonnegative())
    return law_of(made, x * step, step=step)


FLAT = {
    "no sum": (np.zeros((0, 30)), ()),
    "one sum": (np.ones((1, 30)), ()),
    "one sum and pins": (np.ones((1, 30)), (0, 7)),
    "disjoint sums": (np.repeat(np.eye(3), 10, axis=1), ()),
    "a chain of differences": (np.eye(20, 30) - np.eye(20, 30, 1), ()),
    "joined sums": (np.array([[1] * 12 + [0] * 18, [0] * 11 + [-1] + [1] * 18]), ()),
}


@case(*((kind, which, low) for kind in LAWS for which in FLAT for low in (-INF, 0)))
def flat_sums(kind, which, low):
    rows, pins = FLAT[which]
    x = numbers(30, 9)
    need = cg.bounds(low)
    if len(rows):
        need = need & cg.linear(rows, rows @ x)
    if pins:
        need = need & cg.exactly(list(pins))
    return law_of(cg.condition(cg.Additive(LAWS[kind](1.4), 30), need), x)


@case(*LAWS)
def forest(kind):
    tree, x = tree_of((-1, 0, 0, -1, 3, 3, 3, -1))
    need = cg.consistent(tree) & cg.exactly([3]) & cg.nonnegative()
    return law_of(cg.condition(cg.Additive(LAWS[kind](1.4), tree), need), x)


SIBLINGS = {
    "pinned": (np.full(81, 3.0), (0,)),
    "free": (np.full(81, 3.0), ()),
    "two scales": (np.where(np.arange(81) > 50, 3.0, 1.0), (0,)),
    "one odd": (np.where(np.arange(81) == 80, 9.0, 1.5), ()),
    "one not measured": (np.where(np.arange(81) == 80, INF, 1.5), ()),
    "split directly": (np.full(81, 60.0), (0,)),
    "parent not measured": (np.where(np.arange(81) == 0, INF, 3.0), ()),
}


@case(*((kind, which) for kind in LAWS for which in SIBLINGS))
def like_siblings(kind, which):
    scales, pins = SIBLINGS[which]
    tree, x = tree_of([-1] + [0] * 80)
    need = cg.consistent(tree) & cg.exactly(list(pins)) if pins else cg.consistent(tree)
    return law_of(cg.condition(cg.Additive(LAWS[kind](scales), tree), need), x, rows=70)


@case(*LAWS)
def unmeasured_siblings(kind):
    tree, x = tree_of([-1] + [0] * 40)
    scales = np.where(np.arange(41) % 3 == 1, INF, 1.5)
    need = cg.consistent(tree) & cg.exactly([0]) & cg.nonnegative()
    return law_of(cg.condition(cg.Additive(LAWS[kind](scales), tree), need), x)


@case((0, 1, 2), (1, 2), (1,))
def families_split_directly(*pins):
    tree, x = tree_of([-1, 0, 0, *[1] * 90, *[2] * 70])
    need = cg.consistent(tree) & cg.exactly(list(pins))
    return law_of(cg.condition(cg.Additive(cg.DiscreteLaplace(50.0), tree), need), x)


LARGE = {
    "free": cg.consistent,
    "root": lambda tree: cg.consistent(tree) & cg.exactly([0]),
    "nonnegative": lambda tree: cg.consistent(tree) & cg.exactly([0]) & cg.nonnegative(),
}


@case(*((kind, which) for kind in LAWS for which in LARGE))
def large_tree(kind, which):
    """Thousands of nodes, and draws enough for several threads."""
    tree, x = wide_tree(40, 60)
    scales = np.array([2.0, 3.0, 2.0])[tree.level]
    made = cg.condition(cg.Additive(LAWS[kind](scales), tree), LARGE[which](tree))
    return law_of(made, x, rows=120)


@case()
def many_draws():
    """More draws than one batch holds."""
    tree, x = wide_tree(8, 25, 4)
    need = cg.consistent(tree) & cg.nonnegative()
    made = cg.condition(cg.Additive(cg.DiscreteLaplace(1.5), tree), need)
    return {"draws": made.sample(x, 30_000, source(6))}


# conditioning on sums with cycles, mixtures and unions

SQUARE = np.array([1, 2, 0, 0, 3, 1, 2, 2, 1])


@case(*((kind, low, step) for kind in LAWS for low in (-INF, 0) for step in (1.0, 0.5)))
def cut_set(kind, low, step):
    rows, x = margins(3, 3), step * SQUARE
    need = cg.linear(rows, rows @ x) & cg.bounds(low)
    made = cg.condition(cg.Additive(LAWS[kind](0.8 * step, step), 9), need)
    return law_of(made, x, rows=40, step=step) | {"joint": made.joint([0, 4], x)[1].max(axis=0)[:5]}


@case(*((kind, margin) for kind in LAWS for margin in ("total", "axis0", "axis1")))
def crossing_table(kind, margin):
    workload, x = crossing(2, 3)
    need = cg.consistent(workload) & cg.nonnegative()
    need = need & cg.exactly_margins([() if margin == "total" else margin])
    made = cg.condition(cg.Additive(LAWS[kind](np.full(len(workload), 0.7)), workload), need)
    return law_of(made, x, rows=40)


@case("laplace", "gaussian")
def wide_crossing_table(kind):
    """A total carried along as a tally."""
    workload, x = crossing(2, 6)
    noise = LAWS[kind](np.full(len(workload), {"laplace": 0.4, "gaussian": 0.6}[kind]))
    made = cg.condition(cg.Additive(noise, workload), cg.consistent(workload) & cg.nonnegative())
    return law_of(made, x, rows=40)


@case(*LAWS)
def tree_with_further_sums(kind):
    tree, x = tree_of(most=5)
    row = np.array([[0, 0, 0, 1, 0, 0, 1, 0, 1, 0]])
    need = cg.consistent(tree) & cg.linear(row, row @ x)
    return law_of(cg.condition(cg.Additive(LAWS[kind](0.8), tree), need), x)


@case(*((kind, bounded) for kind in LAWS for bounded in (False, True)))
def mixture(kind, bounded):
    tree, x = tree_of()
    parts = [cg.Additive(LAWS[kind](scale), tree) for scale in (0.8, 4.0)]
    mixed = cg.mixture(parts, [0.3, 0.7])
    need = cg.consistent(tree) & cg.exactly([0])
    made = cg.condition(mixed, need & cg.nonnegative() if bounded else need)
    z = mixed.sample(x, 6, source(1))
    return law_of(made, x) | {"unconditioned": z, "its log_prob": mixed.log_prob(z, x)}


@case(*LAWS)
def union(kind):
    tree, x = tree_of((-1, 0, 0, 0))
    need = cg.consistent(tree) & cg.exactly("root")
    ends = ((-INF, x[1]), (x[1] + 2, x[1] + 5))
    low, high = (cg.bounds([-INF, a, -INF, -INF], [INF, b, INF, INF]) for a, b in ends)
    made = cg.condition(cg.Additive(LAWS[kind](1.5), tree), (need & low) | (need & high))
    return law_of(made, x)


# other samplers

PROPOSALS = {
    "chosen": None,
    "given": cg.Proposal([1, 2]),
    "scaled": cg.Proposal([1, 2], 2.5),
}
ONE_SUM = cg.linear([[1, 1, 1]], [12])
THREE = np.array([5, 4, 3])


def mechanism_of(kind: str, real: bool, n: object = 3, scale: float = 1.5):
    return cg.Additive((REAL_LAWS if real else LAWS)[kind](scale), n)


@case(
    *(
        (sampler, kind, real, which)
        for sampler in ("rejection", "independence", "perfect")
        for kind in LAWS
        for real in (False, True)
        for which in PROPOSALS
    )
)
def by_proposals(sampler, kind, real, which):
    need = ONE_SUM & cg.nonnegative()
    made = cg.condition(mechanism_of(kind, real), need, sampler, proposal=PROPOSALS[which])
    told = {"draws": made.sample(THREE, 12, source(1))}
    return told if real else told | {"log_ratio": made.log_ratio(THREE)}


@case(*((kind, real) for kind in LAWS for real in (False, True)))
def independence_chains(kind, real):
    made = cg.condition(mechanism_of(kind, real), ONE_SUM, "independence")
    draw, info = made.run(THREE, 40, 3, source(2), thin=2)
    return {
        "draws": draw.values,
        "acceptance": info.acceptance,
        "r_hat": info.r_hat,
        "bulk_ess": info.bulk_ess,
        "tv_bound": info.tv_bound,
    }


@case(*((kind, real) for kind in LAWS for real in (False, True)))
def tree_mh(kind, real):
    tree, x = tree_of()
    made = cg.condition(mechanism_of(kind, real, tree), cg.consistent(tree), "tree-mh")
    bounded = cg.consistent(tree) & cg.nonnegative()
    low = cg.condition(
        mechanism_of(kind, real, tree), bounded, "tree-mh", proposal=cg.Proposal(scale=1.0)
    )
    draw, info = made.run(x, 40, 3, source(2))
    return {
        "draws": draw.values,
        "bounded": low.sample(x, 12, source(3)),
        "acceptance": info.acceptance,
    }


@case(*((kind, which) for kind in LAWS for which in TREE_SCALES))
def gibbs_on_a_tree(kind, which):
    tree, x = tree_of()
    mechanism = cg.Additive(LAWS[kind](TREE_SCALES[which]), tree)
    made = cg.condition(mechanism, cg.consistent(tree) & cg.nonnegative(), "gibbs")
    draw, info = made.run(x, 30, 3, source(2))
    return {"draws": draw.values, "sample": made.sample(x, 7, source(3)), "r_hat": info.r_hat}


@case(*((kind, scale, bounded) for kind in LAWS for scale in (1.0, 8.0) for bounded in (0, 1)))
def lattice_moves(kind, scale, bounded):
    workload, x = crossing(2, 3)
    need = cg.consistent(workload) & cg.exactly_margins(["axis0"])
    need = need & cg.nonnegative() if bounded else need
    made = cg.condition(
        cg.Additive(LAWS[kind](np.full(len(workload), scale)), workload), need, "gibbs"
    )
    draw, info = made.run(x, 20, 3, source(2))
    return {"draws": draw.values, "bulk_ess": info.bulk_ess}


REAL_SUMS = {
    "tree": (cg.Tree.from_parents(list(SMALL)), None, ()),
    "tree and pins": (cg.Tree.from_parents(list(SMALL)), None, (0, 4)),
    "sums": (None, np.array([[1, 1, -1, 0, 0], [0, 0, 1, 1, 1]]), ()),
    "weighed sums": (None, np.array([[1, 1, 0, 0, 1], [1, 0, 1, 0, 0], [0, 2, 0, 1, 0]]), ()),
    "crossing sums": (None, margins(4, 5), (3,)),
}


def real_case(kind, which):
    tree, rows, pins = REAL_SUMS[which]
    n = len(tree) if tree is not None else rows.shape[1]
    x = tree.roll_up(numbers(tree.leaves.size)) if tree is not None else numbers(n)
    need = cg.consistent(tree) if tree is not None else cg.linear(rows, rows @ x)
    need = need & cg.exactly(list(pins)) if pins else need
    scales = np.linspace(0.5, 2.0, n)
    return cg.condition(cg.Additive(REAL_LAWS[kind](scales), tree or n), need), np.asarray(x)


@case(*REAL_SUMS)
def gaussian_in_closed_form(which):
    made, x = real_case("gaussian", which)
    z = made.sample(x, 6, source(1))
    law = made.marginal(2, x)
    return {
        "draws": z,
        "log_normalizer": made.log_normalizer(x),
        "log_prob": made.log_prob(z, x),
        "marginal": [law.mean, law.sd],
        "joint": made.joint([1, 2], x)[1],
        "interval": made.interval(2),
    }


@case()
def gaussian_of_many():
    tree, x = wide_tree(40, 30)
    made = cg.condition(cg.Additive(cg.Gaussian(2.0), tree), cg.consistent(tree) & cg.exactly([0]))
    return {"draws": made.sample(x, 3, source(1)), "log_normalizer": made.log_normalizer(x)}


@case(*REAL_SUMS)
def laplace_chains(which):
    made, x = real_case("laplace", which)
    draw, _ = made.run(x, 30, 3, source(2))
    # ranks of nearly equal numbers depend on last bits, and R-hat on ranks
    return {"draws": draw.values, "sample": made.sample(x, 5, source(3))}


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
    need = cg.consistent(tree) & cg.exactly("root")
    made = cg.image(cg.Additive(cg.DiscreteLaplace(3.0), tree), need, "l1", beta=beta)
    shares = cg.project(
        [9.0, 2.0, 3.5], cg.linear([[1, 1, 1]], [10]), norm="l1", beta=[0.5, 0.2, 0.3]
    )
    return {"draws": made.sample(x, 8, source(1)), "shares": shares}


@case(*((which, integer) for which in ("crossing", "bounds", "inequalities") for integer in (0, 1)))
def image_by_general_solvers(which, integer):
    rows, x = margins(3, 4), numbers(12, 6)
    need = cg.linear(rows, rows @ x)
    if which != "crossing":
        need = need & cg.nonnegative()
    if which == "inequalities":
        need = need & cg.at_least([[1, -1, *[0] * 10]], [x[0] - x[1] - 2])
    made = cg.image(cg.Additive(cg.DiscreteLaplace(2.0), 12), need, "l2", bool(integer))
    return {"draws": made.sample(x, 6, source(1))}


@case(*((exact, integer) for exact in ("axis0", "axis1") for integer in (False, True)))
def image_of_a_crossing_table(exact, integer):
    workload, x = crossing(3, 4)
    need = cg.consistent(workload) & cg.exactly_margins([exact]) & cg.nonnegative()
    mechanism = cg.Additive(cg.DiscreteLaplace(np.full(len(workload), 2.0)), workload)
    return {"draws": cg.image(mechanism, need, "l2", integer).sample(x, 4, source(1))}


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
    need = cg.consistent(domain) & cg.nonnegative()
    return {"released": cg.topdown(y, domain, need, source(2), integer=integer)}


@case(*((kind, which) for kind in LAWS for which in ("tree", "table", "many nodes")))
def topdown_image(kind, which):
    domain, x = nested(which)
    made = cg.topdown_image(cg.Additive(LAWS[kind](3.0), domain), cg.nonnegative())
    return {"draws": made.sample(x, 3, source(1))}


@case("tree", "table", "many nodes")
def round_unbiased(which):
    domain, x = nested(which)
    z = cg.project(x + 0.37 * numbers(x.size, 11), cg.consistent(domain))
    return {"real": z, "rounded": [cg.round_unbiased(z, domain, source(k)) for k in range(4)]}


# inference

PRIORS = {
    "flat": "flat",
    "poisson": "poisson",
    "negative-binomial": "negative-binomial",
    "given": cg.Prior(8.0, 2.0, 0.1),
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
    need = cg.consistent(tree) & BOUNDS["pin"] if which == "bounds" else cg.consistent(tree)
    made = cg.condition(cg.Additive(LAWS[kind](2.0), tree), need)
    return made, x, made.sample(x, rng=source(1))


@case(*((kind, which) for kind in LAWS for which in ("equalities", "bounds")))
def inverted_intervals(kind, which):
    made, _, z = conditioned_for_readers(kind, which)
    return {
        "released": z,
        "alone": cg.inverted_intervals(made, z),
        "together": cg.inverted_intervals(made, z, 0.2, together=7),
    }


@case()
def inverted_intervals_of_many():
    tree, x = wide_tree(12, 12, 5)
    need = cg.consistent(tree) & cg.nonnegative()
    made = cg.condition(cg.Additive(cg.DiscreteLaplace(2.0), tree), need)
    return {"ends": cg.inverted_intervals(made, made.sample(x, rng=source(1)))}


@case(*((kind, which) for kind in LAWS for which in ("conditioned", "l2", "l1", "topdown")))
def error_margins(kind, which):
    tree, _ = tree_of()
    mechanism = cg.Additive(LAWS[kind](TREE_SCALES["a scale a node"]), tree)
    need = cg.consistent(tree) & cg.exactly([0])
    if which == "conditioned":
        made = cg.condition(mechanism, need)
    elif which == "topdown":
        made = cg.topdown_image(mechanism, need)
    else:
        made = cg.image(mechanism, need, which, True)
    return {
        "each": cg.error_margins(made, size=499, rng=source(1)),
        "sum": cg.error_margin_of_sum(made, [3, 8], size=499, rng=source(2)),
        "together": cg.simultaneous_error_margins(made, size=499, rng=source(3)),
    }


@case(*((kind, which) for kind in LAWS for which in ("equalities", "bounds")))
def log_likelihood(kind, which):
    made, x, z = conditioned_for_readers(kind, which)
    told = {"of counts": cg.log_likelihood(z, made, x)}
    if which == "bounds":
        return told
    prior = cg.Prior(8.0, 2.0)
    gradient = cg.log_likelihood_gradient(z, made, prior)
    return told | {
        "of a model": cg.log_likelihood(z, made, prior),
        "by means": gradient.mean,
        "by dispersions": gradient.dispersion,
    }


@case("conditioned", "image")
def audit(which):
    tree, _ = tree_of((-1, 0, 0))
    mechanism, need = cg.Additive(cg.DiscreteLaplace(1.0), tree), cg.consistent(tree)
    made = (cg.condition if which == "conditioned" else cg.image)(mechanism, need)
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
    with tempfile.TemporaryDirectory() as name:
        return whole(parse_plan(TAXI), ROOT / "examples" / "taxi", Path(name) / "out", 7)
