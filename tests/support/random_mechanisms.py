"""Random correct mechanisms: noise laws, methods, samplers, bounds, pins, sums and tables."""

from __future__ import annotations

from typing import Any, cast

import numpy as np

import congenial as cg
from support.table_worlds import CASES, world

SAMPLERS = ("rejection", "independence", "perfect", "gibbs", "tree-mh")
LAWS: dict[str, Any] = {
    "DiscreteLaplace": cg.DiscreteLaplace,
    "DiscreteGaussian": cg.DiscreteGaussian,
    "Laplace": cg.Laplace,
    "Gaussian": cg.Gaussian,
}


def random_mechanism(seed: int) -> tuple[str, Any, Any]:
    """Make one mechanism that keeps its claim; its name, and the neighbours of the claim.

    Raises
    ------
    CongenialError
        Where what was drawn is not supported.
    """
    source = np.random.default_rng(seed)
    if source.random() < 0.2:
        return _of_table(source, seed)
    tree = _tree(source)
    n, leaves = len(tree), tree.leaves
    name = str(source.choice([*LAWS], p=[0.45, 0.35, 0.1, 0.1]))
    relation = str(source.choice(["substitute", "add-remove"]))
    scales = source.uniform(0.8, 5.0, n)
    if source.random() < 0.2:
        scales[int(source.integers(n))] = np.inf
    step = float(source.choice([1.0, 0.5])) if name.startswith("Discrete") else 0.0
    law = LAWS[name](scales, granularity=step) if step else LAWS[name](scales)
    queries = cg.Additive(law, tree)
    told = [name, f"{leaves.size} leaves", relation]
    mandates = cg.consistent(tree)
    if relation == "substitute" and source.random() < 0.7:
        inner = np.setdiff1d(np.arange(n), leaves)
        pins = sorted({0, *source.choice(inner, int(source.integers(1, 3))).tolist()})
        mandates, told = mandates & cg.exactly(pins), [*told, f"pins {pins}"]
    if step and source.random() < 0.6:
        mandates, told = mandates & cg.nonnegative(), [*told, "nonnegative"]
        if source.random() < 0.4:
            high = np.full(n, np.inf)
            high[int(source.choice(leaves))] = float(source.integers(2, 9))
            mandates, told = mandates & cg.bounds(hi=high), [*told, "a bound"]
    method = str(source.choice(["condition", "image", "topdown", "mixture", "sampler"]))
    made: Any
    if method == "image":
        norm = cast("Any", source.choice(["l2", "l1"]))
        whole = bool(source.random() < 0.6) and step == 1.0
        made, told = cg.image(queries, mandates, norm, whole), [*told, f"image {norm} {whole}"]
    elif method == "topdown":
        made, told = cg.imaging.topdown_image(queries, mandates), [*told, method]
    elif method == "mixture":
        wider = LAWS[name](1.5 * scales, granularity=step) if step else LAWS[name](1.5 * scales)
        both = cg.mixture([queries, cg.Additive(wider, tree)], [0.4, 0.6])
        made, told = cg.condition(both, mandates), [*told, method]
    elif method == "sampler":
        sampler = str(source.choice(SAMPLERS))
        made, told = cg.condition(queries, mandates, sampler), [*told, sampler]
    else:
        made, told = cg.condition(queries, mandates), [*told, method]
    return ", ".join(told), made, relation


def _tree(source: np.random.Generator) -> cg.Tree:
    """A tree of up to ten nodes, any shape."""
    n = int(source.integers(3, 11))
    return cg.Tree.from_parents([-1, *(int(source.integers(0, v)) for v in range(1, n))])


def _of_table(source: np.random.Generator, seed: int) -> tuple[str, Any, Any]:
    """Noise on margins of a table, conditioned or moved."""
    case, kind = str(source.choice([*CASES])), str(source.choice(["laplace", "gaussian"]))
    _, _, queries, mandates = world(case, kind, seed)
    relation = str(source.choice(["substitute", "add-remove"]))
    imaged = bool(source.random() < 0.4)
    made: Any = cg.image(queries, mandates) if imaged else cg.condition(queries, mandates)
    return f"{case}, {kind}, {relation}, {'image' if imaged else 'condition'}", made, relation
