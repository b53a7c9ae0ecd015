"""The first two calls of a sum network: compile it, and fill its tables."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

from congenial.errors import NumericalError
from congenial.sum_network.ceiling import forest_rows, interior_tilts
from congenial.sum_network.count_tables import PriorWeights, fill_priors, prior_tilts
from congenial.sum_network.forest import SumForest
from congenial.sum_network.freed import Freed, free_sums
from congenial.sum_network.tables import Tables, fill_noise
from congenial.sum_network.weights import SharedUnary
from congenial.sum_network.windows import check_feasible_sums, check_proper, tilts
from congenial.types import FloatArray

# Finds multipliers of the sums, shape (m,), for a forest and its weights.
Tilts = Callable[[SumForest, SharedUnary], FloatArray]


@dataclass(frozen=True, eq=False)
class Compiled:
    """Sums and weights that have been checked; made by `compile`."""

    forest: SumForest
    weights: SharedUnary  # or `PriorWeights`
    tilts_of: Tilts = tilts  # From which the multipliers come, unless weights have a prior.
    freed: Freed | None = None  # Variables that were removed from the sums and follow from others.

    @cached_property
    def theta(self) -> FloatArray:
        """Multipliers of the sums, shape (m,), which tilt the weights so that means add up."""
        if isinstance(self.weights, PriorWeights):
            return prior_tilts(self.forest, self.weights)
        return self.tilts_of(self.forest, self.weights)


def compile(  # noqa: A001 -- reached as `sum_network.compile`
    forest: SumForest, weights: SharedUnary, *, whole: bool = True, tilts_of: Tilts = tilts
) -> Compiled:
    """Check that the weights and the sums have a law.

    Unless `whole`, sums that constrain nothing are left out, see `freed`; then the tables lack the
    laws of some variables. `tilts_of` finds the multipliers, when they are needed.

    Raises InfeasibleError if no value satisfies all the sums, UnsupportedError if the law is
    improper.
    """
    if isinstance(weights, PriorWeights):
        return Compiled(forest, weights, tilts_of)
    check_proper(forest, weights)
    check_feasible_sums(forest, weights)
    freed = None
    if not whole and (found := free_sums(forest, weights)):
        forest, weights, freed = found
    return Compiled(forest, weights, tilts_of, freed)


def fill(compiled: Compiled) -> Tables:
    """Place windows, fill the tables, and bound the error of draws from them.

    Truncation costs about as much as rounding. Weights with priors have a limit of 1e-8, which is
    checked on wider windows but not proved.

    Raises InfeasibleError if no value satisfies all the sums, UnsupportedError if the tables would
    not fit in memory or would take too long, NumericalError if the error bound cannot be met.
    """
    if isinstance(compiled.weights, PriorWeights):
        return fill_priors(compiled.forest, compiled.weights, compiled.theta)
    forest, weights, freed = compiled.forest, compiled.weights, compiled.freed
    try:
        tables = fill_noise(forest, weights, compiled.theta)
    except NumericalError:
        # multipliers from moments stop short where noise is far narrower than one count
        rows = forest_rows(forest)
        if rows is None:
            raise
        *_, theta = interior_tilts(rows, weights.each)
        tables = fill_noise(forest, weights, theta)
    return replace(tables, freed=freed)
