"""The windows of a sum network, from tilts, moments and the tails that they must contain."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from congenial.errors import InfeasibleError, UnsupportedError
from congenial.kernels.network import messages, reaching, tilting
from congenial.kernels.network import moments as unary_laws
from congenial.kernels.network.records import Classes, Moments, Weights
from congenial.kernels.network.spans import spans
from congenial.kernels.numerics import elementwise, laws
from congenial.sum_network.forest import SumForest
from congenial.sum_network.network import Network
from congenial.sum_network.weights import SharedUnary, Unary
from congenial.types import FloatArray, IntArray

IMPROPER = (
    "the measurements and bounds do not determine a query that is not measured, so the conditional "
    "law does not exist; measure more queries or publish some exactly."
)
INFEASIBLE = "a sum cannot take its fixed value within the bounds; relax one."

# Most Newton steps for the multipliers. About five suffice, unless bounds bind strongly or
# measurements lie hundreds of deviations apart: each step moves by one deviation.
_ROUNDS = 1000
# Depth at which the decay of a product is measured, in nats below its mode.
_TAIL = 30.0
# End of an unbounded window.
_ENDLESS = 2.0**60
# Decay rate (`spans`) of a Gaussian law of deviation 1 that bounds truncate to almost nothing. It
# keeps the tail of the whole law, some 7 deviations away; 8 would lose far too much at first.
_CUT_SHORT = 3.5
# Nats over which the decay of a law in two pieces is averaged.
_TWO_PIECES = 15.0


def is_proper(forest: SumForest, weights: SharedUnary) -> bool:
    """Whether the weights can be normalised."""
    unary = weights.unary
    flat = unary.kind == laws.FLAT
    up, down = flat & np.isposinf(unary.hi), flat & np.isneginf(unary.lo)
    if not (up.any() or down.any()):
        return True
    ways = (up + 2 * down)[weights.code]
    summed = np.zeros(forest.m, dtype=np.int64)
    shape = forest.above, forest.owner, forest.sign, forest.order
    return not tilting.improper(*shape, ways, summed)


def check_proper(forest: SumForest, weights: SharedUnary) -> None:
    """Refuse weights that cannot be normalised, with UnsupportedError."""
    if not is_proper(forest, weights):
        raise UnsupportedError(IMPROPER)


def check_feasible_sums(forest: SumForest, weights: SharedUnary) -> None:
    """Refuse bounds within which no values satisfy every sum, with InfeasibleError."""
    unary = weights.unary
    if ((unary.lo <= 0.0) & (unary.hi >= 0.0)).all():
        return  # zeros satisfy every sum
    shape = forest.above, forest.owner, forest.sign, forest.path
    if not reaching.feasible(*shape, weights.code, unary.lo, unary.hi):
        raise InfeasibleError(INFEASIBLE)


def tilts(forest: SumForest, weights: SharedUnary, prior: FloatArray | None = None) -> FloatArray:
    """Return multipliers of the constraints, rounded so that equal families share them."""
    theta = np.zeros(forest.m)
    unary = weights.unary
    centred = (unary.center == 0) & (unary.lo == -unary.hi)
    symmetric = prior is None and bool((centred | (unary.lo == unary.hi)).all())
    if forest.m == 0 or symmetric:
        return theta
    # bounded noise without measurements adds up to at most the sum of its bounds
    bounds = np.zeros(unary.lo.size)
    for end in (unary.lo, unary.hi):
        bounds += np.where((unary.kind == laws.FLAT) & np.isfinite(end), np.abs(end), 0.0)
    _, scale = stand_in(unary, forest.n, float(bounds[weights.code].sum()))
    shape = (forest.above, forest.owner, forest.sign, forest.path)
    columns = unary.kind, scale, unary.center, unary.lo, unary.hi
    priors = np.empty((0, 4)) if prior is None else prior
    tilting.solve(Weights(*columns), priors, weights.code, *shape, _ROUNDS, True, theta)
    return theta


def stand_in(unary: Unary, n: int, reach: float = 0.0) -> tuple[IntArray, FloatArray]:
    """Replace flat weights by very wide Laplace ones, for placing windows only."""
    flat = unary.kind == laws.FLAT
    kind = np.where(flat, laws.LAPLACE, unary.kind)
    measured = unary.scale[~flat & np.isfinite(unary.scale)]
    wide = 32.0 * (float(measured.max()) if measured.size else 1.0) * np.sqrt(n) + 32.0
    wide += 8.0 * reach
    finite = np.where(np.isfinite(unary.lo) & np.isfinite(unary.hi), unary.hi - unary.lo, 0.0)
    return kind, np.where(flat, np.maximum(wide, finite), unary.scale)


class Placement(NamedTuple):
    """Support, decay and moments of every class, from which windows follow."""

    mean: FloatArray
    var: FloatArray
    support_lo: FloatArray
    support_hi: FloatArray
    rate_lo: FloatArray
    rate_hi: FloatArray


def place_classes(network: Network) -> Placement:
    """Fill the support, decay and moments of every class."""
    at = np.flatnonzero(network.variable >= 0)
    v = network.variable[at]
    own = place_weights(network, network.unary.at(v), network.tilt[v])
    for c, given in network.received.items():
        own[:, np.searchsorted(at, c)] = given.place
    place = place_above(network, at, own)
    return _place_weighed(network, place) if network.received else place


def _place_weighed(network: Network, place: Placement) -> Placement:
    """Return the places, with exact moments of the products of messages and weights.

    A weight that is tilted nearly to where it has no law moves the product by many deviations.
    """
    exact, columns = [], [column.copy() for column in place]
    for d in np.flatnonzero(network.ctype == messages.PRODUCT).tolist():
        v, sent = network.variable[network.left[d]], network.received.get(int(network.right[d]))
        if sent is None:
            continue
        found = sent.weighed(network.unary.at(np.array([v])), float(network.tilt[v]))
        if found is not None:
            columns[0][d], columns[1][d] = found
            exact.append(d)
    ctype = network.ctype.copy()
    ctype[exact] = messages.UNARY  # these are not worked out from their parts
    messages.propagate(ctype, network.left, network.right, network.sign, *columns, _TAIL)
    return Placement(*columns)


def place_received(network: Network, place: Placement) -> Placement:
    """Return where windows may be placed: those of messages of parts are given."""
    if not network.received:
        return place
    at = np.flatnonzero(network.variable >= 0)
    own = np.stack([column[at] for column in place])
    for c, given in network.received.items():
        own[2:4, np.searchsorted(at, c)] = given.lo, given.hi
    return place_above(network, at, own)


def place_weights(network: Network, unary: Unary, tilt: FloatArray) -> FloatArray:
    """Return the columns of `Placement` of tilted weights, shape (6, weights)."""
    kind, scale = stand_in(unary, network.slots)
    mean, var = np.empty(tilt.size), np.empty(tilt.size)
    unary_laws.moments(kind, scale, unary.center, unary.lo, unary.hi, tilt, mean, var)
    # seen from above: the mirror image of the lower side
    law = unary.kind, scale, var
    falls = decay_of(*law, tilt, mean - unary.lo, unary.hi - unary.center)
    rises = decay_of(*law, -tilt, unary.hi - mean, unary.center - unary.lo)
    return np.stack((mean, var, unary.lo, unary.hi, falls, rises))


def place_above(network: Network, at: npt.NDArray[np.intp], own: FloatArray) -> Placement:
    """Fill the columns of `Placement` of merges and products, given those of the classes `at`."""
    columns = np.empty((6, network.ctype.size))
    columns[:, at] = own
    shape = network.ctype, network.left, network.right, network.sign
    messages.propagate(*shape, *columns, _TAIL)
    return Placement(*columns)


def windows(
    network: Network,
    place: Placement,
    *,
    cut: float,
    generous: float | FloatArray,
    margin: float = 1.0,
) -> tuple[IntArray, IntArray]:
    """Place a window around the mean of each class, wide enough for its posterior tails.

    The windows together truncate about `cut` of the mass. `generous` multiplies their depth in
    nats, for all classes or by a factor for each class, shape (c,). They have `margin` more values
    at each end.
    """
    count = network.ctype.size
    shape = network.ctype, network.left, network.right, network.sign
    mid_lo, mid_hi, out_var, out_lo, out_hi = surroundings(network, place)
    reach = elementwise.log(4.0 * network.choices + 4.0) - elementwise.log(cut)
    nats = np.full(count, reach) * generous
    below, above = np.empty(count), np.empty(count)
    own_var = np.maximum(place.var, 0.0)
    used = out_var >= 0.0
    mid_lo, mid_hi = np.where(used, mid_lo, 0.0), np.where(used, mid_hi, 0.0)
    spans(own_var, place.rate_lo, out_var, out_lo, place.mean - mid_lo, nats, below)
    spans(own_var, place.rate_hi, out_var, out_hi, mid_hi - place.mean, nats, above)
    lo = np.floor(mid_lo - below) - margin
    hi = np.ceil(mid_hi + above) + margin
    lo, hi = np.maximum(lo, place.support_lo), np.minimum(hi, place.support_hi)
    lo, hi = np.minimum(lo, place.support_hi), np.maximum(hi, place.support_lo)
    fixed = np.unique(network.fixed)
    if ((place.support_lo[fixed] > 0.0) | (place.support_hi[fixed] < 0.0)).any():
        raise InfeasibleError(INFEASIBLE)
    lo[fixed], hi[fixed] = np.minimum(lo[fixed], 0.0), np.maximum(hi[fixed], 0.0)
    needed = np.full((count, 2), (np.inf, -np.inf))
    needed[network.roots] = needed[fixed] = -np.inf, np.inf
    messages.cover(*shape, place.support_lo, place.support_hi, needed, lo, hi)
    # the limit of memory refuses unbounded windows by their size, which must be finite
    lo, hi = np.maximum(lo, -_ENDLESS), np.minimum(hi, _ENDLESS)
    return (np.where(used, lo, 1.0).astype(np.int64), np.where(used, hi, 0.0).astype(np.int64))


def surroundings(network: Network, place: Placement) -> tuple[FloatArray, ...]:
    """Return the conditional means of each class and the message from the rest of the network.

    These are the least and the largest mean over all uses of a class, and the variance and decay
    rates of the message, see `messages.surround`; shapes (c,).
    """
    count = network.ctype.size
    shape = network.ctype, network.left, network.right, network.sign
    out_var = np.full(count, -1.0)
    out_lo, out_hi = np.full(count, np.inf), np.full(count, np.inf)
    out_var[network.fixed] = 0.0
    out_var[network.roots] = 1e30
    out_lo[network.roots] = out_hi[network.roots] = 0.0
    mid_lo, mid_hi = np.full(count, np.inf), np.full(count, -np.inf)
    mid_lo[network.roots] = mid_hi[network.roots] = place.mean[network.roots]
    mid_lo[network.fixed] = np.minimum(mid_lo[network.fixed], 0.0)
    mid_hi[network.fixed] = np.maximum(mid_hi[network.fixed], 0.0)
    moments = Moments(place.mean, place.var, place.rate_lo, place.rate_hi)
    classes = Classes(*shape)
    messages.surround(classes, moments, _TAIL, mid_lo, mid_hi, out_var, out_lo, out_hi)
    return mid_lo, mid_hi, out_var, out_lo, out_hi


def decay_of(
    kind: IntArray,
    scale: FloatArray,
    var: FloatArray,
    tilt: FloatArray,
    room: FloatArray,
    beyond: FloatArray,
) -> FloatArray:
    """Decay of the tail of each weight's message on one side, as `spans` understands it."""
    decay = np.where(kind == laws.FLAT, np.maximum(tilt, 0.0), 1.0 / scale + tilt)
    # a law tilted against its other end decays slowly up to its centre, then fast
    slow = np.where(kind == laws.FLAT, 0.0, tilt - 1.0 / scale)
    with np.errstate(invalid="ignore", divide="ignore"):
        passed = np.minimum(slow * beyond, _TWO_PIECES)
        mixed = _TWO_PIECES / (passed / slow + (_TWO_PIECES - passed) / decay)
    in_two = (kind == laws.LAPLACE) & (slow > 0.0) & (beyond > 0.0)
    decay = np.where(in_two, mixed, decay)
    # a Gaussian law truncated in its middle still has the tail of a whole one
    gaussian = kind == laws.GAUSSIAN
    short = np.maximum(1.0 - var / scale**2, 1e-12)
    decay = np.where(gaussian, _CUT_SHORT / (scale * np.sqrt(short)), decay)
    # the support may end before the tail begins
    ends = np.isfinite(room) & ((room < 2.0 * np.sqrt(var) + 1.0) | (decay <= 0.0))
    return np.where(ends, np.inf, np.maximum(decay, 0.0))
