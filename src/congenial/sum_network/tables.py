"""Exact draws from a sum forest: tilt, place windows, fill tables, verify, draw."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import numpy.typing as npt

from congenial.errors import InfeasibleError, NumericalError, UnsupportedError
from congenial.kernels.network import descend, messages
from congenial.kernels.network.messages import MERGE
from congenial.kernels.network.records import Near, TiltedWeights
from congenial.kernels.numerics import elementwise, laws
from congenial.sum_network.forest import SumForest
from congenial.sum_network.fourier import DIRECT_LIMIT, convolve_wide
from congenial.sum_network.freed import Freed
from congenial.sum_network.network import Network, compile_network
from congenial.sum_network.truncation import (
    Messages,
    cut_off,
    stretches,
)
from congenial.sum_network.weights import SharedUnary, Unary
from congenial.sum_network.windows import (
    INFEASIBLE,
    Placement,
    place_classes,
    windows,
)
from congenial.types import FloatArray, IntArray

# Limit on the total variation between an exact draw and its law, for each `_MANY` values.
ERROR_LIMIT = 1e-9
_MANY = 1_200_000
# Multiple of this limit for tables of laws, in which every leaf's rounding adds up. An interval
# gives up as much of its probability.
_LAWS = 8.0
# Least total variation granted to truncation and to transforms.
_CUT = 1e-12
# Largest share of a law's error that windows and transforms may have; the second one once the error
# is within its limit. In tables of some 10^5 values transforms alone have about half of it, which
# wider windows hardly lower.
_SHARE, _SHARE_WITHIN = 0.5, 0.75
# Most entries of all tables; each takes 8 bytes, and a few more during certification.
_MEMORY_LIMIT = 1 << 28
# A union bound over m sums overstates the truncation error by about 30 m^(1/6) (measured), so
# windows may truncate that much more.
_PLACED = 30.0
_UNIT = 2.0**-53
# Error of one weight (`kernels.weights`), in units of rounding; sums of geometric variables have
# one more.
_WEIGHT_UNITS = 1.0 + 2.0**-7
# Error of a choice, in units of rounding: of the compensated message above it
# (`kernels.convolution`), and of the products by which it chooses.
SUM_UNITS = 5.0 + 2.0**-8
# First width of windows, as a factor; the second is that of a network with more classes than the
# third number. A first filling would truncate too much, and costs more than half of the next one.
_FIRST, _FIRST_OF_MANY, _MANY_CLASSES = 1.04, 1.65, 1 << 18
# Most entries of a narrow part: it is convolved term by term, however wide the other part is.
NARROW = 64
_MISSED = (
    "the messages of the exact sampler do not reach their error bound; "
    "use noise scales that differ less, or fewer queries without noise."
)
# Standard deviations of a choice within which draws search first; nearly all lie within.
_REACH = 8.0
# Multiple of the length of a leaf's tail beyond which a bound is ignored at first.
_NEAR = 1.2


@dataclass(frozen=True, eq=False)
class DrawnTables(Messages):
    """A network's messages, from which values are drawn."""

    network: Network
    # Given its sum s, the left part of a merge lies near ``middle + share * s``, and nearly always
    # within `reach` of it.
    near: Near
    # Variables that are 0 in the network and follow from the others.
    freed: Freed | None = field(default=None, kw_only=True)


@dataclass(frozen=True, eq=False)
class Tables(DrawnTables):
    """A network's messages, filled in and verified."""

    # Proved bound on the total variation between one draw and its law; the law is that of 1 / scale
    # and 1 / (2 sigma^2) rounded to doubles.
    error: float

    def log_sum(self) -> float:
        """Log of the summed product of all unary weights, each 1 at its mode."""
        return float(self.log_sums(1)[0])

    def log_sums(self, copies: int) -> FloatArray:
        """As `log_sum`, of each copy of a forest that was `repeated`, shape (copies,)."""
        network, total = self.network, np.zeros(copies)
        root = network.op == descend.ROOT
        of_roots = network.first[root] // (network.n // copies)
        # sums are listed in the order of the forest, so those of each copy come together
        of_fixed = np.arange(network.fixed.size) // max(network.fixed.size // copies, 1)
        for copy, c in zip(of_roots, network.cls[root], strict=True):
            total[copy] += float(self.log_scale[c]) + float(elementwise.log(self.of_class(c).sum()))
        for copy, c in zip(of_fixed, network.fixed, strict=True):
            at = self.of_class(c)[-self.lo[c]]
            if at <= 0.0:
                raise InfeasibleError(INFEASIBLE)
            total[copy] += float(self.log_scale[c]) + float(elementwise.log(at))
        return total


def error_limit(n: int) -> float:
    """Return the limit on the total variation between a draw of n values and its law."""
    return ERROR_LIMIT * max(1.0, n / _MANY)


def fill_noise(forest: SumForest, weights: SharedUnary, theta: FloatArray) -> Tables:
    """Compile the classes, place windows, fill and certify the tables: see `filling.fill`."""
    limit = _LAWS * error_limit(forest.n)
    for attempt in range(24):
        far = far_bounds(forest, weights, theta, attempt, _CUT)
        network = compile_network(forest, without_bounds(weights, far), theta)
        fits = partial(bounds_out_of_reach, network.slot_class, weights, far)
        tables = _widen_until_certified(network, place_classes(network), limit, fits)
        if tables is not None:
            return tables
    raise NumericalError(
        "some bounds are too far from the noise to be computed with; leave out bounds that the "
        "counts cannot reach."
    )


def placed(sums: int) -> float:
    """Return the factor by which the union bound overstates the truncation error."""
    return float(_PLACED * elementwise.power(max(sums, 1), 1.0 / 6.0))


def far_bounds(
    forest: SumForest, weights: SharedUnary, theta: FloatArray, attempt: int, cut: float
) -> tuple[IntArray, IntArray]:
    """Return the variables whose lower bound, and those whose upper bound, lies beyond windows.

    At first a bound counts as far if the leaf's tail beyond it is less than truncation may remove
    (`cut` for all leaves), with some room; later, and for other variables, much less.
    """
    unary, code = weights.unary, weights.code
    scale = np.where(np.isfinite(unary.scale), unary.scale, np.inf)
    nats = _NEAR * (elementwise.log(4.0 * forest.n + 4.0) - elementwise.log(cut))
    most = 4.0 ** max(attempt - 1, 0) * (256.0 * scale + 256.0)
    gaps = (unary.center - unary.lo, unary.hi - unary.center)
    lie_away = [np.isfinite(gap) & (gap > np.minimum(nats * scale, most)) for gap in gaps]
    if not any(away.any() for away in lie_away):
        none = np.zeros(0, dtype=np.int64)
        return none, none
    near = np.zeros(code.size, dtype=np.bool_)
    if attempt == 0:
        near[:] = forest.above >= 0
        near[forest.owner[forest.owner >= 0]] = False
    found = []
    for gap, away in zip(gaps, lie_away, strict=True):
        v = np.flatnonzero(away[code])
        of = code[v]
        reach = most[of]
        laplace = near[v] & (unary.kind[of] == laws.LAPLACE)
        # a tilt slows the decay on one side
        decay = 1.0 / scale[of[laplace]] - np.abs(theta[forest.above[v[laplace]]])
        followed = nats / np.maximum(decay, 1e-9) + 8.0
        reach[laplace] = np.minimum(reach[laplace], followed)
        found.append(v[gap[of] > reach])
    return found[0], found[1]


def without_bounds(weights: SharedUnary, far: tuple[IntArray, IntArray]) -> SharedUnary:
    """Leave out the lower bounds of some variables and the upper bounds of others."""
    if not (far[0].size or far[1].size):
        return weights
    unary, count = weights.unary, weights.unary.kind.size
    code = weights.code.copy()
    code[far[0]] += count
    code[far[1]] += 2 * count
    times = np.arange(4 * count) // count
    whole = unary.at(np.arange(4 * count) % count)
    flat = whole.kind == laws.FLAT  # only their bounds make them summable
    lo = np.where(flat | (times & 1 == 0), whole.lo, -np.inf)
    hi = np.where(flat | (times & 2 == 0), whole.hi, np.inf)
    return SharedUnary(Unary(whole.kind, whole.scale, whole.center, lo, hi), code)


def bounds_out_of_reach(
    of: npt.NDArray[np.int32],
    weights: SharedUnary,
    far: tuple[IntArray, IntArray],
    lo: IntArray,
    hi: IntArray,
) -> bool:
    """Whether bounds that were left out lie outside the windows of their variables' classes."""
    bounds, code = weights.unary, weights.code
    below, above = far  # none of them is composed, as all have a bound
    lower = (of[below] >= 0) & (lo[of[below]] >= bounds.lo[code[below]])
    upper = (of[above] >= 0) & (hi[of[above]] <= bounds.hi[code[above]])
    return bool(lower.all() and upper.all())


def _widen_until_certified(
    network: Network,
    place: Placement,
    limit: float,
    fits: Callable[[IntArray, IntArray], bool],
) -> Tables | None:
    """Fill tables in windows that are wide enough; None once windows do not fit."""
    # truncation need not cost much less than rounding
    wanted = max(_CUT, 0.1 * _least_rounding(network))
    generous = _FIRST if network.ctype.size <= _MANY_CLASSES else _FIRST_OF_MANY
    last = np.inf
    for _ in range(12):
        asked = min(placed(network.links) * wanted, 0.5)
        lo, hi = windows(network, place, cut=asked, generous=generous)
        if generous == _FIRST_OF_MANY and int((hi - lo + 1).sum()) > _room(network):
            generous = _FIRST  # which may be wide enough
            continue
        if not fits(lo, hi):
            return None
        tables, cut = _fill(network, place, (lo, hi), wanted)
        within = tables.error <= limit
        enough = max(20.0 * _CUT, (_SHARE_WITHIN if within else _SHARE) * tables.error)
        slow = 0.5 * last < cut
        # transforms limit it, not windows
        stalled = cut > last or (slow and within)
        if cut <= enough or stalled:
            if not within:
                raise NumericalError(
                    f"the exact sampler's rounding error is within {limit:g} only for "
                    "smaller trees or scales; use fewer queries or smaller noise scales."
                )
            return tables
        # a fifth wider, windows lose 100 to 1000 times less
        decades = elementwise.log10(max(cut / wanted, 1.0))
        generous, last = generous * elementwise.power(1.2, min(max(1.0, decades / 2.4), 3.0)), cut
    raise NumericalError(_MISSED)


def _room(network: Network) -> int:
    """Return the most entries of all tables."""
    return _MEMORY_LIMIT if network.room is None else network.room


def check_room(network: Network, entries: int) -> None:
    """Refuse with UnsupportedError if all tables together would have too many entries."""
    limit = _room(network)
    if entries > limit:
        raise UnsupportedError(
            f"the exact sampler needs {entries * 10 / 2**30:.1f} GiB of tables, and the limit is "
            f"{limit * 10 / 2**30:.1f} GiB; use smaller noise scales or fewer queries."
        )


def _least_rounding(network: Network) -> float:
    """Total variation that rounding costs with any windows, see `_fill`."""
    own = _WEIGHT_UNITS * network.variables + network.links
    return float((SUM_UNITS * network.choices + own) * _UNIT)


def _fill(
    network: Network,
    place: Placement,
    windows: tuple[IntArray, IntArray],
    wanted: float,
) -> tuple[Tables, float]:
    """Fill all tables; return them and the total variation lost to windows, `wanted` or so."""
    width = windows[1] - windows[0] + 1
    total = int(width.sum())
    check_room(network, total)
    filled = Messages.empty(*windows)
    errors = _fill_tables(network, filled)
    small = 0.01 * wanted / (network.choices + 1.0)
    cut = cut_off(network, filled, errors, place, small)
    # for each choice its `SUM_UNITS` and integers out of 2^61; for each variable its own weight
    # (weights.fill_unary), for each sum below it a product
    rounding = (width + 1.0) * 2.0**-61
    rounding[list(errors)] -= (SUM_UNITS - 1.0) * _UNIT  # the entries' error is in `cut`
    error = elementwise.dot(rounding, network.uses) + _least_rounding(network) + cut
    return Tables(**vars(filled), network=network, near=near_sums(network, place), error=error), cut


def near_sums(network: Network, place: Placement) -> Near:
    """Return where the left part of every merge lies, as `Tables` has it."""
    a, is_merge = network.left, network.ctype == MERGE
    share = np.where(is_merge, place.var[a] / np.maximum(place.var, 1e-12), 0.0)
    middle = np.where(is_merge, place.mean[a] - share * place.mean, 0.0)
    reach = _REACH * np.sqrt(np.minimum(share * (1.0 - share) * place.var, 1e12)) + 2.0
    return Near(middle, share, np.where(is_merge, reach, 0.0).astype(np.int64))


def plain_units(terms: IntArray) -> FloatArray:
    """Error of choices below uncompensated sums, by their number of terms, in units."""
    return np.asarray(4.0 + 2.0**-8 + (terms + 7) // 8)


def _fill_tables(network: Network, into: Messages) -> dict[int, FloatArray]:
    """Fill tables, factors and scales; return bounds on the errors of those of transforms."""
    lo, width, log_scale = into.lo, into.width, into.log_scale
    v, products = np.maximum(network.variable, 0), network.products(width)
    unary, errors = network.unary.at(v), dict[int, FloatArray]()
    wide = np.flatnonzero(products > np.maximum(DIRECT_LIMIT, NARROW * width))
    of_transforms = set(wide.tolist())
    law = TiltedWeights(unary.kind, unary.inverse, unary.center, network.tilt[v])
    plain = np.zeros(width.size, dtype=np.bool_)
    args = (network.classes, law, into.windows, into.table, into.factor, log_scale, plain)
    for begin, c in stretches(products, wide.astype(np.int64)):
        messages.fill(begin, c, *args)
        if c not in of_transforms:
            continue
        a, b = network.left[c], network.right[c]
        ta = into.of_class(a)
        tb = ta if b == a else into.of_class(b)
        out, off_by, top = convolve_wide(ta, tb, int(lo[c] - lo[a] - lo[b]), int(width[c]))
        into.of_class(c)[:] = out
        errors[c] = off_by * top
        into.factor[c] = top
        log_scale[c] = log_scale[a] + log_scale[b] + elementwise.log(top)
    return errors
