"""Two Views, Lemma 3.3: additive noise under linear equalities, and what inequalities cost."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from congenial.belief.finite_mechanism import FiniteMechanism, Pair
from congenial.belief.finite_noise import cyclic_geometric, cyclic_mechanism, double_geometric
from congenial.belief.worlds import Belief
from papers.claims.claim import Case, Claim, told
from papers.claims.draws import PAIR, Draws

SIZE = 5
Point = tuple[int, int]
Kept = Literal["kept", "left by a neighbour", "moved with the data"]


def _noise(draws: Draws) -> Belief:
    if draws.integer(0, 1):
        return cyclic_geometric(draws.fraction(), SIZE)
    return draws.belief(range(SIZE), zeros=False)


def _dot(row: Point, z: Point) -> int:
    return sum(a * b for a, b in zip(row, z, strict=True)) % SIZE


def _sum_in(row: Point, values: set[int]) -> Callable[[Point], bool]:
    return lambda z: _dot(row, z) in values


def _setting(draws: Draws, *, agree: bool) -> tuple[Point, dict[str, Point]]:
    """Draw one linear form, and the answers of two neighbours, alike under it or not."""
    row = (draws.integer(1, SIZE - 1), draws.integer(1, SIZE - 1))
    while True:
        answers = {d: (draws.integer(0, SIZE - 1), draws.integer(0, SIZE - 1)) for d in PAIR[0]}
        if answers["x"] != answers["y"] and agree == (
            _dot(row, answers["x"]) == _dot(row, answers["y"])
        ):
            return row, answers


def _equality(kept: Kept, *, approximate: bool = False) -> Case:
    """Lemma 3.3 round a circle; `approximate` asks the same of (epsilon, delta)."""

    def case(draws: Draws) -> str | None:
        row, answers = _setting(draws, agree=kept == "kept")
        noise = _noise(draws)
        mechanism = cyclic_mechanism(noise, answers, size=SIZE)
        value = {d: _dot(row, answers["x"]) for d in answers}
        if kept == "moved with the data":
            value["y"] = _dot(row, answers["y"])
        after = FiniteMechanism(
            {d: mechanism[d].condition(_sum_in(row, {wanted})) for d, wanted in value.items()}
        )
        factor = draws.factor()
        if approximate:
            fine = after.excess(factor, PAIR) <= mechanism.excess(factor, PAIR)
        else:
            fine = after.ratio(PAIR) <= mechanism.ratio(PAIR)
        if fine:
            return None
        words = (
            f"noise ({told(noise)}) modulo {SIZE}, f(x) = {answers['x']}, f(y) = {answers['y']}, "
            f"C: {row} z = {value['x']}"
        )
        if approximate:
            return (
                f"{words}; at e^epsilon = {factor}, delta {mechanism.excess(factor, PAIR)} becomes "
                f"{after.excess(factor, PAIR)}"
            )
        return f"{words}; ratio {mechanism.ratio(PAIR)} becomes {after.ratio(PAIR)}"

    return case


def _parallel(*, agree: bool) -> Case:
    """Theorem 3.5 for two values of one linear form, which neighbours share or not."""

    def case(draws: Draws) -> str | None:
        row, answers = _setting(draws, agree=agree)
        noise = _noise(draws)
        mechanism = cyclic_mechanism(noise, answers, size=SIZE)
        first = draws.integer(0, SIZE - 1)
        second = (first + draws.integer(1, SIZE - 1)) % SIZE
        parts = [mechanism.condition(_sum_in(row, {value})) for value in (first, second)]
        before = max(part.ratio(PAIR) for part in parts)
        union = mechanism.condition(_sum_in(row, {first, second}))
        if union.ratio(PAIR) <= before:
            return None
        return (
            f"noise ({told(noise)}) modulo {SIZE}, f(x) = {answers['x']}, f(y) = {answers['y']}, "
            f"{row} z = {first} or {second}"
        )

    return case


def _interval(power: int) -> Case:
    """Try whether bounds keep the ratio of double geometric noise at most 1/a to some power."""

    def case(draws: Draws) -> str | None:
        a = draws.fraction()
        top = draws.integer(1, 5)
        x = draws.integer(0, top - 1)
        laws = {c: double_geometric(a, range(top + 1), centre=c) for c in (x, x + 1)}
        pair: tuple[Pair, ...] = ((x, x + 1),)
        ratio = FiniteMechanism(laws).ratio(pair)
        if ratio <= (1 / a) ** power:
            return None
        return (
            f"a = {a}, counts {x} and {x + 1}, C = 0 to {top}: ratio 1/a = {1 / a} becomes {ratio}"
        )

    return case


def _literal_invariant(draws: Draws) -> str | None:
    """Definition 3.1 by its letter: M(D) meets C almost surely where f(D) does."""
    row, answers = _setting(draws, agree=True)
    noise = _noise(draws)
    mechanism = cyclic_mechanism(noise, answers, size=SIZE)
    value = _dot(row, answers["x"])
    met = mechanism["x"].probability(_sum_in(row, {value}))
    if met == 1:
        return None
    return (
        f"noise ({told(noise)}) modulo {SIZE}, f(D) = {answers['x']}, C: {row} z = {value}; "
        f"P(M(D) in C) = {met}"
    )


def _spread_alike(draws: Draws) -> str | None:
    """Control of the constant behind Lemma 3.3."""
    row, answers = _setting(draws, agree=False)
    return _normalizers(draws, row, answers)


def _normalizers(draws: Draws, row: Point, answers: dict[str, Point]) -> str | None:
    mechanism = cyclic_mechanism(_noise(draws), answers, size=SIZE)
    value = _dot(row, answers["x"])
    met = {d: mechanism[d].probability(_sum_in(row, {value})) for d in answers}
    if met["x"] == met["y"]:
        return None
    return f"f(x) = {answers['x']}, f(y) = {answers['y']}, C: {row} z = {value}"


def _same_normalizer(draws: Draws) -> str | None:
    row, answers = _setting(draws, agree=True)
    return _normalizers(draws, row, answers)


CLAIMS = (
    Claim(
        "Two Views, Definition 3.1, by its letter",
        "For additive noise, a mandated sum is an invariant: before any conditioning, M(D) meets "
        "it almost surely if f(D) does.",
        "the paper, read otherwise",
        False,
        _literal_invariant,
    ),
    Claim(
        "Two Views, section 3, case 2",
        "For additive noise and a linear equality met by f(D) and f(D'), the normalizer K_C is the "
        "same for both.",
        "the paper",
        True,
        _same_normalizer,
        _spread_alike,
    ),
    Claim(
        "Two Views, Lemma 3.3",
        "Additive noise, conditioned on a linear equality that f(D) and f(D') meet, loses no more "
        "than before.",
        "the paper",
        True,
        _equality("kept"),
        _equality("left by a neighbour"),
    ),
    Claim(
        "Two Views, Lemma 3.3, f(D') outside C",
        "Additive noise, conditioned on a linear equality that f(D) meets and f(D') does not, "
        "loses no more than before.",
        "ours: stronger",
        False,
        _equality("left by a neighbour"),
    ),
    Claim(
        "Two Views, Lemma 3.3, C moved with the data",
        "Additive noise, conditioned on the value of a linear form at f(D), loses no more than "
        "before.",
        "ours: stronger",
        False,
        _equality("moved with the data"),
    ),
    Claim(
        "Two Views, Lemma 3.3, for (epsilon, delta)",
        "Additive noise, conditioned on a linear equality that f(D) and f(D') meet, needs no "
        "larger delta than before at any epsilon.",
        "ours: stronger",
        False,
        _equality("kept", approximate=True),
    ),
    Claim(
        "Two Views, Theorem 3.5, part 2, parallel equalities",
        "If neighbours agree on a sum, additive noise given that the sum has one of two values is "
        "as private as given either value alone.",
        "ours",
        True,
        _parallel(agree=True),
        _parallel(agree=False),
    ),
    Claim(
        "Two Views, Table 1, conditioning and inequalities",
        "Double geometric noise, conditioned on bounds, loses no more than before.",
        "the paper denies it",
        False,
        _interval(1),
    ),
    Claim(
        "Gong and Meng (2020), Theorem 2.1, for bounds",
        "Double geometric noise, conditioned on bounds, loses at most twice as much.",
        "the paper",
        True,
        _interval(2),
        _interval(1),
    ),
)
