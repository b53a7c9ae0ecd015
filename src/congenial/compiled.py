"""Compiling every kernel once, so that no later command has to."""

from __future__ import annotations

import gc
import os
from pathlib import Path
from typing import Literal

import numpy as np

from congenial.conditioning.condition import condition
from congenial.imaging.image import image
from congenial.imaging.topdown import topdown_image
from congenial.invariants import consistent, exactly, nonnegative
from congenial.mechanisms.additive import Additive
from congenial.mechanisms.discrete_gaussian import DiscreteGaussian
from congenial.mechanisms.discrete_laplace import DiscreteLaplace
from congenial.randomness import seeded
from congenial.tree import Tree

# Kernels that no plan uses.
_OF_STUDIES = {
    "__init__",
    "compiling",
    "cutset",
    "independence",
    "laws",
    "normal",
    "tallies",
    "tree_mh",
}

Method = Literal["conditioning", "imaging"]


def is_missing(method: Method) -> bool:
    """Whether a kernel that plans of a method use has nothing in the cache of compiled code."""
    kernels = Path(__file__).parent / "kernels"
    place = os.environ.get("NUMBA_CACHE_DIR")
    cache = kernels / "__pycache__" if place is None else Path(place)
    there = {path.name.split(".")[0] for path in cache.rglob("*.nbi")}
    own = {path.stem for path in kernels.glob("project_*.py")}
    if method == "conditioning":
        own = {path.stem for path in kernels.glob("*.py")} - own - _OF_STUDIES
    return not own <= there


def compile_kernels(method: Method) -> None:
    """Draw from small made-up cases in every way that a plan may ask for, which compiles them."""
    # compiling makes many objects that stay: looking for garbage among them takes long
    paused = gc.isenabled()
    gc.disable()
    try:
        _draw_from_each(method)
    finally:
        if paused:
            gc.enable()


def _draw_from_each(method: Method) -> None:
    tree = Tree.from_parents([-1, 0, 0, 1, 1, 1, 1, 1, 2, 2, 2, 2])
    x = tree.roll_up(np.array([3, 0, 0, 0, 0, 2, 5, 1, 4]))
    source = seeded(0)
    pinned = consistent(tree) & exactly([0])
    whole = Additive(DiscreteLaplace(2.0), tree)
    if method == "imaging":
        for norm in ("l2", "l1"):
            image(whole, pinned & nonnegative(), norm, integer=True).sample(x, rng=source)
        topdown_image(whole, pinned & nonnegative()).sample(x, rng=source)
        return
    leaves_apart = Additive(DiscreteLaplace(np.where(tree.is_leaf, np.inf, 2.0)), tree)
    for mechanism in (whole, leaves_apart):
        condition(mechanism, pinned & nonnegative()).sample(x, 3, source)
    condition(Additive(DiscreteGaussian(2.0), tree), pinned).sample(x, 3, source)
    flat = Tree.from_parents([-1, *[0] * 3000])
    total = consistent(flat) & exactly([0])
    wide = Additive(DiscreteLaplace(100.0), flat)
    condition(wide, total).sample(flat.roll_up(np.ones(3000)), rng=source)
