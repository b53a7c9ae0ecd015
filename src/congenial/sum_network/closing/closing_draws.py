"""Draws that leave closers out, and accept what they must then be by its weight.

The free variables are drawn from the forest that remains. Closers follow from them. A closer alone
is accepted by its weight, and one with sums below it by the envelope of its tree, over the largest
value. Trees are then drawn given their closers. Proof: `proofs/closing-draws.md`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from decimal import Decimal
from functools import partial
from typing import NamedTuple

import numpy as np

from congenial.errors import NumericalError
from congenial.kernels.numerics import elementwise, laws
from congenial.randomness import (
    Enclosure,
    Probability,
    Randomness,
    around,
    is_below,
    precision,
    product,
    seeded,
)
from congenial.sum_network import compile as compiled
from congenial.sum_network import exact
from congenial.sum_network.ceiling import interior_tilts, sum_rows
from congenial.sum_network.closing.closers import Closing, ClosingPart, sums_of_forest
from congenial.sum_network.cutset.branches import log_weight
from congenial.sum_network.exact import Envelopes, fill_envelopes, rare_draws
from congenial.sum_network.exact.envelopes import (
    AIM,
    fill_in_windows,
    fill_tilted,
    in_steps,
    unchanged,
)
from congenial.sum_network.network import Network
from congenial.sum_network.weights import SharedUnary, Unary
from congenial.types import BoolArray, FloatArray, IntArray

# Part by which computed shares are off, at most.
_OFF = 2.0**-40
_LEAST = 2.0**-100
# Most values of attempts that are made at once, and most that one draw may take.
_VALUES, MOST_VALUES = 1 << 22, 1 << 34
# Attempts from which the share that is accepted is estimated.
_TRIED = 4_096
_SEED = 20_261_128


@dataclass(frozen=True, eq=False)
class ClosingDraws:
    """Envelopes of connected sums: of the free variables, and of the trees of closers."""

    closing: Closing
    free: Envelopes
    weights: Unary  # Of all closers.
    trees: Mapping[int, Envelopes]  # Of the closers with sums below them, by number.
    # shape (like, k): The variables of this and of all other connected sums that are like it.
    variables: IntArray

    @property
    def size(self) -> int:
        """Number of variables of one of them."""
        return int(self.variables.shape[1])


def prepare(closings: Sequence[Closing], weights: SharedUnary) -> list[ClosingDraws]:
    """Fill envelopes for weights of all variables, in the system's own signs.

    Connected sums with like weights share their envelopes. Raises InfeasibleError, UnsupportedError
    and NumericalError as `exact.fill_envelopes` does.
    """
    like = dict[tuple[bytes, ...], list[Closing]]()
    for one in closings:
        like.setdefault(_key(one, weights), []).append(one)
    return [_filled(every, weights) for every in like.values()]


def _key(closing: Closing, weights: SharedUnary) -> tuple[bytes, ...]:
    """Return what tells connected sums with other envelopes apart."""
    forests = [part.forest for part in (closing.free, *closing.trees)]
    arrays = [array for of in forests for array in (of.above, of.owner, of.sign, of.orientation)]
    return tuple(
        array.tobytes() for array in (closing.multiples, weights.code[closing.variables], *arrays)
    )


def _filled(like: Sequence[Closing], weights: SharedUnary) -> ClosingDraws:
    closing = like[0]
    parts = (closing.free, *closing.trees)
    turned = [_turned(part, weights) for part in parts]
    tilts = _tilts(closing, turned)
    trees = {
        number: _envelopes(part, turned[number], None if tilts is None else tilts[number])
        for number, part in enumerate(parts)
        if part.forest.m or not number
    }
    free = trees.pop(0)
    closers = weights.at(closing.closers).each
    variables = np.array([one.variables for one in like])
    of_closers = {number - 1: tree for number, tree in trees.items()}
    return ClosingDraws(closing, free, closers, of_closers, variables)


def _envelopes(part: ClosingPart, weights: SharedUnary, tilts: _Tilts | None) -> Envelopes:
    """Fill the envelopes of a part; those of a tree come with its closer's message."""

    def sending(network: Network) -> Network:
        return replace(network, sent=network.slot_class[:1])

    of = compiled(part.forest, weights, whole=part.closer or tilts is not None)
    adapt = sending if part.closer else unchanged
    if tilts is not None:
        return fill_in_windows(of.forest, of.weights, tilts.sums, AIM, adapt, tilts.own)
    if part.closer:
        return fill_tilted(of.forest, of.weights, of.theta, adapt=adapt)
    return fill_envelopes(of, direct=False)


class _Tilts(NamedTuple):
    """Multipliers of the sums of a part, and further tilts of its variables that own sums."""

    sums: FloatArray
    own: FloatArray


def _tilts(closing: Closing, turned: Sequence[SharedUnary]) -> list[_Tilts] | None:
    """Return the tilts of each part; None without bounds, or where variables own no sums.

    A closer is tilted, and the free variables that it follows from against it, so that sums of
    bounded counts do not carry them apart. The tilts cancel.
    """
    parts = (closing.free, *closing.trees)
    every = [weights.each for weights in turned]
    bounded = any(np.isfinite(each.lo).any() or np.isfinite(each.hi).any() for each in every)
    begins = np.cumsum([0, *(part.variables.size for part in parts)])
    if not (bounded and closing.trees and closing.owns_sums):
        return None
    sums = [
        {int(begin) + v: a for v, a in row.items()}
        for part, begin in zip(parts, begins, strict=False)
        for row in sums_of_forest(part.forest)
    ]
    multiples = closing.multiples * closing.free.forest.orientation  # in the forest's signs
    for begin, row in zip(begins[1:], multiples, strict=False):
        sums.append({int(begin): 1} | {v: -int(row[v]) for v in np.flatnonzero(row).tolist()})
    rows = sum_rows(sums, int(begins[-1]))
    if rows is None:
        return None
    *_, theta = interior_tilts(
        rows, Unary(*map(np.concatenate, zip(*map(astuple, every), strict=True)))
    )
    # in steps of which all sums of multipliers are exact: none exceeds the last entry
    largest = float(np.abs(theta).sum()) * max(1.0, float(np.abs(multiples).max()))
    theta = in_steps(np.append(theta, largest))[:-1]
    *of_sums, tilt = np.split(theta, np.cumsum([part.forest.m for part in parts]))
    own = [-(tilt @ multiples), *(np.zeros(tree.variables.size) for tree in closing.trees)]
    for at, theta_of in zip(own[1:], tilt.tolist(), strict=True):
        at[0] = theta_of
    return [_Tilts(*each) for each in zip(of_sums, own, strict=True)]


def _turned(part: ClosingPart, weights: SharedUnary) -> SharedUnary:
    """Return the weights of a part in the signs of its forest."""
    mine = weights.at(part.variables)
    if not part.forest.turned:
        return mine
    negative = part.forest.orientation < 0
    unary, half = mine.unary, mine.unary.kind.size
    both = replace(
        unary,
        kind=np.tile(unary.kind, 2),
        scale=np.tile(unary.scale, 2),
        center=np.append(unary.center, -unary.center),
        lo=np.append(unary.lo, -unary.hi),
        hi=np.append(unary.hi, -unary.lo),
    )
    return SharedUnary(both, (mine.code + half * negative).astype(np.int32))


def height(tree: Envelopes) -> float:
    """Return at least the largest value of the envelope of a closer."""
    c = int(tree.network.slot_class[0])
    below, falling, above, rising = tree.tails[c].tolist()
    most = max(float(tree.of_class(c).max()), below * falling, above * rising)
    return float(most * (1.0 + 2.0**-50))


def mass(of: Sequence[ClosingDraws]) -> Probability:
    """Return the mass of all envelopes, which encloses it at each level; it may exceed 1.

    An attempt leads to values, and is accepted, with the product of their weights over the mass.
    Weights are 1 at noise 0.
    """
    masses = list[Probability]()
    for one in of:
        every = exact.mass(one.free), *map(exact.mass, one.trees.values())
        masses += [*every, partial(_peaks, one)] * one.variables.shape[0]
    return product(masses)


def _peaks(of: ClosingDraws, level: int) -> Enclosure:
    """Return the product of the largest values of the envelopes of closers."""
    with precision(level):
        out = Decimal(1)
        for tree in of.trees.values():
            out *= Decimal(height(tree))
        return around(out, level)


def sample(of: Sequence[ClosingDraws], size: int, rows: int, rng: Randomness) -> IntArray:
    """Draw all variables `rows` times, independently; returns int64 (rows, size).

    Variables that no closing has are 0. Raises NumericalError if hardly any attempt is accepted.
    """
    out = np.zeros((rows, size), dtype=np.int64)
    for one in of:
        drawn = _sample(one, rows * one.variables.shape[0], rng)
        out[:, one.variables] = drawn.reshape(rows, *one.variables.shape)
    return out


def _sample(of: ClosingDraws, rows: int, rng: Randomness) -> IntArray:
    """Draw the variables of connected sums; returns int64 (rows, k)."""
    out, done, made = np.empty((rows, of.size), dtype=np.int64), 0, 0
    at_once = max(rows, 1)
    while done < rows:
        if made * of.size > MOST_VALUES:
            raise NumericalError(
                f"none of {made:,} attempts at a draw was accepted; leave out bounds that many "
                "counts reach, fix fewer crossing sums, or use imaging."
            )
        at_once = min(at_once, max(_VALUES // of.size, 1))
        accepted, drawn = _attempt(of, at_once, rng)
        made = 0 if accepted.any() else made + at_once
        drawn = drawn[: rows - done]
        out[done : done + drawn.shape[0]] = drawn
        done += drawn.shape[0]
        at_once *= 2
    return out


def attempt(
    of: Sequence[ClosingDraws], size: int, rows: int, rng: Randomness
) -> tuple[BoolArray, IntArray]:
    """Try once to draw all variables, `rows` times.

    Returns which attempts are accepted, shape (rows,), and their variables, (accepted, size).
    """
    accepted, out = np.ones(rows, dtype=np.bool_), np.zeros((rows, size), dtype=np.int64)
    every = [(draws, variables) for draws in of for variables in draws.variables]
    for draws, variables in every:
        kept, drawn = _attempt(draws, out.shape[0], rng)
        accepted[accepted], out = kept, out[kept]
        out[:, variables] = drawn
    return accepted, out


def _attempt(of: ClosingDraws, rows: int, rng: Randomness) -> tuple[BoolArray, IntArray]:
    """Try once to draw the variables of connected sums, `rows` times; see `attempt`."""
    accepted, values, closers = _free(of, rows, rng)
    kept = _kept(of, closers, rng)
    accepted[accepted], drawn, closers = kept, [values[kept]], closers[kept]
    for number, part in enumerate(of.closing.trees):
        given = np.ascontiguousarray(closers[:, number])
        if number not in of.trees:
            drawn.append(given[:, None])
            continue
        tree, m = of.trees[number], part.forest.n
        kept, below = exact.attempt(tree, given.size, rng, first=m, roots=given)
        accepted[accepted], closers = kept, closers[kept]
        drawn = [*(each[kept] for each in drawn), below * part.forest.orientation]
    return accepted, np.concatenate(drawn, axis=1)


def share_accepted(of: ClosingDraws) -> float:
    """Estimate the share of attempts whose closers are accepted, from a few of them."""
    rows = min(_TRIED, max(_VALUES // of.size, 64))
    _, _, closers = _free(of, rows, seeded(_SEED))
    return float(_shares(of, closers).mean())


def _free(of: ClosingDraws, rows: int, rng: Randomness) -> tuple[BoolArray, IntArray, IntArray]:
    """Try to draw the free variables; return which attempts are accepted, these, and closers."""
    closing = of.closing
    forest, multiples = closing.free.forest, closing.multiples
    accepted, values = exact.attempt(of.free, rows, rng, first=forest.n)
    if forest.turned:
        values = values * forest.orientation
    used = np.flatnonzero(multiples.any(axis=0))
    return accepted, values, values[:, used] @ multiples[:, used].T


def _kept(of: ClosingDraws, closers: IntArray, rng: Randomness) -> BoolArray:
    """Decide which closers, shape (rows, c), are accepted."""
    if not closers.shape[1]:
        return np.ones(closers.shape[0], dtype=np.bool_)
    words = rng.bits(closers.shape[0])
    share, u = _shares(of, closers), words * 2.0**-64
    kept = u + 2.0**-64 <= share * (1.0 - _OFF)
    # shares beyond the reach of doubles are not 0
    refused = (u >= np.maximum(share, _LEAST) * (1.0 + _OFF)) | ~_possible(of, closers)
    for row in np.flatnonzero(~kept & ~refused).tolist():
        kept[row] = is_below(int(words[row]), share_of(of, closers[row]), rng)
    return np.asarray(kept)


def _possible(of: ClosingDraws, closers: IntArray) -> BoolArray:
    """Return which closers lie within their bounds."""
    inside = (closers >= of.weights.lo) & (closers <= of.weights.hi)
    return np.asarray(inside.all(axis=1))


def _shares(of: ClosingDraws, closers: IntArray) -> FloatArray:
    """Return by how much closers, shape (rows, c), are accepted, in doubles."""
    out = _possible(of, closers).astype(np.float64)
    for number, x in enumerate(closers.T):
        tree = of.trees.get(number)
        if tree is None:
            one = of.weights.at(np.array([number]))
            out *= elementwise.exp(
                log_weight(int(one.kind[0]), float(one.scale[0]), x - one.center[0])
            )
            continue
        c = int(tree.network.slot_class[0])
        table, lo, hi = tree.of_class(c), int(tree.lo[c]), int(tree.hi[c])
        below, falling, above, rising = tree.tails[c].tolist()
        inside = table[np.clip(x - lo, 0, hi - lo)]
        steps = np.maximum(np.maximum(lo - x, x - hi), 0)
        tail = np.where(
            x < lo,
            below * elementwise.power(falling, steps),
            above * elementwise.power(rising, steps),
        )
        out *= np.where(steps > 0, tail, inside) / height(tree)
    return out


def share_of(of: ClosingDraws, closers: IntArray) -> Probability:
    """Return the probability with which closers within their bounds, shape (c,), are accepted."""

    def probability(level: int) -> Enclosure:
        with precision(level):
            out = Decimal(1)
            for number, x in enumerate(closers.tolist()):
                tree = of.trees.get(number)
                if tree is not None:
                    c = int(tree.network.slot_class[0])
                    out *= rare_draws.value(tree, c, x) / Decimal(height(tree))
                    continue
                kind, width = of.weights.kind[number], Decimal(float(of.weights.scale[number]))
                u = abs(x - int(of.weights.center[number]))
                if kind != laws.FLAT:
                    square = u * u / (2 * width * width)
                    out *= (-square if kind == laws.GAUSSIAN else -u / width).exp()
            return around(out, level)

    return probability
