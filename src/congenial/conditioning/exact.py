"""Exact draws from a sum forest: tilt, place windows, fill tables, verify, draw."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from congenial.conditioning.forest import SumForest
from congenial.conditioning.network import Network, Unary, compile_network
from congenial.conditioning.wide import DIRECT_LIMIT, convolve_wide, cross_wide
from congenial.errors import InfeasibleError, NumericalError, UnsupportedError
from congenial.kernels import certify, descend, laws, messages, tilting
from congenial.kernels.messages import MERGE, PRODUCT, UNARY

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

# Every exact draw is within this total variation of its law, or refused.
ERROR_LIMIT = 1e-9
# Share of that spent on cutting tails and on transforms.
_CUT = 1e-12
_MEMORY_LIMIT = 1 << 30  # entries of all tables together
_UNIT = 2.0**-53


@dataclass(frozen=True, eq=False)
class Tables:
    """A network with its messages filled in and verified.

    Attributes
    ----------
    network : Network
    lo, hi, offset : ndarray of int64, shape (c,)
        Window of each class and where its table begins.
    table : ndarray of float64
        All tables, one after another.
    factor, log_scale : ndarray of float64, shape (c,)
    error : float
        Proven bound on the total variation between one draw and its law.
    """

    network: Network
    lo: IntArray
    hi: IntArray
    offset: IntArray
    table: FloatArray
    factor: FloatArray
    log_scale: FloatArray
    error: float

    def of_class(self, c: int) -> FloatArray:
        """Return the table of class `c`, a view."""
        start = self.offset[c]
        return self.table[start : start + self.hi[c] - self.lo[c] + 1]


def improper_ends(forest: SumForest, unary: Unary) -> tuple[bool, bool]:
    """Whether the weights cannot be normalised: (inside some sum, at some root)."""
    n = forest.n
    flat = unary.kind == laws.FLAT
    up = flat & np.isposinf(unary.hi)
    down = flat & np.isneginf(unary.lo)
    sum_up = np.zeros(forest.m, dtype=np.bool_)
    sum_down = np.zeros(forest.m, dtype=np.bool_)
    inside = at_root = False
    for i in forest.order:
        if i < n:
            k = forest.above[i]
            if k < 0:
                at_root |= bool(up[i] or down[i])
                continue
            inside |= bool((sum_up[k] and down[i]) or (sum_down[k] and up[i]))
            sum_up[k] |= up[i]
            sum_down[k] |= down[i]
        else:
            k = i - n
            v = forest.owner[k]
            if v >= 0:
                ends = (sum_up[k], sum_down[k])
                reach_up, reach_down = ends if forest.sign[k] > 0 else ends[::-1]
                up[v] &= bool(reach_up)
                down[v] &= bool(reach_down)
    return inside, at_root


def _tilts(forest: SumForest, unary: Unary) -> FloatArray:
    """Return multipliers of the constraints, rounded so that like families share them."""
    theta = np.zeros(forest.m)
    free = unary.lo < unary.hi
    centred = (unary.center == 0) & (unary.lo == -unary.hi)
    if forest.m == 0 or bool((centred | ~free).all()):
        return theta
    kind, scale = _stand_in(unary)
    args = (kind, scale, unary.center, unary.lo, unary.hi)
    shape = (forest.above, forest.owner, forest.sign)
    tilting.solve(*args, *shape, forest.order, theta, 60)
    tilt, log_z, mean, var = (np.empty(forest.n) for _ in range(4))
    tilting.node_tilts(*shape, theta, tilt)
    tilting.moments(*args, tilt, log_z, mean, var)
    spread = np.zeros(forest.m)
    np.add.at(spread, forest.above[forest.above >= 0], var[forest.above >= 0])
    grid = 2.0 ** np.floor(-0.5 * np.log2(np.maximum(spread, 1e-6)))
    for finer in (1.0, 0.125, 1 / 64):
        rounded = np.rint(theta / (grid * finer)) * (grid * finer)
        tilting.node_tilts(*shape, rounded, tilt)
        tilting.moments(*args, tilt, log_z, mean, var)
        if np.isfinite(log_z).all():
            return rounded
    return theta


def _stand_in(unary: Unary) -> tuple[IntArray, FloatArray]:
    """Replace flat weights by very wide Laplace ones, for placing windows only."""
    flat = unary.kind == laws.FLAT
    kind = np.where(flat, laws.LAPLACE, unary.kind)
    measured = unary.scale[~flat]
    wide = 32.0 * (float(measured.max()) if measured.size else 1.0) * np.sqrt(flat.size) + 32.0
    finite = np.where(np.isfinite(unary.lo) & np.isfinite(unary.hi), unary.hi - unary.lo, 0.0)
    return kind, np.where(flat, np.maximum(wide, finite), unary.scale)


@dataclass(frozen=True, eq=False)
class _Placement:
    """Support, decay and moments of every class, from which windows follow."""

    mean: FloatArray
    var: FloatArray
    support_lo: FloatArray
    support_hi: FloatArray
    rate_lo: FloatArray
    rate_hi: FloatArray


def _place(network: Network, unary: Unary, tilt: FloatArray) -> _Placement:
    kind, scale = _stand_in(unary)
    v = np.maximum(network.variable, 0)
    count = v.size
    own = [np.ascontiguousarray(c[v]) for c in (kind, scale, unary.center, unary.lo, unary.hi, tilt)]
    log_z, mean, var = (np.empty(count) for _ in range(3))
    tilting.moments(*own, log_z, mean, var)
    decay = np.where(unary.kind[v] == laws.LAPLACE, 1.0 / scale[v], 0.0)
    decay = np.where(unary.kind[v] == laws.GAUSSIAN, np.inf, decay)
    rate_lo, rate_hi = decay, decay.copy()
    support_lo, support_hi = own[3].copy(), own[4].copy()
    messages.propagate(
        network.ctype,
        network.left,
        network.right,
        network.sign,
        mean,
        var,
        support_lo,
        support_hi,
        rate_lo,
        rate_hi,
    )
    return _Placement(mean, var, support_lo, support_hi, rate_lo, rate_hi)


def prepare(forest: SumForest, unary: Unary) -> Tables:
    """Compile, place windows, fill and verify the messages of a forest.

    Raises
    ------
    InfeasibleError
        If no value satisfies all the constraints.
    UnsupportedError
        If the law is improper, or the tables would not fit in memory.
    NumericalError
        If the error bound cannot be met.
    """
    if any(improper_ends(forest, unary)):
        raise UnsupportedError(
            "the noise that is not measured is not held by any other measurement, so the "
            "conditional law does not exist; measure more queries or bound them."
        )
    theta = _tilts(forest, unary)
    tilt = np.empty(forest.n)
    tilting.node_tilts(forest.above, forest.owner, forest.sign, theta, tilt)
    reach = 64.0 * np.where(np.isfinite(unary.scale), unary.scale, np.inf) + 64.0
    for _ in range(24):
        clipped = Unary(
            unary.kind,
            unary.scale,
            unary.center,
            np.where(unary.center - unary.lo > reach, -np.inf, unary.lo),
            np.where(unary.hi - unary.center > reach, np.inf, unary.hi),
        )
        network = compile_network(forest, clipped, tilt)
        place = _place(network, clipped, tilt)
        tables = _widen_until_certified(network, clipped, tilt, place)
        # a bound left out as out of reach must lie outside every window
        at = network.slot_class[: forest.n]
        if (tables.lo[at] >= unary.lo).all() and (tables.hi[at] <= unary.hi).all():
            return tables
        reach = 4.0 * reach
    raise NumericalError("the bounds lie too far out; leave out those that cannot bind.")


def _widen_until_certified(
    network: Network, unary: Unary, tilt: FloatArray, place: _Placement
) -> Tables:
    generous, last = 1.1, np.inf
    for _ in range(12):
        lo, hi = _windows(network, place, generous)
        tables, cut = _fill(network, unary, tilt, place, lo, hi)
        stalled = 0.5 * last < cut < 0.5 * ERROR_LIMIT  # by transforms, not by windows
        if cut <= 10.0 * _CUT or stalled:
            if tables.error > ERROR_LIMIT:
                raise NumericalError(
                    f"the exact sampler's rounding error is within {ERROR_LIMIT:g} only for smaller "
                    "trees or scales; use fewer queries or smaller noise scales."
                )
            return tables
        generous, last = 1.2 * generous, cut
    raise NumericalError(
        "the messages of the exact sampler do not reach their error bound; "
        "use noise scales that differ less, or fewer queries without noise."
    )


def _windows(
    network: Network, place: _Placement, generous: float
) -> tuple[IntArray, IntArray]:
    """Place a window around the mean of each class, wide enough for its posterior tails."""
    count = network.ctype.size
    out_var = np.full(count, -1.0)
    out_lo, out_hi = np.full(count, np.inf), np.full(count, np.inf)
    out_var[network.fixed] = 0.0
    out_var[network.roots] = 1e30
    out_lo[network.roots] = out_hi[network.roots] = 0.0
    messages.surround(
        network.ctype,
        network.left,
        network.right,
        network.sign,
        place.var,
        place.rate_lo,
        place.rate_hi,
        out_var,
        out_lo,
        out_hi,
    )
    expo = np.log(4.0 * network.choices + 4.0) - np.log(_CUT)
    sd = np.sqrt(1.0 / (1.0 / np.maximum(place.var, 1e-9) + 1.0 / np.maximum(out_var, 1e-9)))
    gauss = np.sqrt(2.0 * expo) * sd
    below = expo / np.maximum(place.rate_lo + out_lo, 1e-12) + 3.0 * sd
    above = expo / np.maximum(place.rate_hi + out_hi, 1e-12) + 3.0 * sd
    lo = np.floor(place.mean - generous * np.hypot(below, gauss)) - 2.0
    hi = np.ceil(place.mean + generous * np.hypot(above, gauss)) + 2.0
    lo, hi = np.maximum(lo, place.support_lo), np.minimum(hi, place.support_hi)
    lo, hi = np.minimum(lo, place.support_hi), np.maximum(hi, place.support_lo)
    fixed = np.unique(network.fixed)
    if ((place.support_lo[fixed] > 0.0) | (place.support_hi[fixed] < 0.0)).any():
        raise InfeasibleError("a sum cannot take its mandated value within the bounds; relax one.")
    lo[fixed], hi[fixed] = np.minimum(lo[fixed], 0.0), np.maximum(hi[fixed], 0.0)
    shape = network.ctype, network.left, network.right, network.sign
    messages.cover(*shape, place.support_lo, place.support_hi, lo, hi)
    used = out_var >= 0.0
    return (
        np.where(used, lo, 1.0).astype(np.int64),
        np.where(used, hi, 0.0).astype(np.int64),
    )


def _fill(
    network: Network, unary: Unary, tilt: FloatArray, place: _Placement, lo: IntArray, hi: IntArray
) -> tuple[Tables, float]:
    """Fill all tables; return them and the total variation lost to windows."""
    width = hi - lo + 1
    total = int(width.sum())
    if total > _MEMORY_LIMIT:
        raise UnsupportedError(
            f"the exact sampler would need {total * 8 / 2**30:.0f} GiB of tables; "
            "use smaller noise scales or fewer queries."
        )
    offset = np.concatenate(([0], np.cumsum(width)))[:-1]
    v = np.maximum(network.variable, 0)
    gaussian = unary.kind[v] == laws.GAUSSIAN
    inverse = np.where(gaussian, 0.5 / unary.scale[v] ** 2, 1.0 / unary.scale[v])
    count = network.ctype.size
    table, lost = np.empty(total), np.zeros(total)
    factor, log_scale = np.ones(count), np.zeros(count)
    is_merge = network.ctype == MERGE
    left_width, right_width = width[network.left] * is_merge, width[network.right] * is_merge
    wide = np.flatnonzero(left_width * right_width > DIRECT_LIMIT)
    args = (
        network.ctype,
        network.left,
        network.right,
        network.sign,
        unary.kind[v],
        inverse,
        unary.center[v],
        tilt[v],
        lo,
        hi,
        offset,
        table,
        factor,
        log_scale,
    )
    begin = 0
    for c in wide.tolist():
        messages.fill(begin, c, *args)
        begin = c + 1
        a, b = network.left[c], network.right[c]
        ta = table[offset[a] : offset[a] + width[a]]
        tb = table[offset[b] : offset[b] + width[b]]
        out, off_by, top = convolve_wide(ta, tb, int(lo[c] - lo[a] - lo[b]), int(width[c]))
        table[offset[c] : offset[c] + width[c]] = out
        lost[offset[c] : offset[c] + width[c]] = off_by * top
        factor[c] = top
        log_scale[c] = log_scale[a] + log_scale[b] + np.log(top)
    messages.fill(begin, count, *args)
    cut = _cut_off(network, lo, hi, place, offset, table, factor, lost, wide)
    terms = np.minimum(left_width, right_width)
    rounding = (2.0 * (2.0 * np.sqrt(terms) + 3.0) + 24.0) * _UNIT + width * 2.0**-62
    rounding[wide] = width[wide] * 2.0**-62  # their error is in `lost`
    spent = network.cls[network.op != descend.LINK]
    products = int((network.ctype[network.slot_class] == PRODUCT).sum())
    error = cut + float(rounding[spent].sum()) + 8.0 * _UNIT * (network.slots + products)
    return Tables(network, lo, hi, offset, table, factor, log_scale, error), cut


def _cut_off(
    network: Network,
    lo: IntArray,
    hi: IntArray,
    place: _Placement,
    offset: IntArray,
    table: FloatArray,
    factor: FloatArray,
    lost: FloatArray,
    wide: IntArray,
) -> float:
    """Bound the probability that the windows cut off."""
    tails = np.zeros((lo.size, 4))
    crossed = np.zeros(lo.size, dtype=np.bool_)
    crossed[wide] = True
    shape = (network.ctype, network.left, network.right, network.sign)
    support = place.support_lo, place.support_hi
    args = (*shape, lo, hi, *support, offset, table, factor, crossed, lost, tails)
    stop = offset + hi - lo + 1
    begin = 0
    for c in wide.tolist():
        certify.certify(begin, c, *args)
        begin = c
        a, b = (slice(offset[part], stop[part]) for part in (network.left[c], network.right[c]))
        first = int(lo[c] - lo[network.left[c]] - lo[network.right[c]])
        lost[offset[c] : stop[c]] += cross_wide(
            table[a], table[b], lost[a], lost[b], first, int(hi[c] - lo[c] + 1)
        )
    certify.certify(begin, lo.size, *args)
    cut = 0.0
    for c in network.roots:
        here = slice(offset[c], offset[c] + hi[c] - lo[c] + 1)
        cut += certify.root_loss(table[here], lost[here], tails[c])
    at = offset[network.fixed] - lo[network.fixed]
    return cut + float((lost[at] / (table[at] + lost[at])).sum())


def log_sum(tables: Tables) -> float:
    """Log of the summed product of all unary weights (each 1 at its mode)."""
    total = 0.0
    network = tables.network
    for c in network.roots:
        total += float(tables.log_scale[c]) + float(np.log(tables.of_class(c).sum()))
    for c in network.fixed:
        at = tables.of_class(c)[-tables.lo[c]]
        if at <= 0.0:
            raise InfeasibleError("a sum cannot take its mandated value within the bounds; relax one.")
        total += float(tables.log_scale[c]) + float(np.log(at))
    return total


def draw(tables: Tables, words: npt.NDArray[np.uint64], n: int) -> IntArray:
    """Draw one vector a row of `words`, shape (rows, choices); returns int64 (rows, n)."""
    network = tables.network
    values = np.zeros((words.shape[0], network.slots), dtype=np.int64)
    descend.draw(
        network.op,
        network.first,
        network.second,
        network.third,
        network.cls,
        network.left,
        network.right,
        tables.lo,
        tables.hi,
        tables.offset,
        tables.table,
        tables.factor,
        words,
        values,
    )
    return values[:, :n]
