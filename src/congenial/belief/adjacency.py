"""Neighbouring datasets among those that satisfy an invariant."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Literal

State = Literal["intact", "disrupted", "destroyed"]


@dataclass(frozen=True)
class Neighbourhood:
    """The closest pairs of datasets among those that satisfy an invariant.

    Attributes
    ----------
    state : {"intact", "disrupted", "destroyed"}
        Intact if some pair is at distance 1, disrupted if all pairs are farther apart, destroyed
        if there is no pair.
    distance : int or None
        The smallest distance of a pair; None if there is no pair.
    pairs : tuple of pairs of datasets
        The pairs at that distance.
    isolated : tuple of hashable
        Datasets without a neighbour at distance 1.
    """

    state: State
    distance: int | None
    pairs: tuple[tuple[Any, Any], ...]
    isolated: tuple[Any, ...]


def neighbourhood(datasets: Iterable[Any], distance: Callable[[Any, Any], int]) -> Neighbourhood:
    """Find the closest pairs among the datasets that satisfy an invariant.

    Parameters
    ----------
    datasets : iterable of hashable
        The datasets that satisfy the invariant.
    distance : callable
        Number of records in which two datasets differ.

    Returns
    -------
    Neighbourhood

    References
    ----------
    Gong and Meng (2020), section 5.1. Their text calls a neighbourhood disrupted if some dataset
    loses its neighbours; their formula, if all datasets do. `state` follows the formula.
    `isolated` lists the datasets that the text means.
    """
    kept = list(datasets)
    by_distance: dict[int, list[tuple[Any, Any]]] = {}
    for first, second in combinations(kept, 2):
        by_distance.setdefault(distance(first, second), []).append((first, second))
    near = {dataset for pair in by_distance.get(1, ()) for dataset in pair}
    isolated = tuple(dataset for dataset in kept if dataset not in near)
    if not by_distance:
        return Neighbourhood("destroyed", None, (), isolated)
    least = min(by_distance)
    state: State = "intact" if least == 1 else "disrupted"
    return Neighbourhood(state, least, tuple(by_distance[least]), isolated)


def hamming(first: tuple[Any, ...], second: tuple[Any, ...]) -> int:
    """Number of records in which two datasets of one size differ.

    Parameters
    ----------
    first, second : tuple
        Two datasets, with one entry for each record.

    Returns
    -------
    int

    Raises
    ------
    ValueError
        If the sizes differ.
    """
    return sum(a != b for a, b in zip(first, second, strict=True))
