"""The neighbours of datasets that an invariant leaves."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Literal

State = Literal["intact", "disrupted", "destroyed"]


@dataclass(frozen=True)
class Neighbourhood:
    """Pairs of datasets that an invariant leaves.

    Attributes
    ----------
    state : {"intact", "disrupted", "destroyed"}
        Whether pairs at distance 1 remain, only farther ones, or none at all.
    distance : int or None
        The smallest distance that remains.
    pairs : tuple of pairs of datasets
        The pairs at that distance.
    isolated : tuple of hashable
        Datasets that have lost every neighbour at distance 1.
    """

    state: State
    distance: int | None
    pairs: tuple[tuple[Any, Any], ...]
    isolated: tuple[Any, ...]


def neighbourhood(datasets: Iterable[Any], distance: Callable[[Any, Any], int]) -> Neighbourhood:
    """Find the neighbouring pairs among the datasets that conform to an invariant.

    Parameters
    ----------
    datasets : iterable of hashable
        Those that conform.
    distance : callable
        Number of records in which two datasets differ.

    Returns
    -------
    Neighbourhood

    References
    ----------
    Gong and Meng (2020), section 5.1. The text there calls a structure disrupted where some
    dataset loses its neighbours, its formula where all do; `state` follows the formula, and
    `isolated` shows the former.
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
        Datasets, one entry a record.

    Returns
    -------
    int

    Raises
    ------
    ValueError
        If the sizes differ.
    """
    return sum(a != b for a, b in zip(first, second, strict=True))
