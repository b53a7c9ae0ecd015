"""Records for kernels: a forest, the costs of its values, and their curves."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Forest(NamedTuple):
    """Children in compressed form, the nodes with parents first, and which are roots."""

    starts: np.ndarray
    children: np.ndarray
    downward: np.ndarray
    is_root: np.ndarray


class Costs(NamedTuple):
    """Costs of each node, ``weight / 2 * (z - b0)**2`` or linear in pieces; shapes (n,).

    A piecewise linear cost has the slope -weight up to b0, `mid` between b0 and b1, and weight
    beyond b1.
    """

    b0: np.ndarray
    b1: np.ndarray
    mid: np.ndarray
    weight: np.ndarray


class Curves(NamedTuple):
    """Monotone curves of (price, value) end to end, one a node; see `curves`.

    Shapes (2, k), (n, 2) and (n, 2); `NO_CURVES` has k = n = 0.
    """

    points: np.ndarray
    at: np.ndarray
    ray: np.ndarray


NO_CURVES = Curves(np.zeros((2, 0)), np.zeros((0, 2), dtype=np.int64), np.zeros((0, 2)))
