"""Small tables with margins, and their queries worked out one by one."""

from __future__ import annotations

import itertools

import numpy as np

import congenial as cg

TWO = cg.Tree.from_paths([("north", "a"), ("north", "b"), ("south", "c")])
PAIR = cg.Tree.from_paths([("town", "a"), ("town", "b")])
AGES = {"minor": ["0"], "adult": ["1", "2"]}


def masks(workload) -> np.ndarray:
    """Which cells each entry counts, shape (n, cells), by names and loops alone."""
    columns = [
        (table.name, area, labels)
        for table in workload.tables
        for area in range(table.areas)
        for at, labels in enumerate(itertools.product(*map(list, table.axes.values())))
        if table.possible[area, at]
    ]
    found = []
    for block in workload.blocks:
        table = block.table
        readings = []
        for name in block.margin:
            if name in table.axes:
                axis, parts = name, {value: [value] for value in table.axes[name]}
            else:
                axis, parts = table.groups[name]
            readings.append((list(table.axes).index(axis), parts))
        for node in table.nodes(block.level):
            for chosen in itertools.product(*(parts for _, parts in readings)):
                row = [
                    name == table.name
                    and _below(table, area, node)
                    and all(
                        labels[axis] in parts[label]
                        for (axis, parts), label in zip(readings, chosen, strict=True)
                    )
                    for name, area, labels in columns
                ]
                if any(row):
                    found.append(row)
    return np.array(found)


def _below(table, area, node) -> bool:
    if table.geography is None:
        return True
    at = int(table.geography.leaves[area])
    while at >= 0 and at != node:
        at = int(table.geography.parents[at])
    return at == node


def rows_of(workload) -> np.ndarray:
    """One row an entry that is no single cell: the entry less its cells."""
    each = masks(workload)
    cells = workload.cells
    rows = []
    for entry in np.setdiff1d(np.arange(len(workload)), cells):
        row = np.zeros(len(workload), dtype=np.int64)
        row[entry] = 1
        row[cells[each[entry]]] = -1
        rows.append(row)
    return np.array(rows, dtype=np.int64).reshape(-1, len(workload))


def counts(table, rng, most=4) -> np.ndarray:
    """Random counts, none in an impossible cell."""
    drawn = rng.integers(0, most, table.shape)
    return np.where(table.possible.reshape(table.shape), drawn, 0)
