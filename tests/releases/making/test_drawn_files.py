"""Parts drawn on other machines: an attempt that is repeated is the same attempt."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from congenial.domain.tree import Tree
from congenial.errors import ReleaseError
from congenial.plan.plan import read_plan
from congenial.releases.directory import MEASUREMENTS, TABLE
from congenial.releases.making.drawn_files import (
    COUNTS,
    DRAWN,
    ORDERS,
    Drawing,
    PartOrder,
    part_key,
)
from congenial.releases.making.part_rows import PartLaw
from congenial.releases.specification import RecordMoves
from support.city import make_city
from support.parts import PARTED

KEY = bytes(range(32))


@pytest.fixture
def drawing(tmp_path):
    make_city(tmp_path, **PARTED)
    for name in (COUNTS, ORDERS, DRAWN):
        (tmp_path / name).mkdir()
    plan = read_plan(tmp_path / "plan.toml")
    worst = RecordMoves(("Arden", "1"), ("Brook", "4"), 4, 1.0, 1.0)
    return Drawing(PartLaw(plan, 1, (3.0,), worst, False, False), tmp_path, tmp_path, private=True)


ORDER = PartOrder(("Arden",), None, 0, 30, KEY)


def test_a_repeated_attempt_leaves_one_file_and_another_key_or_total_another(drawing):
    drawing.write_order(7, ORDER)
    digest = drawing.draw(7)
    assert drawing.draw(7) == digest
    assert drawing.attempts() == {7: {digest}}
    part = drawing.read(7, digest)
    lines = b"".join(part.lines[TABLE]).decode().splitlines()
    assert [line.split(",")[4] for line in lines] == ["1", "2", "3"]
    assert sum(int(line.split(",")[5]) for line in lines) == 30
    assert b"".join(part.lines[MEASUREMENTS]).count(b"\n") == 3
    assert part.facts.nodes == (0, 0, 3) and part.facts.inner == 1
    found = {digest}
    for other in (replace_order(key=KEY[::-1]), replace_order(total=31)):
        drawing.write_order(7, other)
        found.add(drawing.draw(7))
    assert drawing.attempts() == {7: found} and len(found) == 3
    assert not [path for path in (drawing.stage / DRAWN).iterdir() if "unfinished" in path.name]


def replace_order(**fields):
    return PartOrder(**{name: getattr(ORDER, name) for name in ORDER.__struct_fields__} | fields)


def test_no_two_counts_or_totals_or_trees_have_one_key():
    rng = np.random.default_rng(0)
    found = set()
    for case in range(2_000):
        size = int(rng.integers(2, 6))
        parents = [-1, *(int(rng.integers(0, v)) for v in range(1, size))]
        tree, counts = Tree.from_parents(parents), rng.integers(0, 4, size=size)
        order = replace_order(total=int(rng.integers(0, 4)))
        key = part_key(order, tree, counts)
        assert part_key(order, tree, counts.copy()) == key and len(key) == 32
        changed = counts.copy()
        changed[case % size] += 1
        others = [
            part_key(order, tree, changed),
            part_key(replace_order(total=order.total + 1), tree, counts),
            part_key(replace_order(total=order.total, key=KEY[::-1]), tree, counts),
        ]
        found |= {key, *others}
        assert len({key, *others}) == 4


def test_counts_that_changed_and_parts_that_were_damaged_are_refused(drawing):
    drawing.write_order(0, replace_order(records=5))
    with pytest.raises(ReleaseError, match="staged counts of a part") as caught:
        drawing.draw(0)
    assert "5" not in str(caught.value)
    drawing.write_order(0, ORDER)
    digest = drawing.draw(0)
    file = drawing.stage / DRAWN / f"0.{digest}"
    file.write_bytes(file.read_bytes().replace(b"Arden", b"ARDEN", 1))
    with pytest.raises(ReleaseError, match="not written as it was drawn"):
        drawing.read(0, digest)


def test_what_is_sent_to_the_workers_holds_no_key(drawing):
    drawing.write_order(0, ORDER)
    assert KEY not in pickle.dumps(drawing)
    assert KEY in (drawing.stage / ORDERS / "0").read_bytes()


def test_an_order_shows_no_count_and_no_key():
    shown = repr(PartOrder(("Arden",), None, 918273, 645546, KEY))
    assert "Arden" in shown
    assert "918273" not in shown
    assert "645546" not in shown
    assert repr(KEY) not in shown
