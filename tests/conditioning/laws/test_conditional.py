"""Questions that a mechanism leaves to another of the same law."""

from __future__ import annotations

import pytest

import congenial as cg
from congenial.conditioning.laws.conditional import AnswersByLaw
from congenial.errors import UnsupportedError

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
