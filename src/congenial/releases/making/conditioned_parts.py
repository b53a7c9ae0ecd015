"""Counts of the top and of a part, drawn from the law of the noise given the invariants.

A part sends the top the message of the counts below its node (`sum_network.joined`). The top is
drawn from the messages of all parts, and each part then given its node's released count. If a part
refuses that count, everything is drawn anew (`sum_network.joined`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from congenial.conditioning.laws.forest_sampler import Conditioned
from congenial.conditioning.laws.questions import checked_counts
from congenial.domain.tree import Tree
from congenial.errors import CongenialError, ReleaseError
from congenial.invariants.resolved import checked_draws
from congenial.plan.cut import PARTS
from congenial.plan.fields import refuse
from congenial.randomness import Randomness
from congenial.releases.accuracy import margins_in_parts
from congenial.releases.making.part_draws import DrawnRows, forest_below
from congenial.releases.making.part_law import CutNode, FromTop, PartLaw, Sent
from congenial.releases.making.part_method import Claims, CountedTop, TopOrder
from congenial.releases.model import Model, build_model, claim
from congenial.releases.part_models import PartShape, below_model, level_scales, stand_in
from congenial.releases.specification import unnamed, worst_neighbours
from congenial.sum_network import exact
from congenial.sum_network.cutset import sum_system
from congenial.sum_network.joined import (
    Outside,
    PartMessage,
    PartSums,
    attempt_part,
    join,
    message_of,
)
from congenial.types import IntArray


def claims(top: CountedTop) -> Claims:
    """Return the claims; refuse parts whose loss under bounds is not known."""
    shapes = top.source.shapes(top.nodes)
    _check_shapes(top, shapes)
    return Claims(top.guarantee, unnamed(worst_neighbours(top.stand_in, top.guarantee)))


def draw_top(asked: TopOrder) -> tuple[DrawnRows, list[FromTop]]:
    """Draw the counts down to the cut, given the messages of all parts."""
    top, roots = asked.top, asked.roots

    def messages_of(outsides: Sequence[Outside]) -> list[PartMessage]:
        return top.source.messages(asked.law, top.nodes, outsides)

    law = _law(top.model)
    checked_counts(law.mechanism, law.resolved, top.counts)
    weights = law.own_weights(top.counts)
    joined = join(law.forest, weights, roots, messages_of)
    noise = exact.sample(joined.tables, 1, asked.order.randomness, first=len(top.counts))[0]
    values = checked_draws(top.model.resolved, noise + top.counts, top.counts)
    sent = map(Sent, joined.messages, joined.outsides)
    given = [FromTop(*each) for each in zip(values[roots].tolist(), sent, strict=True)]
    return DrawnRows(top.model, margins_in_parts(top.model), top.counts, None, values), given


def message_of_part(
    law: PartLaw, domain: Tree, counts: IntArray, node: CutNode, outside: Outside
) -> PartMessage:
    """Return the message of a part; `PartMethod` describes `domain` and `counts`."""
    model = _model(law, domain, node)
    return message_of(_sums(law, model, counts[law.depth :]), outside)


def draw_below(
    law: PartLaw, domain: Tree, counts: IntArray, node: CutNode, given: FromTop, rng: Randomness
) -> DrawnRows | None:
    """Draw the counts below a cut node, see `PartMethod`."""
    model, inside = _model(law, domain, node), counts[law.depth :]
    if given.sent is None:
        raise AssertionError("a part that is conditioned has sent a message")
    message, outside = given.sent
    root = np.array([given.total]) - inside[0]
    _, drawn = attempt_part(_sums(law, model, inside), message, outside, root, rng)
    if not len(drawn):
        return None
    noise = drawn[0]
    values = checked_draws(model.resolved, noise + inside, inside)
    if values[0] != given.total:
        raise ReleaseError("a part does not have the released count of its node; release again.")
    return DrawnRows(model, margins_in_parts(model), inside, None, values)


def _check_shapes(asked: CountedTop, shapes: Sequence[PartShape]) -> None:
    """Refuse parts whose loss under bounds is not that of the nodes that stand for them.

    The loss of the parts is at most that of these nodes, and at least that of a tree with chains in
    the place of parts in which some level has no count that changes alone.
    """
    cut, top, model, found = asked.cut, asked.tree, asked.stand_in, asked.guarantee
    if found.moves is None:
        raise AssertionError("a guarantee of noise on a tree knows what neighbours change")
    fixed = ~found.moves.changes[model.domain.level == cut.depth]
    chains = np.zeros(len(top), dtype=np.bool_)
    chains[top.level == cut.depth] = [
        not shape.stands_alone(fixed=same)
        for shape, same in zip(shapes, fixed.tolist(), strict=True)
    ]
    if not chains.any():
        return
    try:
        least = build_model(cut.plan, stand_in(top, cut, chains))
        same = np.array_equal(level_scales(least), level_scales(model))
        same = same and claim(least, 0.0).epsilon == claim(model, 0.0).epsilon
    except CongenialError:
        same = False
    if not same:
        refuse(
            PARTS,
            f"is {cut.level!r}, below {int(chains.sum()):,} of whose nodes some level has no count "
            "that changes alone, so that bounds cost less than parts can show",
            "cut at another level, or leave parts out",
        )


def _model(law: PartLaw, domain: Tree, node: CutNode) -> Model:
    """Return the model of the counts from a cut node on."""
    tree = forest_below(domain, law.depth)
    exact = tree.roots if node.exact else tree.roots[:0]
    model = below_model(law.plan, np.array(law.scale), tree, exact)
    if node.exact:
        return model
    low, high = model.resolved.lo.copy(), model.resolved.hi.copy()
    low[0], high[0] = max(low[0], node.least), min(high[0], node.most)
    return replace(model, resolved=replace(model.resolved, lo=low, hi=high))


def _sums(law: PartLaw, model: Model, counts: IntArray) -> PartSums:
    """Return the sums of a part and the weights of its noise."""
    made = _law(model)
    return PartSums(made.forest, made.own_weights(counts), law.share)


def _law(model: Model) -> Conditioned:
    """Return the conditional mechanism of a model, whose counts are a tree.

    It may have no law by itself: counts of the top may be measured in parts only.
    """
    system = sum_system(model.resolved)
    if system.forest is None:
        raise AssertionError("the sums of a tree have no cycle")
    return Conditioned(model.mechanism, model.resolved, system.forest, system.fixed)
