"""Products of spectra, real and imaginary parts in turn.

Benchmark rows: `wide`, `bounded`. Real and imaginary parts are multiplied apart, since complex
products of numpy have other bits on other processors.
"""

from __future__ import annotations

import math

from congenial.kernels.numerics.compiling import njit


@njit(inner=True)
def products(a, b, stop, out):
    """Fill `out` with the products of the first `stop` complex numbers of `a` and of `b`."""
    for k in range(stop):
        x, y, u, v = a[2 * k], a[2 * k + 1], b[2 * k], b[2 * k + 1]
        out[2 * k], out[2 * k + 1] = x * u - y * v, x * v + y * u


@njit()
def multiply(a, b):
    """Multiply the complex numbers of `a` by those of `b`, and return the sum of their sizes.

    Both have twice as many entries as numbers; they may be the same array.
    """
    products(a, b, a.size // 2, a)
    total = 0.0
    for k in range(a.size // 2):
        total += math.sqrt(a[2 * k] * a[2 * k] + a[2 * k + 1] * a[2 * k + 1])
    return total
