"""What is stored of mechanisms by `stored_draws`: how cases are made, and cases of noise alone.

Each case is a function that returns named arrays. Counts are made up by arithmetic, so that no
version of numpy changes them. Cases of other methods are in `stored_conditioning` and
`stored_readers`. All use public names, but for the imports at the top of `stored_readers`.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import congenial as cg

INF = np.inf
LAWS = {"laplace": cg.DiscreteLaplace, "gaussian": cg.DiscreteGaussian}
REAL_LAWS = {"laplace": cg.Laplace, "gaussian": cg.Gaussian}

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
