"""How the page of each study opens: its question, and its answer with numbers of its tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from congenial.exhibits.exhibit import Cell, Exhibit

Tables = Mapping[str, Exhibit]


@dataclass(frozen=True)
class Opening:
    """The question of a study, its answer in two sentences, and the terms that its page needs."""

    question: str
    answer: Callable[[Tables], str]  # Of the study's tables, by name.
    words: tuple[str, ...] = ()  # Keys of `WORDS`.


# The terms of the pages, each in a sentence or two.
WORDS = {
    "papers": (
        "**The papers** are Gong and Meng (2020), *Congenial Differential Privacy under Mandated "
        "Disclosure*, and Liu, Sun, Zhou and Feng (2023), *Two Views of Constrained Differential "
        "Privacy*, here called *Two Views*."
    ),
    "invariant": (
        "An **invariant** is a rule that every release satisfies exactly, such as a true total. A "
        "*bound* is an invariant such as: no count is negative."
    ),
    "conditioning": (
        "**Conditioning** draws noise from its law, given that the counts with this noise satisfy "
        "the invariants. The *law* of a number is its probability distribution."
    ),
    "imaging": (
        "**Imaging** adds noise first. It then releases the *image* of the noisy counts: the "
        "closest counts that satisfy the invariants. This is also called projection."
    ),
    "norms": (
        "**L1 and L2** measure distances between tables. L1 is the sum of the absolute "
        "differences, and L2 is the root of the sum of their squares."
    ),
    "nnl2": "**NNL2** is imaging in L2 if no count may be negative.",
    "topdown": (
        "**TopDown** is the Census Bureau's form of imaging. It goes down from the total, level by "
        "level. It rounds to whole numbers, none of them below 0."
    ),
    "levels": (
        "A **leaf** is a count without parts, such as a zone or a block. A *node* is any count, "
        "and a *level* has all nodes of one kind."
    ),
    "measurements": "**Measurements** are noisy counts before any invariant is imposed.",
    "posterior": (
        "**The posterior** is the law, or probability distribution, of the true counts given the "
        "measurements. It needs a *prior*: the law of the true counts before the noisy counts are "
        "seen. A prior is flat, or it is fitted to the noisy counts."
    ),
    "best table": (
        "**The table of least expected error** has the least expected absolute error under the "
        "posterior, among all tables of integers that satisfy the invariants."
    ),
    "margins": (
        "With at least a stated probability, such as 90%, the error is at most the **error "
        "margin**."
    ),
    "coverage": (
        "**Coverage** is the share of intervals that contain their true count. A *size* or *class* "
        "of counts is a range, such as 10 to 99."
    ),
    "inversion": (
        "**Inversion** gives intervals for releases that were made by conditioning on bounds. [A "
        "theorem](../decisions/0018-intervals-by-inversion.md) gives these intervals the stated "
        "coverage, for all true counts. One numerical step is checked, not proved."
    ),
    "bias": (
        "**Bias** is the mean of estimate minus true count. *Deciles* divide the leaves into "
        "tenths by their true counts, or by their estimates, the smallest first."
    ),
    "epsilon": (
        "**The final ε** is the ε that a release guarantees. It includes the cost of bounds, so "
        "methods of the same final ε are equally private."
    ),
    "loss": (
        "**The loss** is the largest log ratio of the probabilities of one release under two "
        "neighbouring datasets. *Neighbours* differ in one record."
    ),
    "gamma": (
        "**γ** compares losses. If the noise alone loses ε for one record, a mechanism that loses "
        "at most (1 + γ) k ε for k records has this γ (Gong and Meng, equation 2.4)."
    ),
    "geometric": (
        "**Double geometric noise**, or discrete Laplace noise, is an integer u with probability "
        "proportional to exp(−|u| / scale)."
    ),
    "chains": (
        "**R-hat** compares several runs of a Markov chain with each other, and is near 1 if they "
        "agree. *Effective draws* are the number of independent draws that would be as precise as "
        "the chain."
    ),
    "worlds": (
        "**M** is a mechanism and C the set of values that satisfy the invariant. *M given C* is M "
        "conditioned on C, which Gong and Meng write *M\\**. *M_C* is the image of M in C. **h** "
        "is a function, and *h after M* is h of M's release. *Worlds* are possible values."
    ),
    "private": (
        "**As private as** compares two mechanisms: the first loses no more than the second. A "
        "*ratio* in a counterexample is that of the probabilities of one release under two "
        "neighbours."
    ),
    "revision": (
        "**Revision** changes a belief as conditioning does, and *imaging* moves each world to the "
        "closest possible one. *Screened* and *credibility-limited* revision refuse some news."
    ),
    "margin tables": (
        "A **margin** is a table of sums over some attributes, such as people by age. A *total* "
        "is the sum over all attributes. An *area* is a state, county, tract, block group or "
        "block."
    ),
}


def _number(cell: Cell) -> float:
    return float(str(cell))


def _rows(table: Exhibit, **where: Cell) -> list[dict[str, Cell]]:
    """Return rows as dictionaries, those with certain cells; a name has _ for a space."""
    found = [dict(zip(table.columns, row, strict=True)) for row in table.rows]
    wanted = {name.replace("_", " "): value for name, value in where.items()}
    return [row for row in found if all(row[name] == cell for name, cell in wanted.items())]


def _taxi(tables: Tables) -> str:
    def mean(method: str) -> list[float]:
        rows = _rows(tables["accuracy"], ε=0.5, noise="continuous", method=method)
        return [_number(row["mean"]) for row in rows]

    less = [100 * (1 - a / b) for a, b in zip(mean("exact"), mean("L2"), strict=True)]
    times = [_number(row["printed / here"]) for row in _rows(tables["implied"], column="M_MH")]
    return (
        "With the same noise and no bounds, exact conditioning has a smaller mean error than L2 "
        f"imaging: {less[0]:.0f}% smaller for the city, {less[1]:.0f}% for boroughs and "
        f"{less[2]:.0f}% for zones (ε = 0.5). For zones, the errors that *Two Views* prints for "
        f"its Markov chain are {times[0]:.2f} to {times[-1]:.2f} times those of exact "
        "conditioning; with a noise scale proportional to 1/ε, this ratio would be the same for "
        "every ε."
    )


def _p12(tables: Tables) -> str:
    (free,) = _rows(tables["equal"], exact="totals", final_ε=1.0)
    (bounded,) = _rows(tables["equal"], exact="totals, no negative cell", final_ε=1.0)

    def pair(row: dict[str, Cell], first: str, second: str) -> str:
        return f"{_number(row[first]):.1f} against {_number(row[second]):.1f}"

    return (
        "At ε = 1, if only totals are exact, conditioning has the smaller mean distance from the "
        f"confidential table: {pair(free, 'conditioned', 'imaged')} by imaging. If also no cell "
        "may be negative, conditioning needs wider noise for the same ε, and imaging has the "
        f"smaller distance: {pair(bounded, 'imaged', 'conditioned')} by conditioning."
    )


def _two_bin(tables: Tables) -> str:
    inner = [
        row
        for row in _rows(tables["loss"])
        if str(row["release"]).startswith("L1")
        and row["release"] not in ("L1, beta 0.5", "L1, beta 1")
    ]
    ratio = [_number(r["loss, integer noise"]) / _number(r["loss, printed"]) for r in inner]
    return (
        "For Laplace noise the printed variances and losses are right; the printed mean of the L2 "
        "image is not. For integer noise and weights β between 1/2 and 1, the loss of the L1 image "
        f"is larger than printed in {sum(r > 1 + 1e-9 for r in ratio)} of {len(ratio)} cases, by "
        f"up to {100 * (max(ratio) - 1):.0f}%."
    )


def _simplex(tables: Tables) -> str:
    exact = {row["n"]: row for row in _rows(tables["exact"], noise="Laplace, scale 1")}
    ratio = [_number(exact[n]["ratio of variances"]) for n in (2, 10, 100)]
    signs = _rows(tables["others"], n=2)[0]
    return (
        "For Laplace noise this is proved: conditioning has "
        f"{ratio[0]:.2f} times the variance of imaging for 2 counts, {ratio[1]:.2f} times for 10 "
        f"and {ratio[2]:.2f} times for 100. For some other noise it is false: if the noise of two "
        "counts is +1 or −1 and must add up to 0, the variance is "
        f"{_number(signs['variance, conditioning']):g} by conditioning and "
        f"{_number(signs['variance, imaging']):g} by imaging."
    )


def _belief(tables: Tables) -> str:
    (own,) = _rows(tables["sources"], who_says_so="the paper")
    (denied,) = _rows(tables["sources"], who_says_so="the paper denies it")
    return (
        f"Of {own['statements']} statements that the papers make, {own['held']} held in every case "
        f"tried, and {own['refuted']} were refuted. The papers say of {denied['statements']} other "
        "statements that these do not hold in general, and "
        + ("all" if denied["held"] == 0 else str(denied["refuted"]))
        + " were refuted."
    )


def _ends(table: Exhibit, method: str) -> tuple[float, float, float]:
    """Least and largest coverage over sizes of the count, and that of all leaves."""
    (row,) = _rows(table, method=method, what="coverage")
    *sizes, every = [_number(cell) for cell in list(row.values())[3:] if cell is not None]
    return min(sizes), max(sizes), every


def _coverage(tables: Tables) -> str:
    zones, blocks = (tables[f"{world}-coverage"] for world in ("zones", "blocks"))
    proved = [_ends(table, "conditioning, adds up") for table in (zones, blocks)]
    fitted = [_ends(table, "posterior, fitted") for table in (zones, blocks)]
    return (
        "Intervals with exact error margins do: for conditioning without bounds, they contain "
        f"{proved[0][0]:.1%} to {proved[0][1]:.1%} of the true counts of each size on taxi zones, "
        f"and {proved[1][0]:.1%} to {proved[1][1]:.1%} on census blocks. Intervals of the "
        f"posterior with a fitted prior do so on average (zones {fitted[0][2]:.1%}, blocks "
        f"{fitted[1][2]:.1%}), but in the size with the lowest coverage they contain only "
        f"{fitted[0][0]:.1%} and {fitted[1][0]:.1%}."
    )


def _inversion(tables: Tables) -> str:
    table = tables["blocks-coverage"]

    def width(method: str) -> float:
        (row,) = _rows(table, method=method, what="mean width")
        return _number(row["all leaves"])

    inverted, fitted = "conditioning, ≥ 0, inversion", "conditioning, ≥ 0, posterior"
    low, high, _ = _ends(table, inverted)
    return (
        f"They contain {low:.1%} to {high:.1%} of the true counts of each size, and have a mean "
        f"width of {width(inverted):.1f}. Intervals of the posterior from the same releases have a "
        f"mean width of {width(fitted):.1f}, but contain only {_ends(table, fitted)[0]:.1%} of the "
        "counts of the size with the lowest coverage."
    )


def _best_table(tables: Tables) -> str:
    every = [t for name, t in tables.items() if name.endswith("-errors")]
    levels = [row for table in every for row in _rows(table) if " of " not in str(row["counts"])]
    worse = sum(
        _number(row["difference, %"]) > 2 * _number(row["standard error, %"]) for row in levels
    )
    deepest = [
        _number(at_one[-1]["difference, %"])
        for table in every
        if (at_one := [r for r in _rows(table, epsilon=1.0) if " of " not in str(r["counts"])])
    ]
    low, high = min(deepest), max(deepest)
    by = f"{-high:.1f}% to {-low:.1f}% smaller than"
    if high > 0.0:
        by = f"between {low:+.1f}% and {high:+.1f}% from"
    return (
        "At ε = 1 and the deepest level, the error of the table of least expected error is "
        f"{by} that of the best of imaging and TopDown, depending on the data. In {worse} of "
        f"{len(levels)} combinations of data, level and ε, its error is larger by more than two "
        "standard errors."
    )


def _bureau(tables: Tables) -> str:
    rows = [r for name, t in tables.items() if name.endswith("-errors") for r in _rows(t)]
    pairs = [(_number(r["difference"]), 2 * _number(r["standard error"])) for r in rows]
    first = min(name for name in tables if name.endswith("-errors"))  # that of one county
    (block,) = _rows(tables[first], counts="block", margin="total")
    return (
        f"In {sum(d > e for d, e in pairs)} of {len(rows)} groups of counts (defined below), the "
        "errors of the Census Bureau's two passes are larger than those of one pass by more than "
        f"two standard errors; in {sum(d < -e for d, e in pairs)} groups, they are smaller by "
        "that much. In releases of one county, the mean error of a block's total is "
        f"{_number(block['one pass, ours']):.3g} people with one pass and "
        f"{_number(block['two passes']):.3g} with two."
    )


OPENINGS = {
    "taxi": Opening(
        "With the same noise, which has the smaller errors for taxi trips, exact conditioning or "
        "L2 imaging? Does the Markov chain of *Two Views* give the errors that are printed there?",
        _taxi,
        (
            *("papers", "conditioning", "imaging", "norms", "nnl2", "topdown", "epsilon"),
            *("geometric", "chains"),
        ),
    ),
    "p12": Opening(
        "Which method has the smaller error at equal privacy, for a table of sex by age with exact "
        "totals?",
        _p12,
        (
            *("papers", "conditioning", "imaging", "norms", "nnl2", "topdown", "epsilon"),
            *("geometric", "chains"),
        ),
    ),
    "two-bin": Opening(
        "Two counts have an exact total: are the means, variances and losses that Gong and Meng "
        "(2020) print right?",
        _two_bin,
        ("papers", "conditioning", "imaging", "norms", "loss", "gamma", "geometric"),
    ),
    "simplex": Opening(
        "One total is exact: does conditioning always give counts of a smaller variance than "
        "imaging?",
        _simplex,
        ("papers", "invariant", "conditioning", "imaging", "norms", "geometric", "epsilon"),
    ),
    "belief": Opening(
        "Do the statements of both papers hold for small random probability distributions, in "
        "exact arithmetic?",
        _belief,
        ("papers", "conditioning", "imaging", "worlds", "private", "loss", "gamma", "revision"),
    ),
    "coverage": Opening(
        "Do intervals of 90% contain the true count in 90% of releases, for counts of every size?",
        _coverage,
        (
            *("levels", "measurements", "conditioning", "imaging", "norms", "topdown"),
            *("posterior", "margins", "coverage", "inversion", "bias"),
        ),
    ),
    "inversion": Opening(
        "How often do intervals by inversion, which promise 90%, contain the true counts of census "
        "blocks, and how wide are they?",
        _inversion,
        (
            *("levels", "measurements", "conditioning", "imaging", "norms", "topdown"),
            *("posterior", "margins", "coverage", "inversion", "bias"),
        ),
    ),
    "best-table": Opening(
        "Are the errors of the table of least expected error smaller than those of imaging and "
        "TopDown?",
        _best_table,
        (
            *("levels", "measurements", "posterior", "best table", "conditioning", "imaging"),
            *("norms", "topdown", "epsilon", "coverage"),
        ),
    ),
    "bureau": Opening(
        "Does TopDown lose accuracy if it fits all counts of an area's parts at once, instead of "
        "their totals first?",
        _bureau,
        ("margin tables", "measurements", "topdown"),
    ),
}
