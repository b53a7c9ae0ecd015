"""The rows of one part, and the facts about it."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import congenial as cg
from congenial.domain.tree import Tree
from congenial.plan.plan import parse_plan
from congenial.releases.directory import MEASUREMENTS, TABLE
from congenial.releases.making.part_law import CutNode, FromTop, PartLaw
from congenial.releases.making.part_method import PartMethod
from congenial.releases.making.part_rows import draw_part, method_of
from congenial.releases.specification import RecordMoves
from support.city import plan_text
from support.parts import PARTED


def test_a_part_has_the_lines_below_its_node_and_its_own_facts():
    plan = parse_plan(plan_text(**PARTED))
    tree = Tree.from_paths([("City", "Arden", name) for name in ("1", "=1+1", "x, y")])
    worst = RecordMoves(("City", "Arden", "2"), ("City", "Brook", "0"), 4, 1.0, 1.0)
    law = PartLaw(plan, 1, (4.0, 2.0), 0.0, worst, True, True)
    node = CutNode(("Arden",), 9, False, 0.0, np.inf)
    counts = np.array([9, 9, 2, 3, 4])
    part = draw_part(law, tree, counts, node, FromTop(12), cg.seeded(1))
    lines = b"".join(part.lines[TABLE]).decode().splitlines()
    assert [line.split(",Arden,")[1].split(",")[0] for line in lines] == ["1", "'=1+1", '"x']
    assert all(line.startswith("2,zone,City,Arden,") for line in lines)
    assert all(line.endswith(",SIMULATION: NOT PRIVATE") for line in lines)
    numbers = [line.split(",")[-5:] for line in lines]
    assert sum(int(line[0]) for line in numbers) == 12
    assert [int(line[3]) for line in numbers] == [2, 3, 4]
    assert b"".join(part.lines[MEASUREMENTS]).count(b"discrete-laplace,2.0") == 3
    assert part.facts.nodes == (0, 0, 3) and part.facts.inner == 1
    # the stand-in's third child of Arden is the third here
    assert part.facts.named == ((("City", "Arden", "2"), ("City", "Arden", "x, y")),)


@pytest.mark.parametrize(
    ("name", "module"),
    [
        ("topdown", "topdown_parts"),
        ("conditioning", "conditioned_parts"),
        ("imaging", "moved_parts"),
        ("posterior", "moved_parts"),
    ],
)
def test_each_method_is_a_module_with_the_functions_of_all_methods(name, module):
    found = method_of(parse_plan(plan_text(method=f'name = "{name}"')))
    assert found.__name__.rpartition(".")[2] == module
    for function in ("claims", "draw_top", "draw_below"):
        [_, *expected] = inspect.signature(getattr(PartMethod, function)).parameters
        assert list(inspect.signature(getattr(found, function)).parameters) == expected
