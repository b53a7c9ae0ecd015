"""Questions that a mechanism leaves to another of the same law."""

from __future__ import annotations

from math import pi

import pytest

import congenial as cg
from congenial.conditioning.laws.conditional import AnswersByLaw
from congenial.errors import ArgumentError, UnsupportedError
from support.plots import drawn, heights, new_axes

TREE = cg.Tree.from_parents([-1, 0, 0])
MADE = cg.condition(cg.Additive(cg.DiscreteLaplace(2.0), TREE), cg.consistent(TREE) & cg.exactly(0))
QUESTIONS = {
    "log_normalizer": ([5, 2, 3],),
    "log_prob": ([5, 1, 4], [5, 2, 3]),
    "marginal": (1, [5, 2, 3]),
    "joint": ([1, 2], [5, 2, 3]),
    "interval": (1, 0.2),
}


class Asks(AnswersByLaw):
    """Notes the question, and answers by the law above or not at all."""

    def __init__(self, law):
        self.law, self.asked = law, []

    def _law(self, question):
        self.asked.append(question)
        if self.law is None:
            raise UnsupportedError("no law")
        return self.law


@pytest.mark.parametrize("question", QUESTIONS)
def test_every_question_is_answered_by_the_law_or_refused(question):
    given = QUESTIONS[question]
    made = Asks(MADE)
    assert repr(getattr(made, question)(*given)) == repr(getattr(MADE, question)(*given))
    assert made.asked == [question]
    with pytest.raises(UnsupportedError, match="no law"):
        getattr(Asks(None), question)(*given)


NOISE = (cg.DiscreteLaplace(1.0), cg.DiscreteLaplace(1.0, granularity=0.5))


@pytest.mark.parametrize("noise", NOISE, ids=["integers", "grid"])
@pytest.mark.parametrize("sampler", ["exact", "tree-mh"])
def test_the_plot_of_a_law_has_its_probabilities(noise, sampler):
    tree = cg.Tree.from_parents([-1, 0, 0])
    law = cg.condition(cg.Additive(noise, tree), cg.consistent(tree), sampler)
    values, probabilities = law.marginal(1, [5, 2, 3])
    ax = drawn(law.plot(1, [5, 2, 3], ax=new_axes()))
    known = dict(zip(values.tolist(), probabilities.tolist(), strict=True))
    found = heights(ax)
    assert len(found) > 5
    assert all(known[v] == pytest.approx(p) for v, p in found.items())
    assert ax.get_title(loc="left") == "Law of the released value at 1"


def test_the_plots_of_a_union_and_of_a_normal_law():
    tree = cg.Tree.from_parents([-1, 0, 0])
    noise = cg.Additive(cg.DiscreteLaplace(1.0), tree)
    sums = cg.consistent(tree)
    either = (sums & cg.bounds([0, 0, 0], [9, 2, 9])) | (sums & cg.bounds([0, 3, 0], [9, 9, 9]))
    assert heights(cg.condition(noise, either).plot(1, [5, 2, 3], ax=new_axes()))
    normal = cg.condition(cg.Additive(cg.Gaussian(2.0), tree), cg.consistent(tree))
    ax = drawn(normal.plot(1, [5, 2, 3], ax=new_axes()))
    assert max(ax.lines[0].get_ydata()) == pytest.approx(
        1 / (normal.marginal(1, [5, 2, 3]).sd * (2 * pi) ** 0.5)
    )
    with pytest.raises(ArgumentError, match="alpha"):
        normal.plot(1, [5, 2, 3], alpha=2.0, ax=new_axes())
