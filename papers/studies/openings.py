"""How the page of each study opens: its question, and its answer with numbers of its tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from congenial.exhibits.exhibit import Cell, Exhibit

Tables = Mapping[str, Exhibit]


@dataclass(frozen=True)
class Opening:
    """The question of a study, and its answer in two sentences."""

    question: str
    answer: Callable[[Tables], str]  # Of the study's tables, by name.


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
        "With the same noise and sums alone, exact conditioning has less mean error than "
        "projection: "
        f"{less[0]:.0f}% less for the city, {less[1]:.0f}% for boroughs and {less[2]:.0f}% for "
        "zones (ε = 0.5). The errors that the paper prints for "
        f"its chain are {times[0]:.2f} to {times[-1]:.2f} times as large for zones, so they follow "
        "no noise scale proportional to 1/ε."
    )


def _p12(tables: Tables) -> str:
    (free,) = _rows(tables["equal"], exact="totals", final_ε=1.0)
    (bounded,) = _rows(tables["equal"], exact="totals, no negative cell", final_ε=1.0)

    def pair(row: dict[str, Cell], first: str, second: str) -> str:
        return f"{_number(row[first]):.1f} against {_number(row[second]):.1f}"

    return (
        "If only totals are exact, conditioning has the smaller mean distance from the table: "
        f"{pair(free, 'conditioned', 'imaged')} at ε = 1. If also no cell may be negative, "
        "conditioning pays for that with privacy, and imaging has the smaller distance: "
        f"{pair(bounded, 'imaged', 'conditioned')}."
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
        "release is not. For integer noise the losses of the L1 releases strictly between the ends "
        f"are larger in {sum(r > 1 + 1e-9 for r in ratio)} of {len(ratio)} cases, by up to "
        f"{100 * (max(ratio) - 1):.0f}%."
    )


def _simplex(tables: Tables) -> str:
    exact = {row["n"]: row for row in _rows(tables["exact"], noise="Laplace, scale 1")}
    ratio = [_number(exact[n]["ratio of variances"]) for n in (2, 10, 100)]
    signs = _rows(tables["others"], n=2)[0]
    return (
        "For Laplace noise it does, by a proof: the ratio of the variances is "
        f"{ratio[0]:.2f} for 2 cells, {ratio[1]:.2f} for 10 and {ratio[2]:.2f} for 100. For some "
        "other noise it does not: two random signs that "
        f"must cancel have variance {_number(signs['variance, conditioning']):g}, and "
        f"{_number(signs['variance, imaging']):g} by imaging."
    )


def _belief(tables: Tables) -> str:
    (own,) = _rows(tables["sources"], who_says_so="the paper")
    (denied,) = _rows(tables["sources"], who_says_so="the paper denies it")
    return (
        f"Of {own['statements']} statements that the papers make, {own['held']} held in every case "
        f"tried, and {own['refuted']} were refuted. All {denied['refuted']} statements that the "
        "papers deny were refuted, too."
        if denied["held"] == 0
        else f"Of {own['statements']} statements that the papers make, {own['refuted']} were "
        f"refuted. Of {denied['statements']} that they deny, {denied['held']} held."
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
        f"Exact error margins do: they contain {proved[0][0]:.1%} to {proved[0][1]:.1%} of the "
        f"counts of a size on taxi zones, and {proved[1][0]:.1%} to {proved[1][1]:.1%} on census "
        f"blocks. Intervals of the fitted posterior do so on average ({fitted[0][2]:.1%} and "
        f"{fitted[1][2]:.1%}), but for the worst size only with {fitted[0][0]:.1%} and "
        f"{fitted[1][0]:.1%}."
    )


def _inversion(tables: Tables) -> str:
    table = tables["blocks-coverage"]

    def width(method: str) -> float:
        (row,) = _rows(table, method=method, what="mean width")
        return _number(row["all leaves"])

    inverted, fitted = "conditioning, ≥ 0, inversion", "conditioning, ≥ 0, posterior"
    low, high, _ = _ends(table, inverted)
    return (
        f"They do: they contain {low:.1%} to {high:.1%} of the counts of a size, with a mean width "
        f"of {width(inverted):.1f}. Intervals of the posterior have a mean width of "
        f"{width(fitted):.1f}, but contain only {_ends(table, fitted)[0]:.1%} of the counts of the "
        "worst size."
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
    return (
        "At ε = 1, its error at the deepest level differs from that of the best of imaging and "
        f"TopDown by {min(deepest):+.1f}% to {max(deepest):+.1f}%, depending on the data. Of "
        f"{len(levels)} pairs of a level and an ε, its error is larger by more than two "
        f"standard errors in {worse}."
    )


def _bureau(tables: Tables) -> str:
    rows = [r for name, t in tables.items() if name.endswith("-errors") for r in _rows(t)]
    pairs = [(_number(r["difference"]), 2 * _number(r["standard error"])) for r in rows]
    first = min(name for name in tables if name.endswith("-errors"))  # that of one county
    (block,) = _rows(tables[first], counts="block", margin="total")
    return (
        f"Of {len(rows)} groups of counts, two passes have larger errors than one in "
        f"{sum(d > e for d, e in pairs)}, by more than two standard errors, and smaller errors in "
        f"{sum(d < -e for d, e in pairs)}. Where one county is released, the mean error of a "
        f"block's total is {_number(block['one pass, ours']):.3g} with one pass and "
        f"{_number(block['two passes']):.3g} with two."
    )


OPENINGS = {
    "taxi": Opening(
        "Which method has the smallest errors on taxi trips by zone, and do the printed errors "
        "follow from the methods?",
        _taxi,
    ),
    "p12": Opening(
        "Which method has the smaller error at equal privacy, for a table of sex by age with exact "
        "totals?",
        _p12,
    ),
    "two-bin": Opening(
        "Two counts have an exact total: are the printed means, variances and losses right?",
        _two_bin,
    ),
    "simplex": Opening(
        "One total is exact: does conditioning always leave a smaller variance than imaging?",
        _simplex,
    ),
    "belief": Opening(
        "Do the statements of both papers hold on small random laws, in exact arithmetic?", _belief
    ),
    "coverage": Opening(
        "Do intervals of 90% contain the true count in 90% of releases, for counts of every size?",
        _coverage,
    ),
    "inversion": Opening(
        "Do the intervals that are proved under bounds hold on a state's census blocks, and how "
        "wide are they?",
        _inversion,
    ),
    "best-table": Opening(
        "How large are the errors of the table of least expected error, beside those of imaging "
        "and TopDown?",
        _best_table,
    ),
    "bureau": Opening(
        "Does TopDown lose accuracy if it fits all margins in one pass, and not the totals first?",
        _bureau,
    ),
}
