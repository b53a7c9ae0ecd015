"""Messages of a tree whose leaves have priors, for noise laws times count laws.

A noise law times a negative binomial prior need not be log-concave, so the truncation error is not
proved but checked. All weights are positive, so the total weight grows with the windows: the weight
that much wider windows add is the weight that narrower windows truncate. This check fails if a law
has weight beyond both windows, so laws with two separate modes are refused.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from congenial.errors import NumericalError, UnsupportedError
from congenial.kernels.network import leaves, priors
from congenial.kernels.network.messages import MERGE, PRODUCT, UNARY
from congenial.kernels.network.records import LeafWeights
from congenial.kernels.numerics import elementwise, laws
from congenial.sum_network.forest import SumForest
from congenial.sum_network.network import Network, compile_network
from congenial.sum_network.tables import SUM_UNITS, Tables, near_sums, plain_units
from congenial.sum_network.truncation import Messages, stretches
from congenial.sum_network.weights import SharedUnary, Unary, alike
from congenial.sum_network.windows import Placement, place_above, place_weights, tilts, windows
from congenial.types import FloatArray, IntArray

# Largest total variation by truncation, as a target of the first windows and as a stated bound.
_MOST_CUT = 1e-8
_CUT = 1e-10
# Start at 0.8 of the predicted width and widen by 8% a step; the loss falls several-fold each step.
_FIRST, _WIDER = 0.8, 1.08
# Least number of entries by which a window grows on each open side: 8% of a narrow window is less
# than one entry.
_ENTRIES = 3
# Factor of widening if 8% is too little: laws of several modes are wider than their moments
# predict.
_FAR_WIDER = 1.4
_UNIT = 2.0**-53
# Rounding error of one step from a leaf's mode, in units of 2^-53 (kernels.priors.fill_leaf).
_STEP_UNITS = 8.0
# Limits: entries of all tables, 8 bytes each, and products of all sums in all fillings together.
_MEMORY_LIMIT = 1 << 28
_WORK_LIMIT = 1 << 38
# Limit on the products after more fillings than laws of one mode need, if those products are also
# more than `_VAIN_TIMES` the products of the first filling: the fillings may never suffice.
_VAIN_LIMIT = 1 << 35
_VAIN_TIMES = 40.0
# Largest increase of the log probability of an empty leaf by `zeros`, in nats: somewhat more than
# fitted priors have (`fitting`). Beyond it, windows may contain one of two modes and miss the
# other, which the check with wider windows would not show.
_SPIKE = 20.0
# Nats below the mode at which a leaf's tails are truncated for its moments.
_FORGOTTEN = 45.0


@dataclass(frozen=True, eq=False)
class PriorWeights(SharedUnary):
    """Distinct weights, times a prior of Panjer's class if ``a >= 0``."""

    # shape (d, 4): a, b, base and zero, see `congenial.kernels.network.priors`.
    prior: FloatArray


def share_priors(
    unary: Unary, a: FloatArray, b: FloatArray, base: FloatArray, zero: FloatArray
) -> PriorWeights:
    """List the weights of all nodes, each once."""
    prior = np.column_stack((a, b, np.where(a >= 0.0, base, 0.0), zero))
    columns = (unary.kind, unary.scale, unary.center, unary.lo, unary.hi, *prior.T)
    code, first = alike(columns)
    return PriorWeights(unary.at(first), code, prior[first])


def check_zeros(log_zero: FloatArray) -> None:
    """Refuse zeros that give a law two modes; `log_zero` raises the log probabilities of 0."""
    spike = float(log_zero.max())
    if spike > _SPIKE:
        raise UnsupportedError(
            f"the prior's zeros raise the log probability of a count of 0 by {spike:.0f}, and the "
            f"limit is {_SPIKE:.0f}; give smaller dispersions or means, or no zeros."
        )


def prior_tilts(forest: SumForest, weights: PriorWeights) -> FloatArray:
    """Return multipliers of the constraints, after checking the weights."""
    check_zeros(weights.prior[:, 3])
    return tilts(forest, weights, weights.prior)


def fill_priors(forest: SumForest, weights: PriorWeights, theta: FloatArray) -> Tables:
    """Compile the classes, place windows, fill and verify the tables: see `filling.fill`."""
    numbers = np.arange(weights.unary.kind.size, dtype=np.int64)
    # the kind numbers the whole weight, so that only equal weights share a class
    coded = Unary(numbers, *np.zeros((4, numbers.size)))
    network = compile_network(forest, SharedUnary(coded, weights.code), theta)
    own = _Own(network, weights)
    place = own.place()
    generous, before, limit = _FIRST, None, float(_WORK_LIMIT)
    spent = first = 0.0
    for done in range(12):
        lo, hi = windows(network, place, cut=_CUT, generous=generous)
        if before is not None:
            lo, hi = _around(before, lo, hi, place)
        spent += own.cost(lo, hi, spent, limit=limit)
        first = spent if done == 0 else first
        if done == 2:
            limit = min(max(_VAIN_LIMIT, _VAIN_TIMES * first), limit)
        filled = own.fill(lo, hi)
        if before is not None and before.lost(filled) <= _MOST_CUT:
            return own.tables(place, filled)
        # free these tables first: the next ones are as large
        generous *= _WIDER if done < 3 else _FAR_WIDER
        before = replace(filled, table=np.empty(0))
        del filled
    raise NumericalError(
        "the messages of the posterior do not reach their error bound; use a prior and scales "
        "that differ less."
    )


def _around(
    before: _Filled, lo: IntArray, hi: IntArray, place: Placement
) -> tuple[IntArray, IntArray]:
    """Widen windows by some entries on each side, within the supports.

    All windows grow equally, so parts still cover their merges and products.
    """
    used = lo <= hi
    low = np.maximum(before.lo - float(_ENTRIES), place.support_lo)
    high = np.minimum(before.hi + float(_ENTRIES), place.support_hi)
    return (
        np.where(used, np.minimum(lo, low), lo).astype(np.int64),
        np.where(used, np.maximum(hi, high), hi).astype(np.int64),
    )


@dataclass(frozen=True, eq=False)
class _Filled(Messages):
    """Tables on windows, and the total weight at each root: ``2^power * exp(log) * total``."""

    power: IntArray
    log: FloatArray
    total: FloatArray

    def lost(self, wider: _Filled) -> float:
        """Share of a wider filling's weight that is missing here."""
        powers = (self.power - wider.power).astype(np.float64) * elementwise.log(2.0)
        here = powers + (self.log - wider.log) + elementwise.log(self.total / wider.total)
        return float(np.maximum(-elementwise.expm1(here), 0.0).sum())


class _Own:
    """The weights of a network's classes, from the list that they were compiled from."""

    def __init__(self, network: Network, weights: PriorWeights) -> None:
        self.network = network
        v = np.maximum(network.variable, 0)
        row = network.unary.kind[v].astype(np.int64)
        self.unary = unary = weights.unary.at(row)
        inverse = np.where(unary.kind == laws.FLAT, 0.0, unary.inverse)
        prior = np.ascontiguousarray(weights.prior[row].T)
        columns = (unary.kind, inverse, unary.center, *prior, network.tilt[v])
        self.law = LeafWeights._make(columns)
        self.is_unary = network.ctype == UNARY
        self.is_leaf = self.is_unary & (self.law.a >= 0.0)

    def place(self) -> Placement:
        """Fill the support, decay and moments of every class, as `windows.place_classes`."""
        at, leaf = np.flatnonzero(self.is_unary), np.flatnonzero(self.is_leaf)
        placed = place_weights(self.network, self.unary.at(at), self.law.tilt[at])
        # leaves have moments and decays of their own
        unary, found = self.unary.at(leaf), np.empty((leaf.size, 4))
        law = unary.kind, unary.scale, unary.center, unary.lo, unary.hi
        prior_and_tilt = (column[leaf] for column in self.law[3:])
        leaves.leaf_moments(*law, *prior_and_tilt, _FORGOTTEN, found)
        placed[np.ix_((0, 1, 4, 5), self.is_leaf[at])] = found.T
        return place_above(self.network, at, placed)

    def cost(self, lo: IntArray, hi: IntArray, spent: float, *, limit: float) -> float:
        """Return the products of a filling."""
        width = np.maximum(hi - lo + 1.0, 0.0)
        entries, products = float(width.sum()), float(self.network.products(width).sum())
        if entries > _MEMORY_LIMIT or spent + products > limit:
            raise UnsupportedError(
                f"the posterior needs {entries * 8 / 2**30:.1f} GiB of tables and "
                f"{spent + products:.0g} products, and the limits are "
                f"{_MEMORY_LIMIT * 8 / 2**30:.1f} GiB and {limit:.0g}; use measurements with less "
                "noise, measure inner nodes too, give a prior nearer to the measurements, or take "
                "the flat one."
            )
        return products

    def fill(self, lo: IntArray, hi: IntArray) -> _Filled:
        """Fill all tables."""
        network, filled = self.network, Messages.empty(lo, hi)
        width, at = filled.width, network.roots
        powers, logs = np.zeros(width.size, dtype=np.int64), np.zeros(width.size)
        where = filled.windows, filled.table, filled.factor
        for begin, end in stretches(network.products(width), np.zeros(0, dtype=np.int64)):
            priors.fill(begin, end, network.classes, self.law, *where, powers, logs)
        sums = np.array([filled.of_class(c).sum() for c in at])
        if not (sums > 0.0).all():
            raise NumericalError(
                "the measurements contradict the prior so much that their probability underflows; "
                "use another prior."
            )
        filled.log_scale[:] = powers * elementwise.log(2.0) + logs
        return _Filled(**vars(filled), power=powers[at], log=logs[at], total=sums)

    def tables(self, place: Placement, filled: _Filled) -> Tables:
        """Return the tables for draws, with their stated error."""
        arrays = {name: getattr(filled, name) for name in Messages.__dataclass_fields__}
        near, error = near_sums(self.network, place), _MOST_CUT + self._rounding(filled.width)
        return Tables(**arrays, network=self.network, near=near, error=error)

    def _rounding(self, width: IntArray) -> float:
        """Total variation by rounding."""
        network = self.network
        integers = elementwise.dot(width + 1.0, network.uses) * 2.0**-61
        known = network.slot_class[network.slot_class >= 0]
        slots = np.bincount(known, minlength=width.size)
        steps = np.where(self.is_leaf, _STEP_UNITS * width, np.where(self.is_unary, 2.0, 0.0))
        # slots of inner variables are products, whose own weight is the left part
        products = int(slots[network.ctype == PRODUCT].sum())
        merge = network.ctype == MERGE
        terms = np.minimum(width[network.left], width[network.right])
        sums = elementwise.dot(np.where(merge, plain_units(terms), SUM_UNITS), network.uses)
        own = elementwise.dot(steps, slots) + 2.0 * products
        return integers + (sums + own + network.links) * _UNIT
