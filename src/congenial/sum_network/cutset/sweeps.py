"""Sweeps over sums with many cycles: blocks drawn given a cut set, and moves along a lattice.

A block keeps a cut set at its current values and draws all other variables at once, exactly, from
the remaining forest.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from congenial.errors import UnsupportedError
from congenial.kernels.network.records import BranchTables
from congenial.randomness import Randomness
from congenial.sum_network.cutset.boxes import Box, place_box, summable
from congenial.sum_network.cutset.branches import Branches, compile_branches, draw_forest
from congenial.sum_network.cutset.lattice import Lattice, Walk
from congenial.sum_network.cutset.systems import SumSystem, cycle_closers
from congenial.sum_network.weights import Unary
from congenial.types import IntArray

# Limits: entries of the tables of all blocks, multiplications in a sweep, and number of blocks.
_MOST_ENTRIES = 1 << 26
_MOST_WORK = 1 << 24
_MOST_BLOCKS = 16
# Negative log of the probability beyond the windows of a block.
_BUDGET = 60.0

Blocks = tuple[tuple[int, ...], ...]


def choose_blocks(system: SumSystem) -> Blocks:
    """Return cut sets that together leave every variable free to move at least once.

    Each set avoids the variables that were cut most often so far. A hash of the variable and the
    block breaks ties, so that blocks differ without any randomness.
    """
    free = system.free
    times = dict.fromkeys(free, 0)
    blocks: list[tuple[int, ...]] = []
    moved: set[int] = set()
    for b in range(_MOST_BLOCKS):
        order = sorted(free, key=lambda v: (-times[v], (v + 1) * 2654435761 * (2 * b + 1) % 2**32))
        cut = tuple(cycle_closers(system.rows, order))
        if cut not in blocks:
            blocks.append(cut)
        moved.update(set(free) - set(cut))
        for v in cut:
            times[v] += 1
        if len(moved) == len(free) and len(blocks) > 1:
            break
    return tuple(blocks)


def place_windows(system: SumSystem, unary: Unary) -> Box:
    """Return the windows of all variables, for weights no wider than these."""
    return place_box(system.rows, unary, system.every_fixed, _BUDGET)


def sweep_cost(system: SumSystem, blocks: Blocks, unary: Unary) -> tuple[int, int]:
    """Return the table entries of all blocks, and the multiplications of a sweep."""
    box, free = place_windows(system, unary), system.free
    made = [compile_branches(system.rows, box, free, cut, fill=False) for cut in blocks]
    return sum(int(b.width.sum()) for b in made), sum(b.work for b in made)


def affordable(system: SumSystem, blocks: Blocks, unary: Unary) -> bool:
    """Whether the blocks are worth their tables."""
    if not summable(unary, system.every_fixed):
        return False
    entries, work = sweep_cost(system, blocks, unary)
    return entries <= _MOST_ENTRIES and work <= _MOST_WORK


@dataclass(frozen=True, eq=False)
class Sweeps:
    """The data of one sweep: compiled blocks, and moves along a lattice."""

    blocks: list[tuple[Branches, BranchTables]]
    walk: Walk | None
    unary: Unary

    def sweep(self, state: IntArray, source: Randomness) -> IntArray:
        """Draw every block once and move once along every vector, for all rows of `state`."""
        chains, size = state.shape
        for branches, program in self.blocks:
            held = np.ascontiguousarray(state[:, list(branches.cut)])
            words = source.bits(chains * branches.choices).reshape(chains, branches.choices)
            drawn = draw_forest(branches, size, held, words, program)
            # if no draw is possible within the windows, the chain stays
            state = np.where(drawn.whole[:, None], drawn.values, state)
        if self.walk is not None:
            self.walk.sweep(self.unary, state, source)
        return state


def compile_sweeps(
    system: SumSystem,
    blocks: Blocks,
    lattice: Lattice | None,
    box: Box | None,
    unary: Unary,
    chains: int,
) -> Sweeps:
    """Compile the blocks on the windows of `box`, for `chains` chains.

    Raises UnsupportedError if the blocks' tables are too large.
    """
    made: list[tuple[Branches, BranchTables]] = []
    entries = 0
    for cut in blocks:
        if box is None:
            raise AssertionError("blocks have windows")
        branches = compile_branches(system.rows, box, system.free, cut, weights=unary)
        entries += branches.state.table.size
        if entries > _MOST_ENTRIES:
            raise UnsupportedError(
                f"the blocked Gibbs sampler needs {entries * 8 / 2**30:.1f} GiB of tables or more, "
                f"and the limit is {_MOST_ENTRIES * 8 / 2**30:.1f} GiB; use smaller noise scales "
                "or fewer queries."
            )
        made.append((branches, branches.program))
    walk = None if lattice is None else Walk.of(lattice, chains, system.size)
    return Sweeps(made, walk, unary)
