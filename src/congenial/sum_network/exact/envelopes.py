"""Envelopes of a forest's messages, from which draws have exactly the stated law."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from congenial.errors import NumericalError
from congenial.kernels.network import envelopes as kernels
from congenial.kernels.network.messages import PRODUCT
from congenial.kernels.network.records import Enveloped, FilledTables, TiltedWeights
from congenial.kernels.numerics import elementwise
from congenial.sum_network.ceiling import forest_rows, interior_tilts
from congenial.sum_network.direct import split_directly
from congenial.sum_network.filling import Compiled
from congenial.sum_network.forest import SumForest
from congenial.sum_network.fourier import DIRECT_LIMIT, convolve_wide
from congenial.sum_network.network import Network, compile_network
from congenial.sum_network.tables import (
    NARROW,
    DrawnTables,
    bounds_out_of_reach,
    check_room,
    far_bounds,
    near_sums,
    placed,
    without_bounds,
)
from congenial.sum_network.truncation import Messages, stretches
from congenial.sum_network.weights import (
    PartMessage,
    SharedUnary,
    composable,
    moments_of_table,
)
from congenial.sum_network.windows import (
    Placement,
    place_classes,
    place_received,
    surroundings,
    windows,
)
from congenial.types import FloatArray, IntArray

# Probability that windows aim to leave to values beyond them; such a draw takes decimals, and more
# time. And the multiple of it that is accepted.
AIM, _MOST = 3e-7, 64.0
# Relative error of transforms; what they exceed the exact sums by, a draw must reject.
_TOLERANCE = 1e-9
# Factor from one try of windows to the next, and what each missing decade adds to it; most tries.
_WIDER, _FASTER, _MOST_RISE, _TRIES = 1.15, 0.1, 1e4, 16
# Tries in a row without any bound, and entries of all tables, from which on wider windows would
# take long, and other multipliers are tried first.
_LACKING, _LARGE = 4, 1 << 18
# Multipliers are multiples of this part of the next power of two, so that their sums are exact.
_STEPS = 2.0**52
_FEWEST_BITS = 2.0**12
# Least entry at the top: choices of smaller entries are doubtful (`kernels.network.descend`).
_LEAST_TOP = 2.0**-600
_NARROW = (
    "no windows of the exact sampler hold nearly all noise; use noise scales that differ less, or "
    "fewer queries without noise."
)

Adapt = Callable[[Network], Network]


@dataclass(frozen=True, eq=False)
class Envelopes(DrawnTables):
    """Envelopes of a network's messages, see `kernels.network.envelopes`.

    ``log_scale`` is the logarithm by which a class of weights was divided.
    """

    weights: SharedUnary  # With all bounds, also those that lie beyond all windows.
    tails: FloatArray  # shape (c, 4)
    beyond: FloatArray  # shape (c,): At least the sum of the tails of a root; 0 for others.
    raised: FloatArray  # shape (2,): See `kernels.network.envelopes.fill_envelopes`.
    rare: float  # About the probability that a draw has a value beyond a window.
    message: PartMessage | None = None  # Of the class that the network sends on.


def unchanged(network: Network) -> Network:
    """Return the network as it is: all sums have tables."""
    return network


def fill_envelopes(compiled: Compiled, *, direct: bool = True) -> Envelopes:
    """Fill envelopes from which draws have exactly the law of the weights.

    Unless `direct`, all sums have tables, see `direct.split_directly`.

    Raises InfeasibleError if no value satisfies all the sums, UnsupportedError if the tables would
    not fit in memory or would take too long, NumericalError if no windows are wide enough.
    """
    adapt = split_directly if direct else unchanged
    found = fill_tilted(compiled.forest, compiled.weights, compiled.theta, adapt=adapt)
    return replace(found, freed=compiled.freed)


def fill_tilted(
    forest: SumForest,
    weights: SharedUnary,
    theta: FloatArray,
    aim: float = AIM,
    adapt: Adapt = split_directly,
) -> Envelopes:
    """Fill envelopes with multipliers near `theta`; see `fill_in_windows`."""
    try:
        return fill_in_windows(forest, weights, in_steps(theta), aim, adapt)
    except NumericalError:
        # multipliers from moments stop short where noise is far narrower than one count
        rows = forest_rows(forest)
        if rows is None:
            raise
        *_, theta = interior_tilts(rows, weights.each)
        return fill_in_windows(forest, weights, in_steps(theta), aim, adapt)


def fill_in_windows(
    forest: SumForest,
    weights: SharedUnary,
    theta: FloatArray,
    aim: float,
    adapt: Adapt,
    further: FloatArray | None = None,
) -> Envelopes:
    """Fill envelopes in windows that are wide enough.

    All sums of multipliers, and of `further` tilts of variables, must be exact. Windows aim to
    leave a probability of `aim` to values beyond them. `adapt` changes the network before it is
    used.
    """
    ways = composable(weights.unary)
    for attempt in range(24):
        far = far_bounds(forest, weights, theta, attempt, aim)
        bounded = without_bounds(weights, far)
        every = np.resize(ways, bounded.unary.kind.size)
        network = adapt(
            compile_network(forest, bounded, theta, every, reused=True, further=further)
        )
        fits = partial(bounds_out_of_reach, network.slot_class, weights, far)
        place = place_classes(network)
        found = _widened(network, place, weights, aim, fits)
        if found is not None:
            return _sending(found, forest, theta, place)
    raise NumericalError(
        "some bounds are too far from the noise to be computed with; leave out bounds that the "
        "counts cannot reach."
    )


def _widened(
    network: Network,
    place: Placement,
    weights: SharedUnary,
    aim: float,
    fits: Callable[[IntArray, IntArray], bool],
) -> Envelopes | None:
    """Fill envelopes in windows that are wide enough; None once windows do not fit."""
    generous, last, lacking, inside = 1.0, np.inf, 0, place_received(network, place)
    asked, most = min(placed(network.links) * aim, 0.5), _MOST * aim
    for margin in range(1, _TRIES + 1):
        lo, hi = windows(network, inside, cut=asked, generous=generous, margin=margin)
        if not fits(lo, hi):
            return None
        _take_windows(network, lo, hi)
        found = _fill(network, place, (lo, hi), weights)
        rare = most * _MOST_RISE if found is None else found.rare
        lacking = lacking + 1 if found is None else 0
        if lacking >= _LACKING and int((hi - lo + 1).sum()) > _LARGE:
            break
        if found is not None and rare <= most:
            return found
        if network.received and rare > 0.5 * last:
            break  # it is the windows of messages that are too narrow
        last = rare
        generous *= _WIDER + _FASTER * elementwise.log10(min(rare / most, _MOST_RISE))
    raise NumericalError(_NARROW)


def _take_windows(network: Network, lo: IntArray, hi: IntArray) -> None:
    """Give each class that has a message as its weight the window of the message."""
    for c, given in network.received.items():
        if lo[c] <= hi[c]:
            if not given.lo <= lo[c] <= hi[c] <= given.hi:
                raise NumericalError(_NARROW)  # no value fits the windows of all messages
            lo[c], hi[c] = given.lo, given.hi


def _sending(found: Envelopes, forest: SumForest, theta: FloatArray, place: Placement) -> Envelopes:
    """Return envelopes with the message of the class that the network sends on, if there is one."""
    network = found.network
    if not network.sent.size:
        return found
    c = int(network.sent[0])
    table = found.of_class(c).copy()
    placed = np.array([column[c] for column in place])
    # those of the table, since a Gaussian law may be far off where weights press against bounds
    placed[:2] = moments_of_table(int(found.lo[c]), table)
    # the class of variable 0 itself is tilted by no sum
    of_sum = 0.0 if c == network.slot_class[0] else float(theta[forest.owner == 0][0])
    message = PartMessage(int(found.lo[c]), table, found.tails[c].copy(), of_sum, placed)
    return replace(found, message=message)


def in_steps(theta: FloatArray) -> FloatArray:
    """Round multipliers to multiples of one step, so that sums of them are exact."""
    most = max(_FEWEST_BITS, 2.0 * float(np.abs(theta).max(initial=0.0)))
    step = elementwise.power_of_two_above(most) / _STEPS
    return np.asarray(np.rint(theta / step) * step)


def _posterior(network: Network, place: Placement) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return about the mean and the deviation of each class given all others; shapes (c,).

    The third array has the variance of what all others say of it.
    """
    low, high, outside, *_ = surroundings(network, place)
    used = outside >= 0.0
    middle = 0.5 * (np.where(used, low, 0.0) + np.where(used, high, 0.0))
    outside = np.where(used, outside, 0.0)
    variance = place.var * outside / np.maximum(place.var + outside, 1e-300)
    return middle, np.sqrt(variance), outside


def _fill(
    network: Network,
    place: Placement,
    ends: tuple[IntArray, IntArray],
    weights: SharedUnary,
) -> Envelopes | None:
    """Fill the envelopes in some windows; None if these are too narrow for any bound."""
    check_room(network, int((ends[1] - ends[0] + 1).sum()))
    into, count = Messages.empty(*ends), network.ctype.size
    tails, rise, raised = np.zeros((count, 4)), np.zeros(count), np.zeros(2)
    lo, width = into.lo, into.width
    v, products = np.maximum(network.variable, 0), network.products(width)
    unary = network.unary.at(v)
    wide = np.flatnonzero(products > np.maximum(DIRECT_LIMIT, NARROW * width))
    alone = np.union1d(wide, list(network.received)).astype(np.int64)
    of_transforms = set(wide.tolist())
    law = TiltedWeights(unary.kind, unary.inverse, unary.center, network.tilt[v])
    support = place.support_lo, place.support_hi
    posterior = _posterior(network, place)
    of = support, posterior, into.windows
    filled = FilledTables(into.table, into.factor, into.log_scale)
    own = filled, Enveloped(tails, rise, raised)
    for begin, c in stretches(products, alone):
        kernels.fill_envelopes(begin, c, network.classes, law, *of, *own)
        if c in network.received:
            given = network.received[c]
            into.of_class(c)[:], tails[c] = given.table, given.tails
        if c not in of_transforms:
            continue
        a, b = network.left[c], network.right[c]
        ta = into.of_class(a)
        tb = ta if b == a else into.of_class(b)
        if not (np.isfinite(ta).all() and np.isfinite(tb).all()):
            return None
        sums = ta, tb, int(lo[c] - lo[a] - lo[b]), int(width[c])
        out, off_by, top = convolve_wide(*sums, tolerance=_TOLERANCE)
        into.of_class(c)[:] = (out + off_by) * top
        kernels.finish_envelope(c, network.classes, *of, *own)
    beyond, uses = np.zeros(count), network.uses
    roots = np.unique(network.roots)
    for i in (0, 2):
        edge, ratio = tails[roots, i], tails[roots, i + 1]
        falls = (ratio < 1.0) & (edge < np.inf)
        with np.errstate(over="ignore"):  # windows far from the noise are refused
            mass = edge * ratio / np.where(falls, 1.0 - ratio, 1.0)
        beyond[roots] += np.where(edge == 0.0, 0.0, np.where(falls, mass, np.inf)) * (1.0 + 1e-6)
    rare = elementwise.dot(rise, uses)
    for c in network.roots.tolist():
        rare += float(beyond[c] / into.of_class(c).sum())
    fixed = network.fixed
    there = into.table[into.offset[fixed] - lo[fixed]]
    product = network.ctype == PRODUCT
    least = np.where(product, kernels.LEAST_OF_PRODUCTS, kernels.LEAST_FACTOR)
    small = (into.factor < least).any() or (there < _LEAST_TOP).any()
    if not np.isfinite(rare) or small or not np.isfinite(into.table).all():
        return None
    near = near_sums(network, place)
    return Envelopes(
        **vars(into),
        network=network,
        near=near,
        weights=weights,
        tails=tails,
        beyond=beyond,
        raised=raised,
        rare=rare,
    )
