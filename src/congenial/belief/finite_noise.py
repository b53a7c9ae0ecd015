"""Noise laws on finitely many integers, with exact fractions, and the mechanisms that add them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from fractions import Fraction
from itertools import product
from typing import Any

from congenial.belief.finite_mechanism import FiniteMechanism
from congenial.belief.worlds import Belief, Probability
from congenial.errors import ArgumentError


def double_geometric(ratio: Probability, values: Iterable[int], *, centre: int = 0) -> Belief:
    """Double geometric law conditioned on finitely many integers.

    Parameters
    ----------
    ratio : number
        The paper's a, ``exp(-1 / scale)``, between 0 and 1; a fraction keeps the law exact.
    values : iterable of int
    centre : int
        The most likely value.

    Returns
    -------
    Belief
        Proportional to ``ratio ** |value - centre|``.

    Raises
    ------
    ArgumentError
        If the ratio is out of range or there are no values.

    References
    ----------
    Gong and Meng (2020), Definition 1.2 and equation 1.3.
    """
    _check(ratio)
    return Belief.from_weights({value: ratio ** abs(value - centre) for value in values})


def cyclic_geometric(ratio: Probability, size: int) -> Belief:
    """Double geometric law on the integers modulo `size`, whose translates all have full support.

    Parameters
    ----------
    ratio : number
        Between 0 and 1.
    size : int
        Number of integers; the distance of two is the shorter way round.

    Returns
    -------
    Belief

    Raises
    ------
    ArgumentError
        If an argument is out of range.
    """
    _check(ratio)
    return Belief.from_weights({u: ratio ** min(u, size - u) for u in range(size)})


def cyclic_mechanism(
    noise: Belief, queries: Mapping[Any, tuple[int, ...]], *, size: int
) -> FiniteMechanism:
    """Add independent noise to every coordinate of a query, modulo `size`.

    Parameters
    ----------
    noise : Belief
        On ``range(size)``.
    queries : mapping of hashable to tuple of int
        From dataset to the true answers.
    size : int

    Returns
    -------
    FiniteMechanism
        Its outputs are tuples of integers.

    Notes
    -----
    An additive mechanism on the integers has infinitely many outputs. Modulo `size` it has finitely
    many, and its noise still has one law, translated by the true answer.
    """
    laws = {}
    for dataset, answers in queries.items():
        law: dict[tuple[int, ...], Probability] = {}
        for shifts in product(range(size), repeat=len(answers)):
            out = tuple((a + u) % size for a, u in zip(answers, shifts, strict=True))
            law[out] = math.prod((noise[shift] for shift in shifts), start=Fraction(1))
        laws[dataset] = Belief(law)
    return FiniteMechanism(laws)


def _check(ratio: Probability) -> None:
    if not 0 < ratio < 1:
        raise ArgumentError(f"ratio is {ratio!r}; give a number between 0 and 1, exclusive.")
