"""Tables of least expected error that are worked out in parts, against those of whole trees."""

from __future__ import annotations

from contextlib import nullcontext

import numpy as np
import pytest

import congenial as cg
from congenial.errors import NumericalError, UnsupportedError
from congenial.imaging.solvers.two_pass import tie_grid
from congenial.inference import best_in_parts as module
from congenial.inference import best_table as whole_tables
from congenial.inference.best_in_parts import RELEASED, LawInParts, fit_in_parts
from congenial.inference.best_table import best_table
from congenial.inference.laws import evidence_of
from congenial.inference.point_tables import level_weights
from congenial.inference.splits.tree_pieces import TOP
from support.piece_trees import cut_evidence, joined, random_problem
from support.seeds import for_each_seed


def measured(seed, loss="l1", **sizes):
    """Return a mechanism, measurements of counts, and the evidence that they give."""
    mechanism, invariant, counts = random_problem(seed, **sizes)
    engine = best_table(mechanism, invariant, loss)
    y = engine.measure(counts, rng=cg.seeded(seed))
    return engine, y, evidence_of(engine._problem(y))


@for_each_seed(40)
def test_no_table_of_the_whole_tree_has_a_smaller_expected_error(seed):
    loss = ("l1", "l2")[seed % 3 == 0]
    engine, y, evidence = measured(seed, loss)
    fitted = engine.fitted(y)
    law, tree, pinned = engine.law(y), engine.tree, engine.resolved.pinned
    weights, mean = level_weights(tree, pinned), law.mean()

    def error(table):
        return (
            law.expected_error(table, weights)
            if loss == "l1"
            else float(((mean - table) ** 2).sum())
        )

    least = error(fitted.move(y, cg.seeded(1)))
    # rounding, and the ends of laws that are cut; means nearer than the grid are rounded as ties
    ties = 2.0 * tie_grid(np.array([mean.max()])) * len(tree) if loss == "l2" else 0.0
    near = {"rel": 1e-7, "abs": 1e-7 + ties}
    for level in range(1, tree.depth - 1):
        pieces, split = cut_evidence(evidence, level)
        parts = LawInParts.of(pieces, pinned[split.nodes], fitted.splits)
        top = parts.least(loss, cg.seeded(2))
        pieces.keep(RELEASED, TOP, top.astype(np.float64))
        table = joined(pieces, split, RELEASED, len(tree)).astype(np.int64)
        assert tree.is_consistent(table) and (table >= 0).all()
        assert (table[pinned] == y[pinned]).all()
        assert error(table) == pytest.approx(least, **near)
        each = [
            parts.errors(k, [np.rint(pieces.values(RELEASED, k)).astype(np.int64)], loss)[0]
            for k in pieces.numbers
        ]
        assert sum(each) == pytest.approx(error(table), rel=1e-6, abs=1e-6)


@for_each_seed(12)
def test_workers_elsewhere_who_repeat_each_step_give_the_same_table(seed, tmp_path):
    loss = ("l1", "l2")[seed % 3 == 0]
    engine, _, evidence = measured(seed, loss)
    pinned = engine.resolved.pinned
    for level in range(1, evidence.tree.depth - 1):
        found = []
        place = tmp_path / f"{seed}-{level}"
        place.mkdir()
        for files in (None, place):
            pieces, split = cut_evidence(evidence, level, files)
            splits = fit_in_parts(pieces)
            law = LawInParts.of(pieces, pinned[split.nodes], splits)
            pieces.keep(RELEASED, TOP, law.least(loss, cg.seeded(2)).astype(np.float64))
            tables = [np.rint(pieces.values(RELEASED, k)).astype(np.int64) for k in pieces.numbers]
            errors = [law.errors(k, [z], loss)[0] for k, z in enumerate(tables, start=TOP)]
            found.append((splits.alpha.tolist(), splits.spread.tolist(), sum(errors)))
        # ties are broken by other words
        assert found[0][:2] == found[1][:2]
        # means nearer than the grid are rounded as ties
        grid = tie_grid(np.array([max(table.max() for table in tables)]))
        near = 2.0 * grid * len(evidence.tree) if loss == "l2" else 0.0
        assert found[0][2] == pytest.approx(found[1][2], rel=1e-9, abs=1e-9 + near)
        assert {"working out", "moving", "comparing"} & pieces.workers.seen
        assert all("." not in path.name for path in place.iterdir())


def test_a_worse_table_has_a_larger_expected_error():
    engine, y, evidence = measured(3)
    pieces, split = cut_evidence(evidence, 1)
    parts = LawInParts.of(pieces, engine.resolved.pinned[split.nodes], engine.fitted(y).splits)
    parts.least("l1", cg.seeded(2))
    for number in pieces.numbers[1:]:
        table = np.rint(pieces.values(RELEASED, number)).astype(np.int64)
        worse = table + 3 * (np.arange(table.size) == table.size - 1)
        errors = parts.errors(number, [worse, table], "l1")
        assert errors[0] > errors[1] + 0.01


def test_windows_of_parts_are_widened(monkeypatch):
    """From windows of one value on each side, the table is the same."""
    from congenial.inference import point_tables

    engine, y, evidence = measured(0)
    pinned, splits = engine.resolved.pinned, engine.fitted(y).splits
    errors = []
    for near in (6, 1):
        monkeypatch.setattr(point_tables, "_NEAR", near)
        pieces, split = cut_evidence(evidence, 2)
        law = LawInParts.of(pieces, pinned[split.nodes], splits)
        top = law.least("l1", cg.seeded(2))
        pieces.keep(RELEASED, TOP, top.astype(np.float64))
        values = (np.rint(pieces.values(RELEASED, k)).astype(np.int64) for k in pieces.numbers)
        errors.append(
            sum(law.errors(k, [v], "l1")[0] for k, v in zip(pieces.numbers, values, strict=True))
        )
    assert errors[0] == pytest.approx(errors[1], rel=1e-9)
    kept = [pieces.parts.store["window", k].reshape(2, -1) for k in range(pieces.roots.size)]
    assert max((high - low).max() for low, high in kept) > 2.0


def test_a_posterior_that_takes_too_long_or_loses_too_much_is_refused(monkeypatch):
    engine, _, evidence = measured(1)
    pieces, split = cut_evidence(evidence, 1)
    # the products of pieces are those of the whole tree, but for cut nodes that may be empty
    found = whole_tables.work(evidence)
    for limit, refused in ((0.7, True), (1.01, False)):
        monkeypatch.setattr(whole_tables, "MOST_WORK", limit * found)
        with pytest.raises(UnsupportedError) if refused else nullcontext():
            fit_in_parts(pieces)
    monkeypatch.setattr(whole_tables, "MOST_WORK", 0.5 * found)
    with pytest.raises(UnsupportedError, match="products in each pass"):
        fit_in_parts(pieces)
    monkeypatch.undo()
    monkeypatch.setattr(module, "MOST_LOST", -1.0)
    with pytest.raises(NumericalError, match="above its limit"):
        LawInParts.of(pieces, engine.resolved.pinned[split.nodes], fit_in_parts(pieces))
