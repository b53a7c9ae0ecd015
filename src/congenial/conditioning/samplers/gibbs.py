"""Blocked Gibbs sampling of sums with many cycles, for studies: not certified.

A block keeps a cut set at its current values and draws all other variables at once, exactly, from
the forest that remains. Blocks with different cut sets alternate, so that every variable moves.
Blocks alone may not reach every solution. Between them the chain moves along vectors of a lattice
basis and random sums of these (`lattice`), which reach every solution, so the chain converges to
the conditional law.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from congenial.conditioning.chains import ChainAlone, Draw, Info
from congenial.conditioning.laws.conditional import ConditionalMechanism
from congenial.conditioning.laws.forest_sampler import Conditioned, data_free_weights
from congenial.errors import UnsupportedError
from congenial.invariants.resolved import ResolvedInvariant, checked_draws, inequalities_in_units
from congenial.kernels.numerics import laws
from congenial.noise.additive import Additive
from congenial.noise.law import check_kernels
from congenial.randomness import Randomness
from congenial.sum_network import SumForest, Unary, bytes_text, time_text
from congenial.sum_network.cutset import (
    Blocks,
    Lattice,
    SumSystem,
    Sweeps,
    affordable,
    check_proper_rows,
    choose_blocks,
    compile_sweeps,
    lattice_of,
    place_windows,
    sums_of,
    sweep_cost,
)
from congenial.types import BoolArray, IntArray

WARMUP = 200
# Factors of the noise's width in sweeps before the warm-up, and number of these sweeps.
_HOT = (1.0, 2.0, 4.0)
_HOT_SWEEPS = 8
_UNBOUNDED = "no bound on the convergence of blocked Gibbs sampling is known"


@dataclass(frozen=True, eq=False)
class GibbsConditioned(ChainAlone, Conditioned):
    """A mechanism conditioned on sums with many cycles, sampled by chains for studies.

    Made by `congenial.condition` if no exact sampler is affordable, or with sampler="gibbs". It
    draws only from a seed. The forest has no sums; each block has a forest of its own.
    """

    system: SumSystem = field(kw_only=True)
    blocks: Blocks = ()  # The cut sets.
    # A basis of the solutions; None if it is not needed, or the sums are too large to find it.
    lattice: Lattice | None = None
    certified: ClassVar[bool] = False
    called: ClassVar[str] = "blocked Gibbs sampler"
    remedy: ClassVar[str] = (
        "impose fewer sums or use smaller noise scales so that the exact sampler applies, or "
        "image with congenial.image"
    )
    unknown: ClassVar[str] = "is not known for sums with so many cycles"

    @property
    def sums(self) -> SumSystem:
        """The sums as rows."""
        return self.system

    def _run(
        self, x: npt.ArrayLike, draws: int, chains: int, source: Randomness
    ) -> tuple[Draw, Info]:
        counts = self._checked(x)
        noise = self._chains(counts, draws, chains, source)
        info = Info(WARMUP, 1, noise, None, None, _UNBOUNDED, len(self.blocks), self.irreducible)
        return Draw(checked_draws(self.resolved, counts + noise, counts)), info

    @property
    def irreducible(self) -> bool | None:
        """Whether the moves lead from every solution to every other; None if that is unknown."""
        return True if self.lattice is not None or () in self.blocks else None

    def explain(self) -> str:
        """Explain which sampler draws, why, and that it is not certified."""
        return (
            f"blocked Gibbs sampler, for studies, where the cycles of {len(self.sums.rows)} sums "
            f"over {len(self.sums.free)} entries make an exact draw too costly, or on request. "
            f"{self._blocks_text} {self._moves_text} {WARMUP} sweeps are left out. "
            f"{self._limits_text}"
        )

    @property
    def _blocks_text(self) -> str:
        if not self.blocks:
            return "Blocks of entries drawn together would cost too much, so there are none."
        most = max(len(cut) for cut in self.blocks)
        entries, work = self.cost
        return (
            f"A sweep has {len(self.blocks)} blocks; a block keeps up to {most} entries and draws "
            f"the others exactly. Estimated from the noise alone, the tables of all blocks take "
            f"{bytes_text(8.0 * entries)} and a sweep of one chain takes at most {work:.1e} "
            f"multiplications ({time_text(work)})."
        )

    @property
    def _moves_text(self) -> str:
        if self.lattice is not None:
            return (
                f"A sweep moves along some {self.lattice.moves} random sums of vectors from a "
                f"lattice basis of the solutions, of dimension {self.lattice.dimension}; every "
                "solution is reached from every other, within bounds as well."
            )
        if self.irreducible:
            return "One block draws all of them."
        return "Whether the blocks reach all solutions is not known: the sums are too large to say."

    @cached_property
    def cost(self) -> tuple[int, int]:
        """Table entries, and multiplications per sweep, ignoring bounds that depend on data."""
        sums = self.sums
        shared = data_free_weights(self.mechanism, self.resolved, sums.fixed, sums.size)
        return sweep_cost(sums, self.blocks, _hottest(shared.each))

    def _chains(self, counts: IntArray, draws: int, chains: int, source: Randomness) -> IntArray:
        """Return the noise of chains, shape (chains, draws, n).

        All chains start at the data, the only point known to be feasible. A few sweeps with wider
        noise, wider for each further chain, move them apart.
        """
        system, unary = self.sums, self._weights(counts)
        # windows are computed once, for the widest noise
        box = place_windows(system, _hottest(unary)) if self.blocks else None

        def sweeps(heat: float, some: int) -> Sweeps:
            wide = replace(unary, scale=unary.scale * heat)
            return compile_sweeps(system, self.blocks, self.lattice, box, wide, some)

        state = np.zeros((chains, system.size), dtype=np.int64)
        for i, heat in enumerate(_HOT[1:], start=1):
            group = np.arange(chains) % len(_HOT) >= i
            hot = sweeps(heat, int(group.sum()))
            for _ in range(_HOT_SWEEPS):
                state[group] = hot.sweep(state[group], source)
        usual = sweeps(1.0, chains)
        out = np.empty((chains, draws, system.n), dtype=np.int64)
        for t in range(-WARMUP, draws):
            state = usual.sweep(state, source)
            if t >= 0:
                out[:, t] = state[:, : system.n]
        return out


def _hottest(unary: Unary) -> Unary:
    """Return the weights for the widest starting noise."""
    return replace(unary, scale=unary.scale * _HOT[-1])


def _blocked(mechanism: Additive, resolved: ResolvedInvariant) -> GibbsConditioned:
    """Condition on sums by chains, for studies."""
    system = sums_of(resolved)
    weights = data_free_weights(mechanism, resolved, system.fixed, system.size).each
    check_proper_rows(system, weights)
    blocks = choose_blocks(system)
    basis = None if () in blocks else lattice_of(system, weights, _counted(resolved, system))
    forest = SumForest.without_sums(system.size)
    made = GibbsConditioned(
        mechanism, resolved, forest, system.fixed, system=system, blocks=blocks, lattice=basis
    )
    keep = basis is None or affordable(system, blocks, _hottest(weights))
    return made if keep else replace(made, blocks=())


def _counted(resolved: ResolvedInvariant, system: SumSystem) -> BoolArray:
    """Whether a variable has bounds, shape (size,); leaves or cells alone if any of them has."""
    bounded = np.isfinite(resolved.lo) | np.isfinite(resolved.hi)
    finest = np.zeros(resolved.n, dtype=np.bool_)
    if resolved.workload is not None:
        finest[resolved.workload.cells] = True
    elif resolved.tree is not None:
        finest[resolved.tree.leaves] = True
    kept = bounded & finest if (bounded & finest).any() else bounded
    is_slack = np.arange(system.size - resolved.n) < system.slacks
    return np.append(kept, is_slack)


@dataclass(frozen=True)
class GibbsSampler:
    """Draws by Gibbs sampling, for studies: blocks of integers, or Laplace noise's variances."""

    name: ClassVar[str] = "gibbs"
    certified: ClassVar[bool] = False

    def condition(self, mechanism: Additive, resolved: ResolvedInvariant) -> ConditionalMechanism:
        """Return the mechanism drawn by chains.

        Raises UnsupportedError if the law does not exist, or has a closed form.
        """
        check_kernels(mechanism.noise)
        if mechanism.noise.discrete:
            return _blocked(mechanism, inequalities_in_units(resolved))
        if mechanism.noise.kind == laws.GAUSSIAN and not resolved.has_inequalities:
            raise UnsupportedError(
                f"sampler is 'gibbs', and continuous {mechanism.noise.name} noise has a closed "
                "form; use 'auto'."
            )
        from congenial.conditioning.samplers import laplace_chain

        return laplace_chain.SAMPLER.condition(mechanism, resolved)


SAMPLER = GibbsSampler()
