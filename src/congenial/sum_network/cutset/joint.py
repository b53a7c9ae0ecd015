"""Joint laws of up to three entries, by enumeration of the values of all but one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from congenial.errors import ArgumentError
from congenial.kernels.numerics import elementwise
from congenial.sum_network.cutset.assignments import evaluate, weigh
from congenial.sum_network.cutset.branches import compile_branches
from congenial.sum_network.cutset.systems import SumSystem
from congenial.sum_network.weights import Unary
from congenial.types import FloatArray, IntArray

MOST_NODES = 3
JointLaw = tuple[tuple[IntArray, ...], FloatArray]


def joint_law(
    system: SumSystem, unary: Unary, counts: IntArray, nodes: list[int], tally: int | None = None
) -> JointLaw:
    """Return the joint law of one to three released values.

    All values of all nodes but the last are enumerated, together with a cut set if the sums have
    cycles. The cost is the number of these assignments times the tables between the nodes, plus all
    tables once.

    Returns the values of each node, consecutive integers that carry all but 1e-12 of the mass, and
    the probabilities, with one axis a node.
    """
    if not 1 <= len(nodes) <= MOST_NODES or len(set(nodes)) < len(nodes):
        raise ArgumentError(
            f"{len(nodes)} nodes are named; give one to {MOST_NODES} different ones."
        )
    moving = [v for v in nodes if not system.fixed[v]]
    found: dict[int, IntArray] = {v: np.zeros(1, dtype=np.int64) for v in nodes}
    table = np.ones(())
    if moving:
        windows, table = _joint_table(system, unary, moving, tally)
        found.update(zip(moving, windows, strict=True))
    values = tuple(counts[v] + found[v] for v in nodes)
    return _trimmed(values, table.reshape(tuple(found[v].size for v in nodes)))


def _trimmed(values: tuple[IntArray, ...], table: FloatArray) -> JointLaw:
    """Remove values without probability at both ends of every axis."""
    keep = tuple(slice(at.min(), at.max() + 1) for at in np.nonzero(table > 0))
    return tuple(v[ends] for v, ends in zip(values, keep, strict=True)), table[keep]


def _joint_table(
    system: SumSystem, unary: Unary, nodes: Sequence[int], tally: int | None
) -> JointLaw:
    """Return the joint law of variables: the window of each, and the table of probabilities."""
    *others, last = nodes
    found = weigh(system, unary, tuple(others), tally=tally)
    box, cut = found.box, found.branches.cut
    windows = tuple(np.arange(box.lo[v], box.hi[v] + 1) for v in nodes)
    shape = tuple(w.size for w in windows)
    group = np.zeros(found.values.shape[0], dtype=np.int64)
    for v, w in zip(others, windows, strict=False):
        group = group * w.size + found.values[:, cut.index(v)] - w[0]
    belief = np.zeros((int(np.prod(shape[:-1])), shape[-1]))
    reference = float(found.log_weight.max())
    if last in cut:
        at = found.values[:, cut.index(last)] - windows[-1][0]
        np.add.at(belief, (group, at), elementwise.exp(found.log_weight - reference))
    else:
        branches = compile_branches(system.rows, box, system.free, cut, last, tally=tally)
        scratch = np.empty(found.values.shape[0])
        evaluate(branches, found.values, found.log_own, scratch, reference, group, belief)
    return windows, (belief / belief.sum()).reshape(shape)
