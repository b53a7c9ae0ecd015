"""Workloads whose margins cross."""

from __future__ import annotations

import congenial as cg


def crossing(*sizes, impossible=None):
    """Return all one-way margins of a table and its total."""
    axes = {f"axis{i}": [f"v{j}" for j in range(size)] for i, size in enumerate(sizes)}
    table = cg.Table(axes, impossible=impossible)
    return cg.Workload.of(table, [(), *((axis,) for axis in axes)])
