"""Whether sets of cells are nested or disjoint, and the sums that hold among them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from congenial.types import IntArray


@dataclass(frozen=True, eq=False)
class Sums:
    """Sums with a total each: the total equals the sum of its parts."""

    totals: IntArray  # shape (m,): The entry that is the total.
    starts: IntArray  # shape (m + 1,)
    parts: IntArray  # Entries ``parts[starts[k]:starts[k + 1]]`` add up to ``totals[k]``.

    @property
    def sum_of_part(self) -> IntArray:
        """The sum that each of `parts` is a part of."""
        return np.repeat(np.arange(self.totals.size), np.diff(self.starts))

    def gaps(self, values: npt.NDArray[np.generic]) -> npt.NDArray[np.generic]:
        """Total less the sum of its parts, shape (..., m), for values of shape (..., n)."""
        if not self.totals.size:
            return values[..., self.totals]
        below = np.add.reduceat(values[..., self.parts], self.starts[:-1], axis=-1)
        return np.asarray(values[..., self.totals] - below)


def nested_parents(chain: IntArray, n: int) -> IntArray | None:
    """Find the smallest set that contains each set, if all are nested or disjoint.

    Returns ndarray of int64, shape (n,), or None: parents, -1 for a set in no other. Of equal sets,
    the one in an earlier row of `chain` is the parent. None if two sets overlap.

    The sets that contain a cell are sorted by size. If all cells of every set agree on its
    predecessor, every set lies in its predecessor, so two sets with a common cell are nested.
    Conversely, if all sets are nested or disjoint, the predecessor is the smallest set that
    contains a set, for all cells.
    """
    held = chain >= 0
    sizes = np.bincount(chain[held], minlength=n)
    # missing sets are -1 and come first, so that a cell's largest set follows them
    rank = np.where(held, -sizes[chain], np.iinfo(np.int64).min)
    order = np.argsort(rank, axis=0, kind="stable")
    ordered = np.take_along_axis(chain, order, axis=0)
    before = np.vstack((np.full((1, chain.shape[1]), -1), ordered[:-1]))
    real = ordered >= 0
    sets, above = ordered[real], before[real]
    parents = np.full(n, -1, dtype=np.int64)
    parents[sets] = above
    return parents if np.array_equal(parents[sets], above) else None


def sums_by_refinement(chain: IntArray, blocks: list[slice]) -> Sums:
    """State every set but the cells themselves as a sum of smaller sets.

    Returns for each row but the last: its sets as sums of the sets of a later row, the one with
    the fewest sets among those that refine them.
    """
    n = blocks[-1].stop
    totals, counts, parts = [], [], []
    for b, block in enumerate(blocks[:-1]):
        later = sorted(range(b + 1, len(blocks)), key=lambda f: blocks[f].stop - blocks[f].start)
        for f in later:
            above = np.full(n, -1, dtype=np.int64)
            above[chain[f]] = chain[b]
            if np.array_equal(above[chain[f]], chain[b]):
                break
        finer = np.arange(blocks[f].start, blocks[f].stop)
        order = np.argsort(above[finer], kind="stable")
        totals.append(np.arange(block.start, block.stop))
        counts.append(np.bincount(above[finer] - block.start, minlength=totals[-1].size))
        parts.append(finer[order])
    none = [np.zeros(0, dtype=np.int64)]
    starts = np.concatenate([[0], *counts]).cumsum().astype(np.int64)
    return Sums(np.concatenate(totals or none), starts, np.concatenate(parts or none))
