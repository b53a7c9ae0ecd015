"""Blocked Gibbs sampling of sums with many cycles, for studies: not certified.

A block holds a cut set at its present values and draws all the rest at once, exactly, from the
forest that is left. Blocks with different cut sets alternate, so that every variable moves. The
chain has the conditional law as its limit if the blocks' moves together reach every solution: they
span the solutions of the sums (checked in dimension), and no bounds stand between (not checked).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NoReturn

import numpy as np
import numpy.typing as npt

from congenial.accounting.guarantee import Neighbours
from congenial.conditioning.assignments import draw_forest, free_variables
from congenial.conditioning.boxes import Box, place_box
from congenial.conditioning.branches import Branches, Program, compile_branches
from congenial.conditioning.chains import (
    CHAINS,
    Draw,
    Info,
    check_lengths,
    in_turn,
    measured,
)
from congenial.conditioning.conditioned import Conditioned
from congenial.conditioning.cost import RATE, data_free_weights, told_bytes, told_time
from congenial.conditioning.forest import of_rows
from congenial.conditioning.systems import SumSystem, cycle_closers
from congenial.conditioning.weights import Unary
from congenial.errors import PrivacyError, UnsupportedError
from congenial.invariants import Requirements
from congenial.mechanisms.additive import Additive, checked_size
from congenial.randomness import Randomness, resolve

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

WARMUP = 200
# Entries of all tables, and of variables whose spans are compared, beyond which a chain is refused.
_MOST_ENTRIES = 1 << 26
_MOST_COMPARED = 400
_MOST_BLOCKS = 16
# Chains start where noise this many times as wide has led them.
_HOT = (1.0, 2.0, 4.0)
_HOT_SWEEPS = 8
_BUDGET = 60.0
_UNBOUNDED = "no bound on the convergence of blocked Gibbs sampling is known"
_REMEDY = (
    "mandate fewer sums or use smaller noise scales so that the exact sampler applies, or image "
    "with congenial.image"
)


def choose_blocks(system: SumSystem) -> tuple[tuple[int, ...], ...]:
    """Return cut sets that together leave every variable free to move at least once.

    Each set spares the variables that were cut most often so far; the order among equals comes
    from a fixed scramble, so that blocks differ without any randomness.
    """
    free = free_variables(system)
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
        if len(moved) == len(free) and len(blocks) > 1 and spanning(system, blocks) is not False:
            break
    return tuple(blocks)


def spanning(system: SumSystem, blocks: list[tuple[int, ...]]) -> bool | None:
    """Whether the blocks' moves have the dimension of all solutions; None where too large."""
    free = free_variables(system)
    if len(free) > _MOST_COMPARED:
        return None
    column = {v: j for j, v in enumerate(free)}
    matrix = np.zeros((len(system.rows), len(free)))
    for k, row in enumerate(system.rows):
        for v, a in row.items():
            matrix[k, column[v]] = a
    moves = []
    for cut in blocks:
        rest = np.array([j for v, j in column.items() if v not in cut], dtype=np.int64)
        basis = np.zeros((len(free), 0))
        if rest.size:
            kernel = _kernel(matrix[:, rest])
            basis = np.zeros((len(free), kernel.shape[1]))
            basis[rest] = kernel
        moves.append(basis)
    dimension = len(free) - int(np.linalg.matrix_rank(matrix))
    return bool(np.linalg.matrix_rank(np.hstack(moves)) == dimension)


def _kernel(matrix: FloatArray) -> FloatArray:
    _, sizes, vectors = np.linalg.svd(matrix)
    rank = int((sizes > 1e-9 * max(matrix.shape)).sum())
    return np.asarray(vectors[rank:].T)


@dataclass(frozen=True, eq=False)
class GibbsConditioned(Conditioned):
    """A mechanism conditioned on sums with many cycles, sampled by chains for studies.

    Made by `congenial.condition` where no exact sampler is affordable, or with sampler="gibbs".
    No guarantee is given, and nothing is drawn without a seed.

    Attributes
    ----------
    forest : SumForest
        Without sums; the blocks have their own.
    system : SumSystem
    blocks : tuple of tuple of int
        The cut sets.
    """

    system: SumSystem | None = None
    blocks: tuple[tuple[int, ...], ...] = ()

    @property
    def sums(self) -> SumSystem:
        """The sums as rows."""
        if self.system is None:
            raise AssertionError("made without a system")
        return self.system

    def run(
        self,
        x: npt.ArrayLike,
        draws: int = 1000,
        chains: int = CHAINS,
        rng: Randomness | None = None,
    ) -> tuple[Draw, Info]:
        """Run chains, and say how they went.

        All chains start at the data, which alone are known to be feasible, and are led away by a
        few sweeps of wider noise, chain by chain wider.

        Parameters
        ----------
        x : array_like of int, shape (n,)
        draws : int
            Draws of each chain, one a sweep, dependent.
        chains : int
        rng : Randomness
            `congenial.seeded(n)`.

        Returns
        -------
        draw : Draw
        info : Info

        Raises
        ------
        PrivacyError
            Without a seeded source, that is, for anything but a study.
        UnsupportedError
            If the blocks' tables are too large.
        """
        source = resolve(rng)
        if source.private:
            raise PrivacyError(
                "blocked Gibbs draws are not certified and so cannot be released: give "
                f"rng=congenial.seeded(n) for a study, or {_REMEDY}."
            )
        counts = self._checked(x)
        check_lengths({"draws": draws, "chains": chains})
        values = self._chains(counts, int(draws), int(chains), source)
        info = Info(
            WARMUP,
            1,
            **measured(values),
            unbounded=_UNBOUNDED,
            blocks=len(self.blocks),
            spanning=self._spanning,
        )
        return Draw(values), info

    def sample(
        self, x: npt.ArrayLike, size: int | None = None, rng: Randomness | None = None
    ) -> IntArray:
        """Draw from the chains in turn: dependent draws, for studies; see `run`."""
        rows = checked_size(size)
        draw, _ = self.run(x, max(-(-rows // CHAINS), 1), CHAINS, rng)
        out = in_turn(draw.values, rows).astype(np.int64, copy=False)
        return out[0] if size is None else out

    def guarantee(self, neighbours: Neighbours) -> NoReturn:
        """Refuse: a chain is not certified.

        Raises
        ------
        PrivacyError
        """
        raise PrivacyError(
            f"the blocked Gibbs sampler is not certified, so no guarantee ({neighbours!r} or "
            f"other) can be given; {_REMEDY}."
        )

    def log_normalizer(self, x: npt.ArrayLike) -> NoReturn:
        """Refuse: not known for sums with many cycles.

        Raises
        ------
        UnsupportedError
        """
        self._refuse("log_normalizer", x)

    def log_prob(self, z: npt.ArrayLike, x: npt.ArrayLike) -> NoReturn:
        """Refuse: its normaliser is not known.

        Raises
        ------
        UnsupportedError
        """
        self._refuse("log_prob", z, x)

    def marginal(self, node: int | str, x: npt.ArrayLike) -> NoReturn:
        """Raise `UnsupportedError`: only estimates from `run` are to be had."""
        self._refuse("marginal", node, x)

    def joint(self, nodes: object, x: npt.ArrayLike) -> NoReturn:
        """Raise `UnsupportedError`: only estimates from `run` are to be had."""
        self._refuse("joint", nodes, x)

    def interval(self, node: int | str, alpha: float = 0.1) -> NoReturn:
        """Raise `UnsupportedError`: only estimates from `run` are to be had."""
        self._refuse("interval", node, alpha)

    @property
    def error_bound(self) -> float:
        """Nothing is proved: 1, the largest total variation there is."""
        return 1.0

    def explain(self) -> str:
        """Say which sampler draws, why, and that it is not certified."""
        free = len(free_variables(self.sums))
        held = max((len(cut) for cut in self.blocks), default=0)
        reach = {
            True: "The blocks' moves have the dimension of all solutions",
            False: "The blocks' moves do not reach all solutions",
            None: "Whether the blocks' moves reach all solutions was not checked",
        }[self._spanning]
        entries, work = self._cost
        return (
            f"blocked Gibbs sampler, for studies, where the cycles of {len(self.sums.rows)} sums "
            f"over {free} entries make an exact draw too costly, or where asked for. Each sweep "
            f"has {len(self.blocks)} blocks; a block holds up to {held} entries and draws the "
            f"others exactly. By the noise alone, tables take {told_bytes(8.0 * entries)} and a "
            f"sweep of one chain at most {work:.1e} multiplications ({told_time(work / RATE)}); "
            f"{WARMUP} sweeps are left out. {reach}; bounds may still keep a chain from some of "
            "them. Not certified: convergence is diagnosed (R-hat and effective sample size, see "
            f"run()), not proved, so no release can be made and no guarantee given; {_REMEDY}."
        )

    @cached_property
    def _cost(self) -> tuple[int, int]:
        """Table entries, and multiplications a sweep, without the bounds that depend on data."""
        system = self.sums
        weights = data_free_weights(
            self.mechanism, self.requirements, system.fixed, system.size
        ).each
        blocks = self._compiled(self._box(weights), weights)
        made = [branches for branches, _ in blocks]
        return sum(b.table.size for b in made), sum(b.work for b in made)

    def _box(self, weights: Unary) -> Box:
        system = self.sums
        fixed = system.every_fixed
        hottest = replace(weights, scale=weights.scale * _HOT[-1])
        return place_box(system.rows, hottest, fixed, _BUDGET)

    @cached_property
    def _spanning(self) -> bool | None:
        return spanning(self.sums, list(self.blocks))

    def _refuse(self, question: str, *_: object) -> NoReturn:
        raise UnsupportedError(
            f"{question}() is not known for sums with so many cycles; estimate it from run(), or "
            f"{_REMEDY}."
        )

    def _chains(self, counts: IntArray, draws: int, chains: int, source: Randomness) -> IntArray:
        system = self.sums
        unary = self._weights(counts)
        box = self._box(unary)
        state = np.zeros((chains, system.size), dtype=np.int64)
        for i, heat in enumerate(_HOT[1:], start=1):
            group = np.arange(chains) % len(_HOT) >= i
            blocks = self._compiled(box, replace(unary, scale=unary.scale * heat))
            for _ in range(_HOT_SWEEPS):
                state[group] = _sweep(blocks, state[group], source)
        blocks = self._compiled(box, unary)
        out = np.empty((chains, draws, system.n), dtype=np.int64)
        for t in range(-WARMUP, draws):
            state = _sweep(blocks, state, source)
            if t >= 0:
                out[:, t] = counts + state[:, : system.n]
        return out

    def _compiled(self, box: Box, weights: Unary) -> list[tuple[Branches, Program]]:
        out = []
        entries = 0
        for cut in self.blocks:
            free = free_variables(self.sums)
            made = compile_branches(self.sums.rows, box, free, cut, weights=weights)
            entries += made.table.size
            if entries > _MOST_ENTRIES:
                raise UnsupportedError(
                    f"the blocked Gibbs sampler would need {entries * 8 / 2**30:.1f} GiB of tables "
                    "or more; use smaller noise scales or fewer queries."
                )
            out.append((made, made.program))
        return out


def _sweep(blocks: list[tuple[Branches, Program]], state: IntArray, source: Randomness) -> IntArray:
    """Draw every block once, for all chains (rows of `state`)."""
    for branches, program in blocks:
        held = np.ascontiguousarray(state[:, list(branches.cut)])
        words = source.bits(state.shape[0] * branches.choices)
        words = words.reshape(state.shape[0], branches.choices)
        fresh, whole = draw_forest(branches, state.shape[1], held, words, program)
        # where windows leave nothing to draw, the chain stays
        state = np.where(whole[:, None], fresh, state)
    return state


def gibbs_conditioned(
    mechanism: Additive, need: Requirements, system: SumSystem
) -> GibbsConditioned:
    """Condition on a system for studies, by chains.

    Raises
    ------
    UnsupportedError
        If the blocks do not reach every solution.
    """
    blocks = choose_blocks(system)
    if spanning(system, list(blocks)) is False:
        raise UnsupportedError(
            "the sums have so many cycles that blocks of entries do not reach every solution; "
            "count fewer margins that cross, try publishing others of them exactly, or image with "
            "congenial.image."
        )
    forest = of_rows([], system.size)
    return GibbsConditioned(mechanism, need, forest, system.fixed, system=system, blocks=blocks)
