"""Files of measured parts: they hold what was measured, and no confidential count."""

from __future__ import annotations

import numpy as np
import pytest

import congenial as cg
from congenial.imaging.part_values import PartValues
from congenial.releases.making.measured_parts import MeasuredPart, MeasuredParts, model_of, piece_of
from congenial.releases.making.part_law import CutNode, PartLaw
from congenial.releases.specification import RecordMoves
from support.city import make_city

DOMAIN = cg.Tree.from_paths(["all/a/1", "all/a/2", "all/a/3"])
COUNTS = np.array([99, 60, 10, 20, 30])
WORST = RecordMoves(None, None, 4, 1.0, 1.0)


@pytest.fixture(params=[False, True])
def parts(request, tmp_path):
    make_city(tmp_path, method='name = "imaging"')
    plan = cg.read_plan(tmp_path / "plan.toml")
    law = PartLaw(plan, 1, (3.0, 1e6), 0.0, WORST, with_truth=False, stamped=True)
    node = CutNode(("a",), 60, request.param, 0.0, np.inf)
    made = MeasuredParts(law, np.array([node.exact]), 0.5, PartValues(tmp_path))
    made.keep([MeasuredPart.of(law, DOMAIN, COUNTS, node, cg.seeded(1))])
    return made


def test_the_count_of_a_node_is_kept_only_if_it_is_published(parts):
    tree, measured = parts.kept.measured(0)
    assert tree.parents.tolist() == [-1, 0, 0, 0]
    assert measured[0] == (60 if parts.exact[0] else 0)
    # noise of scale 1e6 leaves no count in its place
    assert not set(measured[1:].tolist()) & set(COUNTS.tolist())


def test_a_piece_has_the_measurements_and_weights_relative_to_the_largest(parts):
    piece = parts.piece(0)
    assert piece.y.tolist() == parts.kept.measured(0)[1].tolist()
    assert piece.resolved.pinned.tolist() == [parts.exact[0], False, False, False]
    assert piece.weight[0] == 0.0
    # the variance of discrete Laplace noise is 2 scale^2, nearly
    np.testing.assert_allclose(piece.weight[1:], 1 / (2 * 1e12) / 0.5, rtol=1e-9)
    model = model_of(parts.law, parts.kept.measured(0)[0], exact=False)
    alone = piece_of(model, np.arange(4), 1 / (2 * 1e12), np.array([7]))
    np.testing.assert_allclose(alone.weight[1:], 1.0, rtol=1e-9)
    assert alone.nodes.tolist() == [7] and alone.whole
