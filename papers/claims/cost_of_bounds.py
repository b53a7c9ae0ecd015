"""Privacy loss of double geometric noise under a pinned total and bounds, by enumeration."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from congenial.belief.worlds import Probability
from congenial.errors import ArgumentError

Table = tuple[int, ...]


@dataclass(frozen=True)
class CostOfBounds:
    """Loss of the worst neighbouring pair of tables with one pinned total and no negative cell.

    Attributes
    ----------
    ratio : Fraction or float
        Largest ratio of an output's probabilities, ``exp`` of the loss; exact for exact noise.
    gamma : float
        Loss over epsilon, less 1.
    pair : tuple of two tables
        Where it is reached.
    """

    ratio: Probability
    gamma: float
    pair: tuple[Table, Table]


def tables(cells: int, total: int) -> Iterator[Table]:
    """Yield every table of nonnegative counts with a given total."""
    if cells == 1:
        yield (total,)
        return
    for first in range(total, -1, -1):
        for rest in tables(cells - 1, total - first):
            yield (first, *rest)


def moves(table: Table) -> Iterator[Table]:
    """Yield the tables reached by substituting one record: a unit moves to another cell."""
    for i, count in enumerate(table):
        for j in range(len(table)):
            if count and i != j:
                yield tuple(c - (k == i) + (k == j) for k, c in enumerate(table))


def pinned_total(ratio: Probability, *, cells: int, total: int) -> CostOfBounds:
    """Cost of conditioning on a total and on no negative cell, over all neighbouring tables.

    Notes
    -----
    Substituting a record changes two cells by one, so that the unconstrained loss is epsilon =
    -2 log(ratio). Conditioned, the ratio of two outputs is at most exp(epsilon) times that of the
    normalizers, and the table itself as output reaches it. So the worst pair is the one whose
    normalizers differ most. These depend on the table only by the numbers of tables at each
    distance, which are counted once.

    References
    ----------
    Gong and Meng (2020), Theorem 2.1 and equation 2.5.
    """
    if cells < 2 or total < 1 or not 0 < ratio < 1:
        raise ArgumentError(
            f"cells is {cells}, total {total} and ratio {ratio}; give at least 2 cells, a total of "
            "at least 1, and a ratio between 0 and 1."
        )
    every = list(tables(cells, total))
    powers = [ratio**d for d in range(2 * total + 1)]

    def normalizer(table: Table) -> Probability:
        counted = Counter(sum(abs(a - b) for a, b in zip(z, table, strict=True)) for z in every)
        whole: Probability = powers[0]
        for distance, count in counted.items():
            if distance:
                whole = whole + count * powers[distance]
        return whole

    # the order of the cells does not matter
    known = {table: normalizer(table) for table in every if table == tuple(sorted(table))}
    grows = {
        (table, other): known[tuple(sorted(other))] / mine
        for table, mine in known.items()
        for other in moves(table)
    }
    pair = max(grows, key=grows.__getitem__)
    gamma = math.log(grows[pair]) / (-2 * math.log(ratio))
    return CostOfBounds(grows[pair] / (ratio * ratio), gamma, pair)
