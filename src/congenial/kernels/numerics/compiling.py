"""How kernels are compiled: with nothing that takes compile time and that none of them needs."""

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

    Compiled kernels are kept on disk, but for inner ones, which are within those that call them;
    none is where numba finds no directory that it may write to.

    Every kernel is optimised with all that it calls, and once more within each that calls it. So
    one that is called at a single place and itself calls large ones has ``inline="always"``.

    Arrays are read and written entry by entry, so that there are no array expressions to rewrite;
    a division by zero gives what numpy gives. Where `fused`, a product that is added is rounded
    once with the sum if the machine can do so; where `reordered`, sums are made in whatever order
    is fastest, several entries at a time. What numba adds of its own is compiled anew for
    kernels of other options, of which there are few therefore.
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
