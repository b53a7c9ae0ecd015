"""The tree Metropolis-Hastings chain: all leaves take a normal step, and their sums follow.

References
----------
Two Views, Algorithm 1 (M_MH); Roberts, Gelman and Gilks (1997) for the target acceptance.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from congenial.conditioning.chains import CHAINS, Chain, Draw, Info, check_steps
from congenial.conditioning.laws.delegate import Delegate, same_law
from congenial.conditioning.laws.normal import draw_noise
from congenial.conditioning.proposal import (
    ByProposals,
    checked_start,
    satisfies_inequalities,
    scale_each,
)
from congenial.domain.tree import Tree
from congenial.errors import ArgumentError, UnsupportedError
from congenial.invariants.resolved import ResolvedInvariant, checked_draws
from congenial.kernels.chains import tree_mh
from congenial.kernels.numerics.trees import read_only
from congenial.noise.additive import Additive
from congenial.noise.law import check_kernels
from congenial.randomness import Randomness
from congenial.sum_network import check_proper, of_tree, share_noise
from congenial.types import FloatArray, IntArray, Values

WARMUP = 10_000
# Target acceptance: a random walk in many dimensions moves fastest at it.
WANTED = 0.234
# Rounds of tuning the step, with decreasing corrections.
_ROUNDS = 50
# Random words fetched at once.
_BLOCK = 1 << 20
_UNBOUNDED = "no bound on the convergence of a random walk on a tree is known"

# The kernel's shape, law, limits and matrix of inequalities.
_Walk = tuple[tuple[IntArray, ...], tuple[int, FloatArray], tuple[FloatArray, ...], FloatArray]


@dataclass(frozen=True, eq=False)
class TreeMH(Chain, Delegate):
    """A tree of counts drawn by chains, for studies; made by ``condition(..., "tree-mh")``.

    Attributes
    ----------
    mechanism : Additive
    resolved : ResolvedInvariant
        A tree with inequalities, and no other equalities.
    exact : Conditioned, ConditionedGaussian or None
        The same law by the exact sampler; None if that does not cover it.
    spread : ndarray of float64, shape (leaves,), or None
        Standard deviation of each leaf's step; None tunes it during the warm-up.
    """

    spread: FloatArray | None
    name: ClassVar[str] = "tree-mh"
    called: ClassVar[str] = "tree Metropolis-Hastings sampler"
    remedy: ClassVar[str] = "use sampler='exact' where it applies, or image with congenial.image"

    def run(
        self,
        x: npt.ArrayLike,
        draws: int = 1000,
        chains: int = CHAINS,
        rng: Randomness | None = None,
        *,
        start: npt.ArrayLike | None = None,
        warmup: int = WARMUP,
        thin: int = 1,
    ) -> tuple[Draw, Info]:
        """Run chains; return their draws and diagnostics. See `Independence.run`.

        Notes
        -----
        Without `start`, each chain starts at noisy leaves of its own. The step's size is tuned
        during the warm-up only, and is the same for all chains; after a short warm-up it is near
        its first guess. A step that rounds to no move counts as accepted.
        """
        source = self._source(rng)
        check_steps(draws, chains, warmup, thin)
        counts = self._checked(x)
        states = self._starts(counts, chains, start, source)
        walk = self._walk(counts)
        spread = self._tuned(walk, states, warmup, source)
        values = np.empty((chains, draws, self.mechanism.n))
        accepted = [
            self._steps(walk, spread, state, thin, out, source)
            for state, out in zip(states, values, strict=True)
        ]
        share = np.array(accepted) / (thin * draws)
        info = Info(warmup, thin, values, share, unbounded=_UNBOUNDED)
        noise = values.astype(np.int64) if self.mechanism.noise.discrete else values
        return Draw(checked_draws(self.resolved, np.asarray(counts + noise), counts)), info

    @property
    def apart(self) -> int:
        """Steps for each draw of `sample`: as many as there are leaves."""
        return int(self._tree.leaves.size)

    def explain(self) -> str:
        """Explain how draws are made, and that they are for studies."""
        tuned = f"is tuned during the warm-up to an acceptance of {WANTED}"
        step = tuned if self.spread is None else "is as given"
        better = (
            "The exact sampler (sampler='exact') draws the same law, independently."
            if self.exact is not None
            else "No exact sampler covers this case; where one does, it is the better choice."
        )
        return (
            f"tree Metropolis-Hastings sampler, for studies: all {self._tree.leaves.size} leaves "
            "take a normal step at once, rounded for integer noise, and their sums follow. The "
            "step is accepted with the ratio of the noise's probabilities, and never outside the "
            f"inequalities; the step's size {step}. {self._limits_text} {better}"
        )

    @property
    def _tree(self) -> Tree:
        tree = self.resolved.tree
        if tree is None:
            raise AssertionError("made without a tree")
        return tree

    @cached_property
    def _first_spread(self) -> FloatArray:
        """First guess of each leaf's step: its noise over the root of the number of leaves."""
        scales = self.mechanism.scales
        usual = float(np.median(scales[np.isfinite(scales)], axis=0))
        own = scales[self._tree.leaves]
        return np.where(np.isfinite(own), own, usual) / math.sqrt(own.size)

    def _starts(
        self, counts: Values, chains: int, start: npt.ArrayLike | None, source: Randomness
    ) -> FloatArray:
        """Noise at the start of each chain, shape (chains, n)."""
        whole = self.mechanism.noise.discrete
        if start is not None:
            z = checked_start(self.resolved, counts, start, whole=whole)
            return np.tile(z - counts, (chains, 1))
        leaves = draw_noise(self.mechanism, chains, source)[:, self._tree.leaves]
        noise = self._tree.roll_up(leaves).astype(np.float64)
        for i in range(chains):
            while not satisfies_inequalities(self.resolved, counts + noise[i]):
                half = 0.5 * noise[i, self._tree.leaves]
                half = np.trunc(half) if whole else np.where(np.abs(half) < 1e-9, 0.0, half)
                noise[i] = self._tree.roll_up(half)
        return noise

    def _walk(self, counts: Values) -> _Walk:
        tree, resolved = self._tree, self.resolved
        matrix, value = resolved.inequalities
        shape = tuple(read_only(array) for array in (tree.parents, tree.bottom_up, tree.leaves))
        limits = (resolved.lo - counts, resolved.hi - counts, value - matrix @ counts)
        law = self.mechanism.noise.kind, self.mechanism.scales
        return shape, law, limits, np.ascontiguousarray(matrix)

    def _tuned(
        self, walk: _Walk, states: FloatArray, warmup: int, source: Randomness
    ) -> FloatArray:
        """Run the warm-up in place, and return the tuned spread of the steps."""
        spread = self._first_spread if self.spread is None else self.spread
        rounds = min(_ROUNDS, warmup)
        for r in range(rounds):
            length = warmup // rounds + (r < warmup % rounds)
            unused = np.empty((1, states.shape[1]))
            moved = [self._steps(walk, spread, s, length, unused, source) for s in states]
            if self.spread is None:
                share = sum(moved) / (length * len(moved))
                spread = spread * math.exp(4.0 * (share - WANTED) / (1.0 + r / 5.0))
        return spread

    def _steps(
        self,
        walk: _Walk,
        spread: FloatArray,
        state: FloatArray,
        thin: int,
        out: FloatArray,
        source: Randomness,
    ) -> int:
        """Take `thin` steps for each row of `out`, in place; return how many were accepted."""
        leaves, (shape, law, *limits) = spread.size, walk
        width = leaves + leaves % 2 + 1
        accepted, total = 0, thin * out.shape[0]
        each = max(1, _BLOCK // width)
        whole = self.mechanism.noise.discrete
        for done in range(0, total, each):
            count = min(each, total - done)
            words = source.bits(count * width).reshape(count, width)
            accepted += tree_mh.walk(
                words, shape, law, spread, *limits, whole, thin, done, state, out
            )
        return accepted


@dataclass(frozen=True, eq=False)
class TreeMHSampler(ByProposals):
    """Draws a tree of counts by a random walk of its leaves, for studies."""

    name: ClassVar[str] = "tree-mh"

    def condition(self, mechanism: Additive, resolved: ResolvedInvariant) -> TreeMH:
        """Return the mechanism drawn by chains.

        Raises UnsupportedError if there is no tree, other equalities hold, or unmeasured nodes
        leave the law improper; ArgumentError if the proposal has an index set, or its number of
        scales is wrong.
        """
        self.check_covers(resolved)
        check_kernels(mechanism.noise)
        tree, noise, n = resolved.tree, mechanism.noise, mechanism.n
        if tree is None:
            raise UnsupportedError(
                "sampler 'tree-mh' needs a tree, and the invariant has none; add "
                "congenial.consistent(tree), or use 'independence'."
            )
        if resolved.pinned.any() or resolved.equalities[1].size:
            raise UnsupportedError(
                "sampler 'tree-mh' moves all leaves freely, so it keeps no total: it covers "
                "consistent(tree) with inequalities; use 'independence' or 'exact'."
            )
        if not resolved.n_inequalities:
            ends = resolved.lo, resolved.hi
            weights = share_noise(noise.kind, noise.spread, ends, resolved.pinned, n)
            check_proper(of_tree(tree), weights)
        if self.proposal is not None and self.proposal.chosen is not None:
            raise ArgumentError(
                "sampler 'tree-mh' proposes all leaves and takes no index; give "
                "Proposal(scale=...)."
            )
        given = None if self.proposal is None else self.proposal.spread
        spread = None if given is None else scale_each(given, n)[tree.leaves]
        return TreeMH(mechanism, resolved, same_law(mechanism, resolved), spread)


SAMPLER = TreeMHSampler()
