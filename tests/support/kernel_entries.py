"""Entries from Python for kernels that only kernels call."""

from __future__ import annotations

import importlib

import numba


def entry(name: str):
    """Return a function that calls a kernel, named as `module.kernel`."""
    module, _, kernel = name.rpartition(".")
    called = getattr(importlib.import_module(f"congenial.kernels.{module}"), kernel)

    @numba.njit
    def call(*args):
        return called(*args)

    return call
