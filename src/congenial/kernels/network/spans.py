"""Half-widths of windows, from the joint tails of sums and of their messages from outside."""

from __future__ import annotations

import numpy as np

from congenial.kernels.numerics import elementary
from congenial.kernels.numerics.compiling import njit


@njit(inner=True)
def _rate_function(x, var, rate):
    """Return (I(x), I'(x)) of a law with this variance whose log tail falls by `rate` per step.

    I is the rate function of a sum of Laplace variables, log E exp(t X) =
    -(var rate^2 / 2) log(1 - t^2 / rate^2). If `rate` is far above 1 / sd, the law is nearly
    Gaussian.
    """
    if var <= 0.0:
        return np.inf, np.inf
    if rate <= 0.0:
        return 0.0, 0.0
    if rate > 1e6 / np.sqrt(var) or x < 1e-3 * var * rate:
        return 0.5 * x * x / var, x / var
    half = 0.5 * var * rate
    whole = half + np.sqrt(half * half + x * x)
    t = rate * x / whole
    return x * t + half * rate * elementary.log(2.0 * half / whole), t


@njit(inner=True)
def joint_rate(var, rate, other_var, other_rate, nats):
    """Return the decay of a product of two laws at the depth `nats` below its mode.

    It is the rate for which the law of `_rate_function`, with the product's variance, has the
    product's slope at that point.
    """
    if var <= 0.0 or other_var <= 0.0 or other_var >= 1e29:
        return rate + other_rate
    v = 1.0 / (1.0 / var + 1.0 / other_var)
    x = np.sqrt(2.0 * nats * v) + nats / max(rate + other_rate, 1e-9)
    slope = 0.0
    for _ in range(4):
        one, one_slope = _rate_function(x, var, rate)
        two, two_slope = _rate_function(x, other_var, other_rate)
        slope = one_slope + two_slope
        if not 0.0 < slope < np.inf:
            return slope
        x = max(x - (one + two - nats) / slope, 0.1 * x)
    room = x - v * slope
    return slope * np.sqrt(x / room) if room > 1e-3 * x else np.inf


@njit()
def spans(var, rate, out_var, out_rate, ahead, nats, out):
    """Fill `out` with the distance above the mean at which a value is `nats` below the mode.

    `var` and `rate` belong to each class's own message, `out_var` and `out_rate` to the message
    from the rest of the network. The mean of their product exceeds the mean of the class's own
    message by `ahead`. All are float64 (c,).
    """
    for c in range(var.size):
        if var[c] <= 0.0 or out_var[c] <= 0.0:
            out[c] = 0.0
            continue
        first, second = ahead[c], -ahead[c] * out_var[c] / var[c]
        own, slope = _rate_function(abs(first), var[c], rate[c])
        base = nats[c] + own
        if out_var[c] < 1e29:
            own, slope = _rate_function(abs(second), out_var[c], out_rate[c])
            base += own
        v = 1.0 / (1.0 / var[c] + 1.0 / out_var[c])
        x = np.sqrt(2.0 * nats[c] * v) + nats[c] / max(rate[c] + out_rate[c], 1e-9) + abs(first)
        for _ in range(20):
            own, slope = _rate_function(max(x + first, 1e-3), var[c], rate[c])
            rest = rest_slope = 0.0
            if out_var[c] < 1e29:
                y = max(x + second, 1e-3)
                rest, rest_slope = _rate_function(y, out_var[c], out_rate[c])
            step = (own + rest - base) / max(slope + rest_slope, 1e-12)
            step = max(step, -2.0 * x)
            x -= step
            if abs(step) < 0.5 + 1e-2 * x:
                break
        out[c] = x
