"""Every draw of every mechanism is checked against its invariant before it is returned."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from dataclasses import replace

import numpy as np
import pytest

import congenial
import congenial as cg
from congenial.errors import NumericalError
from congenial.inference.best_table import best_table
from congenial.invariants.resolved import ResolvedInvariant, checked_draws
from congenial.invariants.written import resolve_invariant

TREE = cg.Tree.from_parents([-1, 0, 0, 0])
X = TREE.roll_up(np.array([4, 3, 5]))
ADDS_UP = cg.consistent(TREE)
FIXED = ADDS_UP & cg.exactly("root")
BOUNDED = FIXED & cg.nonnegative()
M = cg.Additive(cg.DiscreteLaplace(2.0), TREE)
FINE = cg.Additive(cg.DiscreteLaplace(2.0, granularity=0.5), TREE)
DEEP = cg.Tree.from_parents([-1, 0, 0, 1, 1, 2, 2])
ON_DEEP = cg.Additive(cg.DiscreteLaplace(2.0), DEEP)
DEEP_X = DEEP.roll_up(np.array([4, 3, 5, 0]))
# a square whose rows and columns keep their sums
SQUARE = np.array([4, 3, 5, 2, 2, 1, 0, 1, 3])
SUMS = np.concatenate((np.kron(np.eye(3), np.ones(3)), np.kron(np.ones(3), np.eye(3))))
ON_CELLS = cg.Additive(cg.DiscreteLaplace(1.0), 9)


def low() -> cg.Invariant:
    return BOUNDED & cg.bounds(hi=[np.inf, 4, np.inf, np.inf])


def high() -> cg.Invariant:
    return BOUNDED & cg.bounds(lo=[-np.inf, 5, -np.inf, -np.inf])


MADE = {
    "forest": lambda: cg.condition(M, FIXED),
    "forest with bounds": lambda: cg.condition(M, BOUNDED),
    "parts": lambda: cg.conditioning.condition_by_parts(
        ON_DEEP, cg.consistent(DEEP) & cg.nonnegative(), 1
    ),
    "cut set": lambda: cg.condition(ON_CELLS, cg.linear(SUMS, SUMS @ SQUARE)),
    "gibbs": lambda: cg.condition(M, BOUNDED, "gibbs"),
    "rejection": lambda: cg.condition(M, FIXED, "rejection"),
    "independence": lambda: cg.condition(M, FIXED, "independence"),
    "perfect": lambda: cg.condition(M, FIXED, "perfect"),
    "tree-mh": lambda: cg.condition(M, ADDS_UP & cg.nonnegative(), "tree-mh"),
    "Gaussian": lambda: cg.condition(cg.Additive(cg.Gaussian(2.0), TREE), FIXED),
    "Laplace": lambda: cg.condition(cg.Additive(cg.Laplace(2.0), TREE), FIXED),
    "grid": lambda: cg.condition(FINE, FIXED),
    "union": lambda: cg.condition(M, low() | high()),
    "conditioned mixture": lambda: cg.condition(cg.mixture([M, M], [0.5, 0.5]), FIXED),
    "mixture": lambda: cg.mixture([cg.condition(M, FIXED), cg.image(M, FIXED)], [0.5, 0.5]),
    "image": lambda: cg.image(M, BOUNDED),
    "image of integers": lambda: cg.image(M, BOUNDED, integer=True),
    "image in L1": lambda: cg.image(M, BOUNDED, "l1", integer=True),
    "topdown": lambda: cg.imaging.topdown_image(M, BOUNDED),
    "posterior": lambda: best_table(M, BOUNDED),
}


def data(made: object) -> np.ndarray:
    """Counts of as many nodes as the mechanism has."""
    return {4: X, 7: DEEP_X, 9: SQUARE}[getattr(getattr(made, "whole", made), "mechanism", M).n]


def deny(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(self, values, given):
        return np.zeros(values.shape[:-1], dtype=bool)

    monkeypatch.setattr(ResolvedInvariant, "satisfied_by", never)


@pytest.mark.parametrize("size", [None, 5])
@pytest.mark.parametrize("name", MADE)
def test_a_draw_that_violates_an_invariant_is_not_released(name, size, monkeypatch):
    made = MADE[name]()
    assert made.sample(data(made), size, cg.seeded(1)).shape[-1] == data(made).size
    deny(monkeypatch)
    with pytest.raises(NumericalError, match="a draw breaks an invariant"):
        made.sample(data(made), size, cg.seeded(1))


@pytest.mark.parametrize("prior", ["flat", cg.inference.Prior(4.0, 2.0)])
@pytest.mark.parametrize("ask", ["sample", "point l1", "point l2"])
def test_counts_of_a_posterior_are_checked(prior, ask, monkeypatch):
    found = cg.posterior(X, M, BOUNDED, prior)
    loss = ask.split()[-1]
    asked = found.sample if ask == "sample" else lambda **given: found.point(loss, **given)
    assert TREE.is_consistent(asked(rng=cg.seeded(1)))
    deny(monkeypatch)
    with pytest.raises(NumericalError, match="a draw breaks an invariant"):
        asked(rng=cg.seeded(1))


def test_counts_of_a_posterior_by_parts_are_checked(monkeypatch):
    known = cg.consistent(DEEP) & cg.nonnegative()
    found = cg.inference.posterior_by_parts(DEEP_X, ON_DEEP, known, 1)
    assert DEEP.is_consistent(found.sample(rng=cg.seeded(1)))
    deny(monkeypatch)
    with pytest.raises(NumericalError, match="a draw breaks an invariant"):
        found.sample(rng=cg.seeded(1))


def test_every_class_that_samples_is_among_them():
    """A new sampler needs a row above, or a reason here."""
    sampling = set()
    for found in pkgutil.walk_packages(congenial.__path__, "congenial."):
        if found.name.split(".")[1] in {"belief", "studies", "commands", "cli"}:
            continue
        module = importlib.import_module(found.name)
        sampling |= {
            kind
            for _, kind in inspect.getmembers(module, inspect.isclass)
            if kind.__module__ == found.name and "sample" in vars(kind)
        }
    named = {type(make()).__mro__ for make in MADE.values()}
    covered = {kind.__name__ for mro in named for kind in mro}
    without = {
        "Additive",  # no invariant
        "NetworkLaw",  # inside a posterior, which checks its draws
        "SplitLaw",
        "Laws",
        "Unconstrained",  # noise alone, to compare with
        "Posterior",  # above
        "PosteriorByParts",
    }
    protocols = {kind.__name__ for kind in sampling if getattr(kind, "_is_protocol", False)}
    assert {kind.__name__ for kind in sampling} - protocols - without <= covered


def resolved(*parts: cg.Invariant, domain=TREE) -> ResolvedInvariant:
    whole = parts[0]
    for part in parts[1:]:
        whole = whole & part
    return resolve_invariant(whole, len(domain), domain)


BROKEN = {
    "a sum": (ADDS_UP, X + np.array([1, 0, 0, 0])),
    "a pin": (FIXED, X + np.array([1, 1, 0, 0])),
    "a bound below": (ADDS_UP & cg.nonnegative(), X - np.array([5, 5, 0, 0])),
    "one of several bounds": (ADDS_UP & cg.bounds(hi=[20, 4, 9, 9]), X + np.array([1, 1, 0, 0])),
    "an equality": (ADDS_UP & cg.linear([0, 1, 1, 0], 7), X + np.array([1, 0, 1, 0])),
    "an inequality": (ADDS_UP & cg.at_least([0, 1, 0, -1], -1), X + np.array([1, 0, 0, 1])),
}


@pytest.mark.parametrize("real", [False, True])
@pytest.mark.parametrize("name", BROKEN)
def test_one_broken_condition_in_one_of_many_rows_is_found(name, real):
    invariant, wrong = BROKEN[name]
    rows = np.tile(X, (7, 1))
    rows, wrong = (rows.astype(float), wrong + 1e-7 * X) if real else (rows, wrong)
    known = resolved(invariant)
    assert known.satisfied_by(rows, X).all()
    assert checked_draws(known, rows, X) is rows
    rows[4] = wrong
    assert known.satisfied_by(rows, X).tolist() == [True] * 4 + [False] + [True] * 2
    assert not known.satisfied_by(rows[4], X)
    with pytest.raises(NumericalError):
        checked_draws(known, rows, X)


def test_a_bound_that_follows_from_a_pin_is_checked():
    known = replace(resolved(FIXED), pairs=np.array([[0, 1]]))
    wrong = X + np.array([0, 9, -9, 0])
    assert known.satisfied_by(X, X)
    assert not known.satisfied_by(wrong, X)
    assert resolved(FIXED).satisfied_by(wrong, X)
