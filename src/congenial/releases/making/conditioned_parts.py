"""Counts of the top and of a part, drawn from the law of the noise given the invariants.

A part sends the top the message of the counts below its node (`sum_network.joined`). The top is
drawn from the messages of all parts, and each part then given its node's released count.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from congenial.conditioning.laws.forest_sampler import Conditioned
from congenial.conditioning.laws.questions import checked_counts
from congenial.domain.tree import Tree
from congenial.errors import ReleaseError
from congenial.invariants.resolved import checked_draws
from congenial.randomness import Randomness
from congenial.releases.accuracy import margins_in_parts
from congenial.releases.making.part_draws import DrawnRows, forest_below
from congenial.releases.making.part_law import CutNode, FromTop, PartLaw, Sent
from congenial.releases.model import Model
from congenial.releases.part_models import below_model
from congenial.sum_network import sample
from congenial.sum_network.cutset import sum_system
from congenial.sum_network.joined import Outside, PartMessage, PartSums, draw_part, join, message_of
from congenial.types import IntArray

# Returns the message of each part, given what is outside each.
MessagesOf = Callable[[Sequence[Outside]], Sequence[PartMessage]]


def condition_top(
    over: Model,
    counts: IntArray,
    roots: IntArray,
    messages_of: MessagesOf,
    limit: float,
    rng: Randomness,
) -> tuple[DrawnRows, list[FromTop]]:
    """Draw the counts down to the cut; `roots` are the nodes there, each with a part below it.

    `limit` is the total variation that a draw of the whole release may cost.
    """
    law = _law(over)
    checked_counts(law.mechanism, law.resolved, counts)
    weights = law.own_weights(counts)
    joined = join(law.forest, weights, roots, messages_of, limit)
    values = sample(joined.tables, 1, rng, first=len(counts))[0] + counts
    values = checked_draws(over.resolved, values, counts)
    sent = map(Sent, joined.messages, joined.outsides)
    given = [FromTop(*each) for each in zip(values[roots].tolist(), sent, strict=True)]
    return DrawnRows(over, margins_in_parts(over), counts, None, values), given


def message_of_part(
    law: PartLaw, domain: Tree, counts: IntArray, node: CutNode, outside: Outside
) -> PartMessage:
    """Return the message of a part; `draw_below` describes `domain` and `counts`."""
    model = _model(law, domain, node)
    return message_of(_sums(law, model, counts[law.depth :]), outside)


def condition_below(
    law: PartLaw, domain: Tree, counts: IntArray, node: CutNode, given: FromTop, rng: Randomness
) -> DrawnRows:
    """Draw the counts below a cut node; `draw_below` describes `domain` and `counts`."""
    model, inside = _model(law, domain, node), counts[law.depth :]
    if given.sent is None:
        raise AssertionError("a part that is conditioned has sent a message")
    message, outside = given.sent
    root = np.array([given.total]) - inside[0]
    noise = draw_part(_sums(law, model, inside), message, outside, root, rng)[0]
    values = checked_draws(model.resolved, noise + inside, inside)
    if values[0] != given.total:
        raise ReleaseError("a part does not have the released count of its node; release again.")
    return DrawnRows(model, margins_in_parts(model), inside, None, values)


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
    return PartSums(made.forest, made.own_weights(counts), law.per_count * counts.size)


def _law(model: Model) -> Conditioned:
    """Return the conditional mechanism of a model, whose counts are a tree.

    It may have no law by itself: counts of the top may be measured in parts only.
    """
    system = sum_system(model.resolved)
    if system.forest is None:
        raise AssertionError("the sums of a tree have no cycle")
    return Conditioned(model.mechanism, model.resolved, system.forest, system.fixed)
