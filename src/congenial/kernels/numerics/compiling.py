"""Compilation of kernels, without the compiler passes that take time and that no kernel needs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba

_LIBERTIES: dict[tuple[bool, bool], bool | set[str]] = {
    (False, False): False,
    (False, True): {"contract"},
    (True, False): {"reassoc", "nsz"},
    (True, True): {"reassoc", "nsz", "contract"},
}


def njit(
    *, inline: str = "never", inner: bool = False, fused: bool = False, reordered: bool = False
) -> Callable[..., Any]:
    """Return the decorator of a kernel; `inner` where only kernels call it.

    Compiled kernels are cached on disk, if numba finds a directory that it may write to. Inner
    kernels are not cached: they are compiled into their callers.

    Every kernel is optimised together with all that it calls, and again within each caller. So a
    kernel that has one caller and calls large kernels itself has ``inline="always"``.

    Arrays are read and written entry by entry, so there are no array expressions to rewrite.
    Division by zero gives the same as in numpy. With `fused`, a product and a sum may be rounded
    once together. With `reordered`, sums may be added in any order, several entries at a time.
    numba compiles its own helpers again for each set of options, so there are few sets.
    """
    options = {
        "nogil": True,
        "inline": inline,
        "error_model": "numpy",
        "fastmath": _LIBERTIES[reordered, fused],
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
