"""The conditional mechanism K = M( . | C), its draws and its law."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from congenial import sum_network
from congenial.accounting.guarantee import Guarantee, Neighbours, conditioned_guarantee
from congenial.conditioning.laws.conditional import PlotsMarginals
from congenial.conditioning.laws.draw_routes import fill_draws
from congenial.conditioning.laws.questions import (
    checked_counts,
    checked_rows,
    find_node,
    find_nodes,
)
from congenial.domain.tree import Tree, TreeSplit, at_nodes
from congenial.errors import NumericalError, UnsupportedError
from congenial.invariants.feasibility.feasible import remarks
from congenial.invariants.resolved import ResolvedInvariant, checked_draws
from congenial.kernels.numerics import trees
from congenial.kernels.numerics.trees import compact, read_only
from congenial.namespaces import renamed
from congenial.noise.additive import Additive, checked_alpha, checked_size
from congenial.noise.law import find_law
from congenial.randomness import Probability, Randomness, resolve
from congenial.sum_network import (
    SharedUnary,
    SumForest,
    Tables,
    Unary,
    exact,
    families,
    forest_cost,
    of_tree,
    share_noise,
    side_by_side,
    work_at,
)
from congenial.sum_network.cutset import SumSystem, joint_law, sums_of
from congenial.sum_network.exact import Envelopes
from congenial.sum_network.joined import SplitSums
from congenial.types import BoolArray, FloatArray, IntArray

# Most nodes of a part, and most parts, of a tree whose tables do not fit in memory at once. Larger
# parts take long, and their messages miss the error bound more often.
_LARGEST_PART, _MOST_PARTS = 1 << 17, 10_000


@dataclass(frozen=True, eq=False)
class Attempts:
    """Single attempts at draws of noise, of which each may be refused.

    An attempt leads to noise, and is accepted, with the noise's weight over the mass. Weights are 1
    at noise 0.
    """

    mass: Probability
    # Of a number of rows, returns which are accepted, and the noise of these, shape (accepted, n).
    attempt: Callable[[int, Randomness], tuple[BoolArray, IntArray]]


@dataclass(frozen=True, eq=False)
class Conditioned(PlotsMarginals):
    """An additive mechanism conditioned on an invariant (belief revision), drawn exactly.

    Made by `congenial.condition`.

    Attributes
    ----------
    mechanism : Additive
    resolved : ResolvedInvariant
    forest : SumForest
    fixed : ndarray of bool, shape (n + slacks,)
        Entries, and slacks of inequalities, that keep the value of the data.
    bounds_hold : bool
        Whether the data themselves must lie within the bounds; False for alternatives of a union.
    """

    mechanism: Additive
    resolved: ResolvedInvariant
    forest: SumForest
    fixed: npt.NDArray[np.bool_]
    bounds_hold: bool = True
    certified: ClassVar[bool] = True
    requirements = renamed("requirements", "resolved")

    @property
    def data_free(self) -> bool:
        """Whether the law of the noise is the same for every dataset (equalities only)."""
        return not self.resolved.has_inequalities

    def sample(
        self, x: npt.ArrayLike, size: int | None = None, rng: Randomness | None = None
    ) -> IntArray:
        """Draw releases, each independent and within `error_bound` of the law.

        Parameters
        ----------
        x : array_like of int, shape (n,)
            Confidential values of all queries, which satisfy the invariant.
        size : int, optional
            Number of draws; by default one vector. Many draws use up to NUMBA_NUM_THREADS threads;
            the same seed and size give the same bits on any number of them.
        rng : Randomness, optional
            `secure()` by default.

        Returns
        -------
        ndarray of int64, shape (n,) or (size, n)

        Raises
        ------
        ArgumentError
            If `x` has the wrong shape or does not add up.
        InvariantError
            If `x` violates a bound or a linear condition.
        """
        counts = self._checked(x)
        rows = checked_size(size)
        source = resolve(rng)
        tables = self._draw_tables if self.data_free else self._draws_of(counts)
        if isinstance(tables, SplitSums):
            out = tables.draw(rows, source)
        elif isinstance(tables, families.FamilySums):
            out = families.sample(tables, rows, source, first=self.mechanism.n)
        else:
            out = exact.sample(tables, rows, source, first=self.mechanism.n)
        if self.forest.turned:
            out *= self.forest.orientation[: self.mechanism.n]
        out += counts
        checked_draws(self.resolved, out, counts)
        return out[0] if size is None else out

    def log_normalizer(self, x: npt.ArrayLike) -> float:
        """Log probability that the unconditioned mechanism satisfies the invariant at `x`.

        Queries that are not measured have weight 1 for every value. Pinned entries have the values
        of `x`.

        Parameters
        ----------
        x : array_like of int, shape (n,)
        """
        return self._log_mass(self._checked(x))

    def log_normalizers(self, datasets: Sequence[npt.ArrayLike]) -> FloatArray:
        """Log normalisers of several datasets; equal parts of their tables are filled once.

        Parameters
        ----------
        datasets : sequence of array_like of int, shape (n,) each

        Returns
        -------
        ndarray of float64, shape (datasets,)

        Raises
        ------
        UnsupportedError
            If the tables do not fit in memory; those of one dataset may.
        """
        checked = [self._checked(x) for x in datasets]
        if self.data_free:
            return np.full(len(checked), self.log_mass)
        weights = [self._shared_weights(counts, self.forest.orientation) for counts in checked]
        forest, together = self.forest.repeated(len(checked)), side_by_side(weights)
        tables = sum_network.fill(_compile(forest, together))
        return tables.log_sums(len(checked)) + self.log_mode

    def work_at(self, x: npt.ArrayLike) -> tuple[float, float]:
        """Estimate the multiplications that fill tables at a dataset, and those of one draw.

        Fills no table. Under equalities alone all datasets share one table; its cost is stated.

        Parameters
        ----------
        x : array_like of int, shape (n,)
        """
        return work_at(self._compiled(self._checked(x)))

    @cached_property
    def log_mass(self) -> float:
        """Log probability of the invariant; under equalities alone it is equal for all data."""
        if not self.data_free:
            raise AssertionError("inequalities make it depend on the data")
        return self._log_mass(np.zeros(self.mechanism.n, dtype=np.int64))

    def weighed_envelopes(self, x: npt.ArrayLike) -> Envelopes:
        """Return the envelopes of `attempts`; under equalities alone they are filled once."""
        if self.data_free:
            return self._free_envelopes
        return exact.fill_envelopes(self._compiled(self._checked(x)), direct=False)

    def attempts(self, x: npt.ArrayLike) -> Attempts:
        """Return attempts at draws, from which unions and mixtures draw.

        Parameters
        ----------
        x : array_like of int, shape (n,)

        Raises
        ------
        UnsupportedError
            If the tables do not fit in memory; draws of this mechanism alone may take less.
        """
        envelopes, n, forest = self.weighed_envelopes(x), self.mechanism.n, self.forest

        def attempt(rows: int, rng: Randomness) -> tuple[BoolArray, IntArray]:
            accepted, noise = exact.attempt(envelopes, rows, rng, first=n)
            return accepted, (noise * forest.orientation[:n] if forest.turned else noise)

        return Attempts(exact.mass(envelopes), attempt)

    def check_proper(self) -> None:
        """Refuse with UnsupportedError if the law does not exist, for these and all other data."""
        at_zero = np.zeros(self.mechanism.n, dtype=np.int64)
        weights = self._shared_weights(at_zero, self.forest.orientation)
        sum_network.check_proper(self.forest, weights)

    def log_ceiling(self, x: npt.ArrayLike, *, thorough: bool = False) -> float:
        """Upper bound on `log_normalizer`, at the cost of one pass; inf if none is known.

        Parameters
        ----------
        x : array_like of int, shape (n,)
        thorough : bool
            Search for the least bound, at the cost of some dozens of dense solutions of the sums.

        Raises
        ------
        InfeasibleError
            If no values with the pinned values of `x` satisfy the invariant.
        """
        weights = self._shared_weights(self._checked(x), self.forest.orientation)
        # multipliers that match means of single weights give the least bound
        compiled = sum_network.compile(self.forest, weights)
        if thorough:
            rows = sum_network.forest_rows(self.forest)
            return sum_network.least_ceiling(rows, weights.each) + self.log_mode
        return sum_network.log_ceiling(self.forest, weights, compiled.theta) + self.log_mode

    @property
    def log_mode(self) -> float:
        """Log probability that all noise is 0."""
        zeros = np.zeros(self.mechanism.n)
        return float(self.mechanism.noise.log_pmf(zeros, self.mechanism.scales).sum())

    def _log_mass(self, counts: IntArray) -> float:
        return self._tables(counts).log_sum() + self.log_mode

    def log_prob(self, z: npt.ArrayLike, x: npt.ArrayLike) -> float | FloatArray:
        """Log probability of releases, normalised; -inf outside the invariant.

        Parameters
        ----------
        z : array_like of int, shape (n,) or (size, n)
        x : array_like of int, shape (n,)

        Returns
        -------
        float or ndarray of float64, shape (size,)
        """
        counts = self._checked(x)
        values = checked_rows(self.mechanism, z)
        out = self.log_weights(np.atleast_2d(values), counts) - self.log_normalizer(counts)
        return float(out[0]) if values.ndim == 1 else out

    def log_weights(self, rows: npt.NDArray[np.generic], counts: IntArray) -> FloatArray:
        """Log probability of rows without the condition; -inf outside the invariant."""
        inside = self._satisfied_by(rows, counts)
        log_pmf = self.mechanism.log_prob(np.where(inside[:, None], rows, counts), counts)
        return np.where(inside, log_pmf, -np.inf)

    def marginal(self, node: int | str, x: npt.ArrayLike) -> tuple[IntArray, FloatArray]:
        """Law of one released value.

        Parameters
        ----------
        node : int or str
            Index, or name if the queries are a tree.
        x : array_like of int, shape (n,)

        Returns
        -------
        values : ndarray of int64, shape (k,)
            Consecutive integers that carry all but 1e-12 of the mass.
        probabilities : ndarray of float64, shape (k,)
        """
        counts = self._checked(x)
        v = self._node(node)
        noise, probabilities = self.law_of_noise(v, counts)
        return counts[v] + noise, probabilities

    def marginals(
        self, nodes: Sequence[int], x: npt.ArrayLike
    ) -> Iterator[tuple[IntArray, FloatArray]]:
        """Yield the law of each of several released values, as `marginal` does; fill tables once.

        Tables of the law of all nodes are larger, and are filled for the first node that needs
        them.
        """
        counts = self._checked(x)
        tables = self._tables(counts)
        whole: Tables | None = None
        for v in nodes:
            here = tables
            if tables.freed is not None and tables.freed.follows[v]:
                whole = here = self._tables(counts, v) if whole is None else whole
            noise, probabilities = self._noise_law(v, here)
            yield counts[v] + noise, probabilities

    def joint(
        self, nodes: Sequence[int | str], x: npt.ArrayLike
    ) -> tuple[tuple[IntArray, ...], FloatArray]:
        """Joint law of one to three released values.

        Parameters
        ----------
        nodes : sequence of int or str
            Different nodes.
        x : array_like of int, shape (n,)

        Returns
        -------
        values : tuple of ndarray of int64
            Consecutive integers for each node.
        probabilities : ndarray of float64, one axis a node

        Raises
        ------
        UnsupportedError
            If it takes too many values of all nodes but the last, or too many multiplications.
        """
        counts = self._checked(x)
        found = find_nodes(self.mechanism, self.resolved, nodes)
        return joint_law(self.sums, self._weights(counts), counts, found, self._tally)

    @cached_property
    def sums(self) -> SumSystem:
        """The sums as rows."""
        return sums_of(self.resolved)

    @property
    def _tally(self) -> int | None:
        """A row that is carried along with the others; None for a forest."""
        return None

    def interval(self, node: int | str, alpha: float = 0.1) -> tuple[int, int]:
        """Interval that contains released minus true at a node with probability at least 1 - alpha.

        Parameters
        ----------
        node : int or str
        alpha : float
            Between 0 and 1.

        Returns
        -------
        lo, hi : int
            The true count lies in ``[released - hi, released - lo]`` with that probability.

        Raises
        ------
        UnsupportedError
            If inequalities make the law depend on the confidential counts.
        """
        checked_alpha(alpha)
        if not self.data_free:
            raise UnsupportedError(
                "an interval that is the same for every dataset exists under equalities only; "
                "use congenial.inference.inverted_intervals() of the release, use marginal() at a "
                "value of x, or drop the bounds."
            )
        nothing = np.zeros(self.mechanism.n, dtype=np.int64)
        v = self._node(node)
        values, probabilities = self.law_of_noise(v, nothing)
        by_size = np.bincount(np.abs(values), weights=probabilities)
        reach = int(np.searchsorted(np.cumsum(by_size), 1.0 - alpha))
        reach = min(reach, by_size.size - 1)
        return -reach, reach

    def guarantee(self, neighbours: Neighbours) -> Guarantee:
        """Privacy guarantee of one draw.

        Parameters
        ----------
        neighbours : {"substitute", "add-remove"}

        Raises
        ------
        PrivacyError
            If nothing is proved for the combination.
        EmptyNeighbourhoodError
            If the pinned values leave no neighbouring datasets.
        """
        return conditioned_guarantee(
            self.mechanism, self.resolved, neighbours, sampler_error=self.error_bound
        )

    @cached_property
    def error_bound(self) -> float:
        """Bound on the total variation between a draw and its law, for every dataset."""
        return 0.0

    def explain(self) -> str:
        """Explain which sampler draws, why, and at what cost; this fills no table."""
        return (
            f"exact sampler: {self.sums_text}. {self._law_text} {self._cost_text} Each draw is "
            f"independent. Its law is exactly the stated one.{self._untried}"
        )

    @property
    def sums_text(self) -> str:
        """Number of queries and of sums, in words."""
        n = self.mechanism.n
        sums = "1 sum" if self.forest.m == 1 else f"{self.forest.m} sums"
        pinned = int(self.fixed[:n].sum())
        shape = f"{n} queries ({pinned} published exactly), joined by {sums} without a cycle"
        inequalities = self.resolved.n_inequalities
        if inequalities:
            shape += f"; {inequalities} of the sums may be exceeded, by a slack that has no noise"
        return shape

    @property
    def _law_text(self) -> str:
        if self.data_free:
            return "Equalities only: the noise has one law for every dataset."
        return (
            "Bounds apply, so the distribution of a draw depends on the confidential counts; "
            "epsilon covers this."
        )

    @property
    def _cost_text(self) -> str:
        """A sentence on the cost of one call, which all its draws share."""
        forest = self.forest
        weights = data_free_weights(self.mechanism, self.resolved, self.fixed, forest.n)
        if self.data_free:
            cost = forest_cost(forest, weights, shared=True, compose=True)
            return "" if cost is None else f"Its tables take {cost}, once for all draws."
        at_zero = np.zeros(self.mechanism.n, dtype=np.int64)
        if families.are_worthwhile(forest, self._shared_weights(at_zero, forest.orientation)):
            return "Each call of sample() fills one table for each sum."
        least = forest_cost(forest, weights, shared=True, compose=False)
        most = forest_cost(forest, weights, shared=False, compose=False)
        if least is None or most is None:
            return "Only bounds make the law finite, so its cost is not known without the counts."
        return (
            f"Each call of sample() fills tables. The least: {least}, if all counts are equally "
            f"far from their bounds. The most: {most}, if no two counts are. This estimate uses "
            "the noise only, not the confidential counts."
        )

    @property
    def _untried(self) -> str:
        left = remarks(self.resolved, self.mechanism.domain)
        return f" {left}" if left else ""

    @cached_property
    def _free_tables(self) -> Tables:
        return self._prepare(None)

    @cached_property
    def whole_tables(self) -> Tables:
        """Tables from which the law of every variable follows, under equalities alone."""
        return self._prepare(None, whole=True)

    @cached_property
    def _free_envelopes(self) -> Envelopes:
        return exact.fill_envelopes(self._compiled(None), direct=False)

    @cached_property
    def _draw_tables(self) -> Envelopes:
        return exact.fill_envelopes(self._compiled(None))

    def _tables(self, counts: IntArray, v: int | None = None) -> Tables:
        """Fill tables, from which the law of `v` follows if it is given."""
        tables = self._free_tables if self.data_free else self._prepare(counts)
        if v is None or tables.freed is None or not tables.freed.follows[v]:
            return tables
        return self.whole_tables if self.data_free else self._prepare(counts, whole=True)

    def _prepare(self, counts: IntArray | None, *, whole: bool = False) -> Tables:
        return sum_network.fill(self._compiled(counts, whole=whole))

    def _draws_of(self, counts: IntArray) -> Envelopes | families.FamilySums | SplitSums:
        """Fill tables for draws; part by part, if those of a large tree do not fit in memory."""
        try:
            return fill_draws(self._compiled(counts))
        except (NumericalError, UnsupportedError) as error:
            refused = error.with_traceback(None)  # its frames hold tables
            refused.__context__ = None
        split = self._moderate_split
        if split is None:
            raise refused
        return self.split_sums(counts, split)

    @cached_property
    def _moderate_split(self) -> TreeSplit | None:
        """The highest cut of the tree whose parts are small and not too many; None without one."""
        resolved = self.resolved
        tree = resolved.tree
        if tree is None or resolved.joins_parts or self.forest.n != len(tree):
            return None
        for level in range(1, tree.depth - 1):
            split = tree.split(level)
            if split.roots.size > _MOST_PARTS:
                break
            if split.sizes.max(initial=0) <= _LARGEST_PART:
                return split if len(tree) > _LARGEST_PART else None
        return None

    def split_sums(self, counts: IntArray, split: TreeSplit) -> SplitSums:
        """Return the sums and weights of the noise, part by part; `counts` obey the invariant."""

        def weights_of(nodes: IntArray, tree: Tree) -> SharedUnary:
            return self.restricted(nodes, tree).own_weights(at_nodes(counts, nodes))

        return SplitSums(split, weights_of)

    def restricted(self, nodes: IntArray, tree: Tree) -> Conditioned:
        """Return the mechanism and its invariant for some nodes, which are `tree`."""
        noise = self.mechanism.noise
        scales = noise.spread if noise.spread.size == 1 else noise.spread[nodes]
        mechanism = Additive(find_law(noise.name)(scales), tree)
        fixed: BoolArray = self.fixed[nodes]
        return Conditioned(mechanism, self.resolved.restricted(nodes, tree), of_tree(tree), fixed)

    def _compiled(self, counts: IntArray | None, *, whole: bool = False) -> sum_network.Compiled:
        weights = self._shared_weights(counts, self.forest.orientation)
        return _compile(self.forest, weights, whole=whole)

    def own_weights(self, counts: IntArray) -> SharedUnary:
        """List the weights of the noise within its bounds, for counts that add up."""
        return self._shared_weights(counts, None)

    def _weights(self, counts: IntArray) -> Unary:
        """Weights of the noise at every entry, then of block sums, which have no noise."""
        return self._shared_weights(counts, None).each

    def _shared_weights(
        self, counts: IntArray | None, orientation: npt.NDArray[np.int8] | None
    ) -> SharedUnary:
        """List the weights of the noise; with `counts`, the bounds apply to it."""
        noise, resolved = self.mechanism.noise, self.resolved
        if counts is not None:
            resolved = resolved.with_pins(counts)
        scale, lo, hi, dropped = noise.spread, resolved.lo, resolved.hi, self._implied
        matrix, value = resolved.inequalities
        if value.size:
            if counts is None:
                raise AssertionError("inequalities make it depend on the data")
            # slacks come after the entries: not measured, never negative
            none = np.full(value.size, np.inf)
            scale = np.append(self.mechanism.scales, none)
            lo, hi = np.append(lo, np.zeros(value.size)), np.append(hi, none)
            slacks = matrix.astype(np.int64) @ counts - value.astype(np.int64)
            counts = np.append(counts, slacks)
            if dropped is not None:
                dropped = np.append(dropped, np.zeros(value.size, dtype=np.bool_))
        common = noise.kind, scale, (lo, hi), self.fixed, self.forest.n
        return share_noise(*common, counts=counts, dropped=dropped, orientation=orientation)

    @cached_property
    def _implied(self) -> npt.NDArray[np.bool_] | None:
        """Entries whose lower bound follows from the bounds of their children, or None.

        Without these bounds there are fewer classes of nodes. Consistent counts shift the bounds
        of a node and of its children equally.
        """
        resolved, tree = self.resolved, self.resolved.tree
        if tree is None or not resolved.has_inequalities:
            return None
        implied, below = np.zeros(len(tree), dtype=np.bool_), np.zeros(len(tree))
        public = (tree.parents, tree.is_leaf, self.fixed[: len(tree)])
        shape = (read_only(array) for array in public)
        trees.mark_implied(*shape, compact(resolved.lo), below, implied)
        implied[resolved.bounded_by_pins] = False
        return implied

    def law_of_noise(self, v: int, counts: IntArray) -> tuple[IntArray, FloatArray]:
        """Law of the noise of one variable; `counts` matter under inequalities only."""
        return self._noise_law(v, self._tables(counts, v))

    def _noise_law(self, v: int, tables: Tables) -> tuple[IntArray, FloatArray]:
        noise, probabilities = sum_network.marginal(tables, v)
        if self.forest.orientation[v] < 0:
            noise, probabilities = -noise[::-1], probabilities[::-1]
        return noise, probabilities

    def _node(self, node: int | str) -> int:
        return find_node(self.mechanism, self.resolved, node)

    def _checked(self, x: npt.ArrayLike) -> IntArray:
        return checked_counts(self.mechanism, self.resolved, x, bounds_hold=self.bounds_hold)

    def _satisfied_by(self, values: npt.NDArray[np.generic], counts: IntArray) -> BoolArray:
        real = values.astype(np.float64)
        # no count exceeds 2^62, and the cast below would overflow
        whole = ((real == np.rint(real)) & (np.abs(real) < 2.0**62)).all(axis=1)
        exact_values = values if values.dtype.kind == "i" else np.where(whole[:, None], real, 0.0)
        v: IntArray = np.asarray(exact_values).astype(np.int64)
        return np.asarray(whole & self.resolved.satisfied_by(v, counts))


def _compile(
    forest: SumForest, weights: SharedUnary, *, whole: bool = False
) -> sum_network.Compiled:
    """Compile sums, with multipliers that fit wide noise too."""
    tilts = families.matched_tilts
    return sum_network.compile(forest, weights, whole=whole, tilts_of=tilts)


def data_free_weights(
    mechanism: Additive, resolved: ResolvedInvariant, fixed: npt.NDArray[np.bool_], size: int
) -> SharedUnary:
    """Weights without bounds, except for unmeasured queries that only bounds limit."""
    scale = mechanism.noise.spread
    width = np.where(np.isfinite(scale), np.inf, resolved.hi - resolved.lo)
    width = np.where(np.isfinite(width), np.floor(width), np.inf)
    slacks = np.full(fixed.size - resolved.n, np.inf)
    if slacks.size:
        scale = np.append(mechanism.scales, slacks)
        width = np.append(width, slacks)
    return share_noise(mechanism.noise.kind, scale, (-width, width), fixed, size)
