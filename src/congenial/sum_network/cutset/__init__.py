"""Sums with a few cycles: hold a cut set, enumerate its values, use the forest left.

`cut_cost` chooses the cut set, `weigh` sums over its values, `sample` draws, and `joint_law`
answers. Where there are too many values, `choose_blocks` and `compile_sweeps` make chains.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from congenial.sum_network.cutset.assignments import (
        Assignments,
        CutCost,
        cut_cost,
        forest_left,
        free_variables,
        sample,
        too_costly,
        weigh,
    )
    from congenial.sum_network.cutset.boxes import check_proper_rows, summable
    from congenial.sum_network.cutset.joint import joint_law
    from congenial.sum_network.cutset.lattice import Lattice, lattice_of
    from congenial.sum_network.cutset.sweeps import (
        Blocks,
        Sweeps,
        affordable,
        choose_blocks,
        compile_sweeps,
        place_windows,
        sweep_cost,
    )
    from congenial.sum_network.cutset.systems import SumSystem, sum_system, sums_of

_HOME = {
    "Assignments": "sum_network.cutset.assignments",
    "Blocks": "sum_network.cutset.sweeps",
    "CutCost": "sum_network.cutset.assignments",
    "Lattice": "sum_network.cutset.lattice",
    "SumSystem": "sum_network.cutset.systems",
    "Sweeps": "sum_network.cutset.sweeps",
    "affordable": "sum_network.cutset.sweeps",
    "check_proper_rows": "sum_network.cutset.boxes",
    "choose_blocks": "sum_network.cutset.sweeps",
    "compile_sweeps": "sum_network.cutset.sweeps",
    "cut_cost": "sum_network.cutset.assignments",
    "forest_left": "sum_network.cutset.assignments",
    "free_variables": "sum_network.cutset.assignments",
    "joint_law": "sum_network.cutset.joint",
    "lattice_of": "sum_network.cutset.lattice",
    "place_windows": "sum_network.cutset.sweeps",
    "sample": "sum_network.cutset.assignments",
    "sum_system": "sum_network.cutset.systems",
    "summable": "sum_network.cutset.boxes",
    "sums_of": "sum_network.cutset.systems",
    "sweep_cost": "sum_network.cutset.sweeps",
    "too_costly": "sum_network.cutset.assignments",
    "weigh": "sum_network.cutset.assignments",
}

__all__ = [
    "Assignments",
    "Blocks",
    "CutCost",
    "Lattice",
    "SumSystem",
    "Sweeps",
    "affordable",
    "check_proper_rows",
    "choose_blocks",
    "compile_sweeps",
    "cut_cost",
    "forest_left",
    "free_variables",
    "joint_law",
    "lattice_of",
    "place_windows",
    "sample",
    "sum_system",
    "summable",
    "sums_of",
    "sweep_cost",
    "too_costly",
    "weigh",
]


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"congenial.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return list(__all__)
