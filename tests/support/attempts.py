"""Probabilities of attempts at draws from envelopes, and weights of what is drawn, in decimals."""

from __future__ import annotations

import math
from decimal import Decimal

import numpy as np

from congenial.kernels.network import descend
from congenial.kernels.numerics import laws
from congenial.sum_network.exact import rare_draws


def probability(of, values, rare):
    """Probability that one attempt makes these choices and is accepted."""
    out = rare_draws.share(of, values, rare)(1)[0]
    for i, *key in rare_draws._choices(of, values):
        if i in rare:
            out *= rare_draws.chance(rare[i])
        elif len(key) == 2:
            c, s = key
            row, k = rare_draws._row(of, c), s - int(of.lo[c])
            out *= Decimal(int(row[k] - (row[k - 1] if k else 0))) / (1 << 62)
        else:
            c, s, left = key
            out *= Decimal(int(rare_draws._weights(of, c, s, left, left)[0])) / (1 << 62)
    return out


def weight(of, values, drawn, left_out):
    """Weight of the values of a draw but some; runs of like variables count with their totals."""
    network, unary = of.network, of.weights.each
    left_out, out = {*network.members.tolist(), *left_out}, Decimal(1)
    for v, u in enumerate(drawn.tolist()):
        if v in left_out or unary.kind[v] == laws.FLAT:
            continue
        scale = Decimal(float(unary.scale[v]))
        normal = unary.kind[v] == laws.GAUSSIAN
        out *= (-u * u / (2 * scale * scale) if normal else -abs(u) / scale).exp()
    for i in np.flatnonzero(network.op == descend.COMPOSE).tolist():
        first, second, _, size = (int(column[i]) for column in network.program[1:])
        own = [slot for slot in (first, second) if slot >= 0]
        v = int(network.variable[network.slot_class[own[0]]])
        flat = not math.isfinite(network.unary.scale[v])
        inverse = Decimal(0) if flat else 1 / Decimal(float(network.unary.scale[v]))
        for slot in own:
            total = abs(int(values[slot]))
            out *= math.comb(total + size - 1, total) * (-inverse * total).exp()
        if len(own) == 2:
            # the differences u of pairs have exp(-abs(u) / scale) over 1 - exp(-2 / scale)
            out *= (1 - (-2 * inverse).exp()) ** size
    return out
