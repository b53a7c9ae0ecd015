"""Parts drawn on other machines: an attempt that is repeated is the same attempt."""

from __future__ import annotations

import pickle
from functools import partial

import numpy as np
import pytest
from msgspec.structs import replace

from congenial.domain.tree import Tree
from congenial.errors import ReleaseError
from congenial.imaging.part_values import PartValues, SteppedValues
from congenial.plan.plan import read_plan
from congenial.randomness import keyed
from congenial.releases.directory import MEASUREMENTS, TABLE, read_file
from congenial.releases.making import drawn_files
from congenial.releases.making.conditioned_parts import message_of_part
from congenial.releases.making.drawn_files import (
    COUNTS,
    ORDERS,
    RESULTS,
    Drawing,
    Moving,
    PartMeasuring,
    PartOrder,
    Sending,
    Shaping,
    Stage,
    part_key,
)
from congenial.releases.making.measured_parts import MeasuredPart
from congenial.releases.making.part_law import CutNode, FromTop, PartLaw, Sent
from congenial.releases.part_models import PartShape
from congenial.releases.specification import RecordMoves
from congenial.sum_network.joined import Outside
from support.city import make_city
from support.parts import PARTED
from support.sent import sent

KEY = bytes(range(32))
# The line of the part's own node, which the top draws.
ABOVE = b"1,borough,City,Arden,,30,21,39\n"
ABOVE_MEASURED = b"1,borough,City,Arden,,28,discrete-laplace,4.0\n"


@pytest.fixture
def stage(tmp_path):
    make_city(tmp_path, **PARTED)
    return staged(tmp_path)


def staged(place):
    for name in (COUNTS, ORDERS, RESULTS):
        (place / name).mkdir()
    return Stage(read_plan(place / "plan.toml"), 1, place, place)


def law_of(plan):
    worst = RecordMoves(("Arden", "1"), ("Brook", "4"), 4, 1.0, 1.0)
    return PartLaw(plan, 1, (4.0, 3.0), 0.25, worst, False, False)


@pytest.fixture
def drawing(stage):
    return Drawing(stage, law_of(stage.plan), private=True, attempt=1)


def order_of(total=30, *, records=0, key=KEY):
    node = CutNode(("Arden",), records, False, 0.0, np.inf)
    above = ((TABLE, ABOVE), (MEASUREMENTS, ABOVE_MEASURED))
    return PartOrder(node, None, given=FromTop(total), above=above, key=key)


def test_a_repeated_attempt_leaves_one_file_and_another_key_or_total_another(drawing):
    stage = drawing.stage
    stage.write_orders([order_of()])
    digest = drawing(0)
    assert drawing(0) == digest
    assert stage.attempts("drawn-1") == {0: {digest}}
    part = drawing.read(0, digest)
    above, *lines = bytes(part.tables[TABLE].lines).splitlines(keepends=True)
    assert above == ABOVE
    assert [line.split(b",")[4] for line in lines] == [b"1", b"2", b"3"]
    assert sum(int(line.split(b",")[5]) for line in lines) == 30
    above, *lines = bytes(part.tables[MEASUREMENTS].lines).splitlines(keepends=True)
    assert above == ABOVE_MEASURED and len(lines) == 3
    for table, (lines, parquet) in part.tables.items():
        (stage.place / "part.parquet").write_bytes(parquet)
        rows = read_file(stage.place / "part.parquet")
        cells = zip(*(column.cells() for column in rows.data), strict=True)
        assert list(map(",".join, cells)) == bytes(lines).decode().splitlines(), table
    assert part.facts.nodes == (0, 0, 3) and part.facts.inner == 1
    found = {digest}
    for other in (order_of(key=KEY[::-1]), order_of(31)):
        stage.write_orders([other])
        found.add(drawing(0))
    assert stage.attempts("drawn-1") == {0: found} and len(found) == 3
    assert not [path for path in (stage.place / RESULTS).iterdir() if "unfinished" in path.name]


def test_a_part_that_refuses_the_top_leaves_an_empty_result(drawing, monkeypatch):
    monkeypatch.setattr(drawn_files, "draw_part", lambda *_: None)
    drawing.stage.write_orders([order_of()])
    assert drawing(0) == drawn_files.REFUSED == drawing(0)
    assert drawing.stage.read("drawn-1", 0, drawn_files.REFUSED) == b""


def test_no_two_counts_or_totals_or_trees_have_one_key():
    rng = np.random.default_rng(0)
    found = set()
    for case in range(2_000):
        size = int(rng.integers(2, 6))
        parents = [-1, *(int(rng.integers(0, v)) for v in range(1, size))]
        tree, counts = Tree.from_parents(parents), rng.integers(0, 4, size=size)
        total = int(rng.integers(0, 4))
        order = order_of(total)
        key = part_key(order, tree, counts)
        assert part_key(order, tree, counts.copy()) == key and len(key) == 32
        changed = counts.copy()
        changed[case % size] += 1
        others = [
            part_key(order, tree, changed),
            part_key(order_of(total + 1), tree, counts),
            part_key(order_of(total, key=KEY[::-1]), tree, counts),
        ]
        found |= {key, *others}
        assert len({key, *others}) == 4


def test_counts_that_changed_and_parts_that_were_damaged_are_refused(drawing):
    stage = drawing.stage
    stage.write_orders([order_of(records=5)])
    with pytest.raises(ReleaseError, match="staged counts of a part") as caught:
        drawing(0)
    assert "5" not in str(caught.value)
    stage.write_orders([order_of()])
    digest = drawing(0)
    file = stage.place / RESULTS / f"drawn-1.0.{digest}"
    file.write_bytes(file.read_bytes().replace(b"Arden", b"ARDEN", 1))
    with pytest.raises(ReleaseError, match="not written as it was made"):
        drawing.read(0, digest)


def test_what_is_sent_to_the_workers_holds_no_key(drawing):
    drawing.stage.write_orders([order_of()])
    assert KEY not in pickle.dumps(drawing)
    assert KEY in (drawing.stage.place / ORDERS / "0").read_bytes()


def test_an_order_shows_no_count_and_no_key():
    shown = repr(order_of(645546, records=918273))
    assert "Arden" in shown
    assert "918273" not in shown
    assert "645546" not in shown
    assert repr(KEY) not in shown
    assert "918273" not in repr(order_of(records=918273).node)


def test_a_message_that_is_read_has_the_bits_of_the_one_that_was_sent(tmp_path):
    make_city(tmp_path, method='name = "conditioning"')
    stage = staged(tmp_path)
    law, node = law_of(stage.plan), order_of().node
    for number, outside in enumerate((Outside(0.0, np.inf, 1e-5), Outside(2.0, 30.0, 1e-7))):
        sending = Sending(stage, law, number)
        stage.write_orders([PartOrder(node, None, outside)])
        digest = sending(0)
        assert sending(0) == digest and stage.attempts(sending.name) == {0: {digest}}
        _, domain, counts = stage.order(0)
        message = message_of_part(law, domain, counts, node, outside)
        found = sending.read(0, digest)
        assert found.same_as(message) and found.lo <= found.hi
        # the part is drawn given the message, in another process
        drawing = Drawing(stage, law, private=False, attempt=1)
        sent = Sent(found, outside)
        order = PartOrder(node, None, given=FromTop(7, sent), above=((TABLE, ABOVE),), key=KEY)
        stage.write_orders([order])
        _, *lines = bytes(drawing.read(0, drawing(0)).tables[TABLE].lines).decode().splitlines()
        assert sum(int(line.split(",")[5]) for line in lines) == 7


@pytest.mark.parametrize("name", ["imaging", "posterior"])
def test_a_measured_part_is_read_as_it_was_measured_and_has_no_confidential_count(tmp_path, name):
    make_city(tmp_path, method=f'name = "{name}"')
    stage = staged(tmp_path)
    law = law_of(stage.plan)
    measuring = PartMeasuring(stage, law, private=True)
    [exact, *others] = [
        PartOrder(replace(order_of().node, exact=True), None, key=KEY),
        PartOrder(order_of().node, None, key=KEY),
        PartOrder(order_of().node, None, key=KEY[::-1]),
    ]
    digests = list[str]()
    for order in (exact, *others):
        stage.write_orders([order])
        digests.append(measuring(0))
        assert measuring(0) == digests[-1]
    assert stage.attempts("measured") == {0: set(digests)}
    assert digests[0] == digests[1] != digests[2]  # all counts are 0, exact ones too
    order, domain, counts = stage.order(0)
    words = keyed(part_key(order, domain, counts), private=True)
    expected = MeasuredPart.of(law, domain, counts, order.node, words)
    found = measuring.read(0, digests[2])
    assert found.tree.parents.tolist() == expected.tree.parents.tolist() == [-1, 0, 0, 0]
    assert found.measured.tolist() == expected.measured.tolist() and found.measured[1:].any()
    assert found.categories == expected.categories
    assert (found.categories is None) == (name == "imaging")
    # a part is drawn from other words than it is measured from
    assert part_key(order_of(0), domain, counts) != part_key(
        PartOrder(order_of().node, None, key=KEY), domain, counts
    )


def add_up(values, number, by):
    """Keep the sum of a part's values so far and a number, and return it."""
    found = values.values("sum", number) + by
    values.keep("sum", number, found)
    return number, found


def test_a_step_that_is_repeated_has_the_same_result(stage, tmp_path):
    kept = SteppedValues(tmp_path / RESULTS)
    kept.begin("zero")
    kept.keep("sum", 7, np.ones(2))
    kept.end()
    kept.begin("one")
    stage.write_arguments({7: (np.array([1.0, 4.0]),)})
    moving = Moving(stage, "one", partial(add_up, kept), kept)
    digests = [sent(moving)(0) for _ in range(2)]
    assert stage.attempts("one") == {0: set(digests)} and len(set(digests)) == 1
    number, found = moving.read(0, digests[0])
    assert number == 7 and found.tolist() == [2.0, 5.0]
    assert PartValues(kept.place).values("sum", 7).tolist() == [1.0, 1.0]
    kept.end()
    assert kept.values("sum", 7).tolist() == [2.0, 5.0]
    stage.forget("one")
    assert stage.attempts("one") == {}
    # an attempt that keeps other values has another digest, though its result is the same
    for other in (partial(add_nothing, kept, 0.0), partial(add_nothing, kept, 1.0)):
        kept.begin("two")
        sent(Moving(stage, "two", other, kept))(0)
    assert len(stage.attempts("two")[0]) == 2


def add_nothing(values, hidden, number, by):
    values.keep("sum", number, by + hidden)


def test_the_shape_of_a_part_is_read_as_it_was_written(stage):
    stage.write_orders([PartOrder(order_of().node, None)])
    shaping = Shaping(stage)
    assert shaping.read(0, shaping(0)) == PartShape(3, 3, True)
