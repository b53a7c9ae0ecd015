"""How kernels are compiled: with nothing that takes compile time and that none of them needs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba


def njit(*, nogil: bool = False, inline: str = "never", inner: bool = False) -> Callable[..., Any]:
    """Return the decorator of a kernel, kept on disk; `inner` where only kernels call it.

    Arrays are read and written entry by entry, so that there are no array expressions to rewrite;
    a division by zero gives what numpy gives.
    """
    return numba.njit(
        cache=True,
        nogil=nogil,
        inline=inline,
        error_model="numpy",
        no_rewrites=True,
        no_cfunc_wrapper=True,
        no_cpython_wrapper=inner,
    )
