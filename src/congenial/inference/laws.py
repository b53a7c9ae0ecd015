"""The posterior law of a tree's counts under a flat prior or one of independent leaves."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from congenial import sum_network
from congenial.conditioning.laws.draw_routes import fill_draws
from congenial.errors import UnsupportedError
from congenial.inference import evidence
from congenial.inference.measured import Problem, tightened
from congenial.inference.priors import Prior
from congenial.inference.simulated import Draw
from congenial.inference.splits.messages import Evidence, Summaries
from congenial.kernels.numerics import laws
from congenial.randomness import Randomness
from congenial.sum_network import Compiled, Tables, exact, families, share_unary
from congenial.types import FloatArray, IntArray

NO_EVIDENCE = "a flat prior gives no evidence; give a prior of the counts."


@dataclass(frozen=True, eq=False)
class NetworkLaw:
    """The law as a sum network computes it."""

    problem: Problem
    prior: Prior | None

    @property
    def error(self) -> float:
        """Bound on the total variation between a draw and the law."""
        return 0.0 if self.prior is None else self.tables[0].error

    @property
    def log_total(self) -> float:
        """Log of the sum of the weights of all counts."""
        return self.tables[0].log_sum()

    def sample(self, rows: int, rng: Randomness) -> IntArray:
        """Draw the counts `rows` times, independently."""
        if self.prior is None:
            drawn, center = self._draws
            if isinstance(drawn, families.FamilySums):
                out = families.sample(drawn, rows, rng)
            else:
                out = exact.sample(drawn, rows, rng)
        else:
            tables, center = self.tables
            out = sum_network.sample(tables, rows, rng)
        out += center
        return out

    def draws_of(self, nodes: IntArray) -> Draw | None:
        """Return a function that draws some different nodes alone; None if all must be drawn."""
        if self._by_families:
            drawn, center = self._draws
            if not isinstance(drawn, families.FamilySums):
                return None
            some = families.draws_of_some(drawn, nodes)
            if some is None:
                return None
            size = nodes.size
            return lambda rows, rng: families.sample(some, rows, rng, first=size) + center[nodes]
        tables, center = self.tables
        few = sum_network.draws_of_some(tables, nodes)
        if few is None:
            return None
        return lambda rows, rng: sum_network.sample(few, rows, rng) + center[nodes]

    def marginal(self, v: int) -> tuple[IntArray, FloatArray]:
        """Return the values of a node's count and their probabilities."""
        tables, center = self.tables
        values, probabilities = sum_network.marginal(tables, v)
        return values + center[v], probabilities

    def summary(self, alpha: float) -> Summaries:
        """Summarise the law of every node."""
        tables, center = self.tables
        found = sum_network.summaries(tables, self.problem.tree.is_leaf, alpha, center=center)
        return found.mean, found.variance, found.median, found.lower, found.upper

    def gradient(self) -> evidence.Gradient:
        """Return the derivatives of the log evidence with respect to the prior's parameters."""
        if self.prior is None:
            raise UnsupportedError(NO_EVIDENCE)
        return evidence.gradient(self.problem, self.prior, *self.tables)

    @cached_property
    def tables(self) -> tuple[Tables, IntArray]:
        """Tables for the laws of nodes, and the counts at their zero."""
        if self.prior is None:
            compiled, center = self._flat(whole=True)
        else:
            forest = sum_network.of_tree(self.problem.tree)
            weights, center = self.problem.weights(self.prior)
            compiled = sum_network.compile(forest, weights)
        return sum_network.fill(compiled), center

    @cached_property
    def _draws(self) -> tuple[exact.Envelopes | families.FamilySums, IntArray]:
        """Tables for draws under a flat prior, and the counts at their zero."""
        compiled, center = self._sums
        return fill_draws(compiled), center

    @cached_property
    def _sums(self) -> tuple[Compiled, IntArray]:
        """Sums and weights for draws under a flat prior, and the counts at their zero."""
        return self._flat(whole=False)

    @property
    def _by_families(self) -> bool:
        """Whether draws come from tables of families, if these can be filled."""
        if self.prior is not None:
            return False
        sums, _ = self._sums
        return families.are_worthwhile(sums.forest, sums.weights)

    def _flat(self, *, whole: bool) -> tuple[Compiled, IntArray]:
        """Return the sums and weights under a flat prior, see `sum_network.compile`."""
        forest = sum_network.of_tree(self.problem.tree)
        center = self.problem.around(np.zeros(self.problem.tree.leaves.size))
        flat = share_unary(self.problem.unary(center))
        if not sum_network.is_proper(forest, flat):
            raise UnsupportedError(
                "some counts are not determined by measurements, so a flat prior gives no "
                "posterior; give a prior, or bounds."
            )
        tilts = families.matched_tilts
        return sum_network.compile(forest, flat, whole=whole, tilts_of=tilts), center


def evidence_of(problem: Problem) -> Evidence:
    """Return each node's measurement, scale and bounds as arrays."""
    kind = np.where(problem.measured, problem.mechanism.noise.kind, laws.FLAT).astype(np.int64)
    scale = np.where(problem.measured, problem.mechanism.scales, 1.0)
    known = problem.measured | problem.pinned
    y = np.where(known, problem.y, 0).astype(np.float64)
    ends = tightened(problem.tree, np.maximum(problem.lo, 0.0), problem.hi)
    return Evidence(problem.tree, kind, scale, y, *ends)
