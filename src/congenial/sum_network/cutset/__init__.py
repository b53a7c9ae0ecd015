"""Sums with a few cycles: enumerate the values of a cut set, and use the remaining forest.

`cut_cost` chooses the cut set, `weigh` sums over its values, `sample` draws, and `joint_law`
answers. Where there are too many values, `choose_blocks` and `compile_sweeps` make chains.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from congenial.namespaces import offer

if TYPE_CHECKING:
    from congenial.sum_network.cutset.assignments import MOST_WORK as MOST_WORK
    from congenial.sum_network.cutset.assignments import Assignments as Assignments
    from congenial.sum_network.cutset.assignments import CutCost as CutCost
    from congenial.sum_network.cutset.assignments import cut_cost as cut_cost
    from congenial.sum_network.cutset.assignments import forest_left as forest_left
    from congenial.sum_network.cutset.assignments import too_costly as too_costly
    from congenial.sum_network.cutset.assignments import weigh as weigh
    from congenial.sum_network.cutset.boxes import check_proper_rows as check_proper_rows
    from congenial.sum_network.cutset.boxes import summable as summable
    from congenial.sum_network.cutset.cut_draws import CutDraws as CutDraws
    from congenial.sum_network.cutset.cut_draws import attempt as attempt
    from congenial.sum_network.cutset.cut_draws import mass as mass
    from congenial.sum_network.cutset.cut_draws import prepare as prepare
    from congenial.sum_network.cutset.cut_draws import sample as sample
    from congenial.sum_network.cutset.joint import joint_law as joint_law
    from congenial.sum_network.cutset.lattice import Lattice as Lattice
    from congenial.sum_network.cutset.lattice import lattice_of as lattice_of
    from congenial.sum_network.cutset.sweeps import Blocks as Blocks
    from congenial.sum_network.cutset.sweeps import Sweeps as Sweeps
    from congenial.sum_network.cutset.sweeps import affordable as affordable
    from congenial.sum_network.cutset.sweeps import choose_blocks as choose_blocks
    from congenial.sum_network.cutset.sweeps import compile_sweeps as compile_sweeps
    from congenial.sum_network.cutset.sweeps import place_windows as place_windows
    from congenial.sum_network.cutset.sweeps import sweep_cost as sweep_cost
    from congenial.sum_network.cutset.systems import SumSystem as SumSystem
    from congenial.sum_network.cutset.systems import rows_touching as rows_touching
    from congenial.sum_network.cutset.systems import substitute as substitute
    from congenial.sum_network.cutset.systems import sum_system as sum_system
    from congenial.sum_network.cutset.systems import sums_of as sums_of

_HOME = {
    "sum_network.cutset.assignments": (
        "MOST_WORK Assignments CutCost cut_cost forest_left too_costly weigh"
    ),
    "sum_network.cutset.boxes": "check_proper_rows summable",
    "sum_network.cutset.cut_draws": "CutDraws attempt mass prepare sample",
    "sum_network.cutset.joint": "joint_law",
    "sum_network.cutset.lattice": "Lattice lattice_of",
    "sum_network.cutset.sweeps": (
        "Blocks Sweeps affordable choose_blocks compile_sweeps place_windows sweep_cost"
    ),
    "sum_network.cutset.systems": "SumSystem rows_touching substitute sum_system sums_of",
}

__all__, __getattr__, __dir__ = offer(__name__, _HOME)
