"""Exact noise by OpenDP: discrete Laplace and discrete Gaussian variables by rejection."""

from __future__ import annotations

from collections.abc import Callable

import opendp.prelude as dp


def noise(law: str, entries: int, scale: float) -> Callable[[], list[int]]:
    """Return a function that draws noise for as many entries.

    Parameters
    ----------
    law : {"discrete-laplace", "discrete-gaussian"}
    entries : int
    scale : float
        Scale, or sigma.
    """
    dp.enable_features("contrib")
    counts = dp.vector_domain(dp.atom_domain(T=int))
    if law == "discrete-laplace":
        measure = dp.m.make_laplace(counts, dp.l1_distance(T=int), scale=scale)
    else:
        measure = dp.m.make_gaussian(counts, dp.l2_distance(T=float), scale=scale)
    zeros = [0] * entries

    def draw() -> list[int]:
        return list(measure(zeros))

    return draw
