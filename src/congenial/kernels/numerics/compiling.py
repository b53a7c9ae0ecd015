"""Compilation of kernels, without the compiler passes that take time and that no kernel needs."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numba
from llvmlite import ir
from numba.core import config, types
from numba.extending import intrinsic


def njit(
    *, inline: str = "never", inner: bool = False, reordered: bool = False
) -> Callable[..., Any]:
    """Return the decorator of a kernel; `inner` where only kernels call it.

    Compiled kernels are cached on disk, if numba finds a directory that it may write to. Inner
    kernels are not cached: they are compiled into their callers.

    Every kernel is optimised together with all that it calls, and again within each caller. So a
    kernel that has one caller and calls large kernels itself has ``inline="always"``.

    Arrays are read and written entry by entry, so there are no array expressions to rewrite.
    Division by zero gives the same as in numpy. Each operation is rounded as it is written, so that
    all processors compute the same bits. With `reordered`, sums may be added in any order, several
    entries at a time; loops that a random draw depends on never have it.
    """
    options = {
        "nogil": True,
        "inline": inline,
        "error_model": "numpy",
        "fastmath": {"reassoc", "nsz"} if reordered else False,
        "no_rewrites": True,
        "no_cfunc_wrapper": True,
        "no_cpython_wrapper": inner,
    }

    def decorate(kernel: Callable[..., Any]) -> Any:
        try:
            return numba.njit(cache=not inner, **options)(kernel)
        except RuntimeError:  # site-packages and the home directory are both read-only
            return numba.njit(**options)(kernel)

    return decorate


@intrinsic
def _fused(_: Any, x: Any, y: Any, z: Any) -> Any:  # noqa: ARG001
    def build(_: Any, builder: ir.IRBuilder, __: Any, numbers: tuple[ir.Value, ...]) -> ir.Value:
        return builder.fma(*numbers)

    return types.float64(types.float64, types.float64, types.float64), build


def _fused_in_python(x: float, y: float, z: float) -> float:
    if not (math.isfinite(x) and math.isfinite(y) and math.isfinite(z)):
        return x * y + z
    exact = Fraction(float(x)) * Fraction(float(y)) + Fraction(float(z))
    try:
        return float(exact) if exact else x * y + z
    except OverflowError:
        return math.copysign(math.inf, exact)


# Returns x * y + z, rounded once. Processors without such an operation take a slower way, and so
# does Python if nothing is compiled.
fused = _fused_in_python if config.DISABLE_JIT else _fused
