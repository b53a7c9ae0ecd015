"""Stored draws of conditioned mechanisms, by every sampler; see `stored_draws`."""

from __future__ import annotations

import numpy as np

import congenial as cg
from support.stored_cases import (
    BOUNDS,
    INF,
    LAWS,
    REAL_LAWS,
    SMALL,
    TREE_SCALES,
    case,
    crossing,
    law_of,
    margins,
    numbers,
    source,
    tree_of,
    wide_tree,
)

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
    invariant = cg.consistent(tree)
    if PINS[which]:
        invariant = invariant & cg.exactly(list(PINS[which]))
    made = cg.condition(cg.Additive(LAWS[kind](1.9), tree), invariant)
    joint = made.joint([3, 8], x)[1]
    ends = [made.interval(v, 0.1) for v in range(x.size)]
    guarantee = made.guarantee("substitute")
    return law_of(made, x) | {
        "joint": np.sort(joint.ravel())[::-1][:5],
        "intervals": ends,
        "spent": guarantee.epsilon if kind == "laplace" else guarantee.rho,
        "log_mass": made.log_mass,
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
    invariant = cg.bounds(low)
    if len(rows):
        invariant = invariant & cg.linear(rows, rows @ x)
    if pins:
        invariant = invariant & cg.exactly(list(pins))
    return law_of(cg.condition(cg.Additive(LAWS[kind](1.4), 30), invariant), x)


@case(*LAWS)
def forest(kind):
    tree, x = tree_of((-1, 0, 0, -1, 3, 3, 3, -1))
    invariant = cg.consistent(tree) & cg.exactly([3]) & cg.nonnegative()
    return law_of(cg.condition(cg.Additive(LAWS[kind](1.4), tree), invariant), x)


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
    invariant = cg.consistent(tree) & cg.exactly(list(pins)) if pins else cg.consistent(tree)
    return law_of(cg.condition(cg.Additive(LAWS[kind](scales), tree), invariant), x, rows=70)


@case(*LAWS)
def unmeasured_siblings(kind):
    tree, x = tree_of([-1] + [0] * 40)
    scales = np.where(np.arange(41) % 3 == 1, INF, 1.5)
    invariant = cg.consistent(tree) & cg.exactly([0]) & cg.nonnegative()
    return law_of(cg.condition(cg.Additive(LAWS[kind](scales), tree), invariant), x)


@case((0, 1, 2), (1, 2), (1,))
def families_split_directly(*pins):
    tree, x = tree_of([-1, 0, 0, *[1] * 90, *[2] * 70])
    invariant = cg.consistent(tree) & cg.exactly(list(pins))
    return law_of(cg.condition(cg.Additive(cg.DiscreteLaplace(50.0), tree), invariant), x)


@case(13.0, 40.0)
def bounded_counts_under_wide_noise(scale):
    """A tree of which most leaves are empty, so that equal families share tables."""
    above = np.repeat(np.arange(1, 41), 10), np.repeat(np.arange(41, 441), 40)
    tree = cg.Tree.from_parents([-1, *[0] * 40, *np.concatenate(above).tolist()])
    x = tree.roll_up(np.maximum(numbers(tree.leaves.size, 97) - 90, 0))
    invariant = cg.consistent(tree) & cg.exactly([0]) & cg.nonnegative()
    made = cg.condition(cg.Additive(cg.DiscreteLaplace(scale), tree), invariant)
    return {"draws": made.sample(x, 3, source(1))}


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
    invariant = cg.consistent(tree) & cg.nonnegative()
    made = cg.condition(cg.Additive(cg.DiscreteLaplace(1.5), tree), invariant)
    return {"draws": made.sample(x, 30_000, source(6))}


# conditioning on sums with cycles, mixtures and unions

SQUARE = np.array([1, 2, 0, 0, 3, 1, 2, 2, 1])


@case(*((kind, low, step) for kind in LAWS for low in (-INF, 0) for step in (1.0, 0.5)))
def cut_set(kind, low, step):
    rows, x = margins(3, 3), step * SQUARE
    invariant = cg.linear(rows, rows @ x) & cg.bounds(low)
    made = cg.condition(cg.Additive(LAWS[kind](0.8 * step, step), 9), invariant)
    return law_of(made, x, rows=40, step=step) | {"joint": made.joint([0, 4], x)[1].max(axis=0)[:5]}


@case(*((kind, margin) for kind in LAWS for margin in ("total", "axis0", "axis1")))
def crossing_table(kind, margin):
    workload, x = crossing(2, 3)
    invariant = cg.consistent(workload) & cg.nonnegative()
    invariant = invariant & cg.exactly(margins=[() if margin == "total" else margin])
    made = cg.condition(cg.Additive(LAWS[kind](np.full(len(workload), 0.7)), workload), invariant)
    return law_of(made, x, rows=40)


@case("laplace", "gaussian")
def wide_crossing_table(kind):
    """A total carried along as a tally."""
    workload, x = crossing(2, 5)
    noise = LAWS[kind](np.full(len(workload), 0.5))
    made = cg.condition(cg.Additive(noise, workload), cg.consistent(workload) & cg.nonnegative())
    return law_of(made, x, rows=40)


@case(*LAWS)
def tree_with_further_sums(kind):
    tree, x = tree_of(most=5)
    row = np.array([[0, 0, 0, 1, 0, 0, 1, 0, 1, 0]])
    invariant = cg.consistent(tree) & cg.linear(row, row @ x)
    return law_of(cg.condition(cg.Additive(LAWS[kind](0.8), tree), invariant), x)


@case(*((kind, bounded) for kind in LAWS for bounded in (False, True)))
def mixture(kind, bounded):
    tree, x = tree_of()
    parts = [cg.Additive(LAWS[kind](scale), tree) for scale in (0.8, 4.0)]
    mixed = cg.mixture(parts, [0.3, 0.7])
    invariant = cg.consistent(tree) & cg.exactly([0])
    made = cg.condition(mixed, invariant & cg.nonnegative() if bounded else invariant)
    z = mixed.sample(x, 6, source(1))
    return law_of(made, x) | {"unconditioned": z, "its log_prob": mixed.log_prob(z, x)}


@case(*LAWS)
def union(kind):
    tree, x = tree_of((-1, 0, 0, 0))
    invariant = cg.consistent(tree) & cg.exactly("root")
    ends = ((-INF, x[1]), (x[1] + 2, x[1] + 5))
    low, high = (cg.bounds([-INF, a, -INF, -INF], [INF, b, INF, INF]) for a, b in ends)
    made = cg.condition(cg.Additive(LAWS[kind](1.5), tree), (invariant & low) | (invariant & high))
    return law_of(made, x)


# other samplers

PROPOSALS = {
    "chosen": None,
    "given": cg.conditioning.Proposal([1, 2]),
    "scaled": cg.conditioning.Proposal([1, 2], 2.5),
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
    invariant = ONE_SUM & cg.nonnegative()
    made = cg.condition(mechanism_of(kind, real), invariant, sampler, proposal=PROPOSALS[which])
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
        mechanism_of(kind, real, tree),
        bounded,
        "tree-mh",
        proposal=cg.conditioning.Proposal(scale=1.0),
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
    invariant = cg.consistent(workload) & cg.exactly(margins=["axis0"])
    invariant = invariant & cg.nonnegative() if bounded else invariant
    made = cg.condition(
        cg.Additive(LAWS[kind](np.full(len(workload), scale)), workload), invariant, "gibbs"
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
    invariant = cg.consistent(tree) if tree is not None else cg.linear(rows, rows @ x)
    invariant = invariant & cg.exactly(list(pins)) if pins else invariant
    scales = np.linspace(0.5, 2.0, n)
    return cg.condition(cg.Additive(REAL_LAWS[kind](scales), tree or n), invariant), np.asarray(x)


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
