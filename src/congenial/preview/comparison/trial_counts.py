"""The counts that methods are compared on: made up, public, or confidential on request.

Made-up counts depend on the plan's public tree and on the user's options, never on the confidential
rows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np

from congenial.data.counts import count
from congenial.data.sources import (
    ask,
    connect,
    identifier,
    literal,
    locate,
    matching,
    name_of,
    open_files,
    restrict,
)
from congenial.domain.tree import Tree
from congenial.domain.workload import Workload
from congenial.errors import ArgumentError, DataError
from congenial.invariants.margins import AtLeastAsMany
from congenial.plan.cross_table import comparison
from congenial.plan.plan import Plan
from congenial.randomness import Randomness, seeded
from congenial.releases.directory import STAMP
from congenial.releases.rows import without_apostrophe
from congenial.types import FloatArray, IntArray

# Made-up counts have the skew of real ones: 20 records a leaf, and log-normal shares of siblings,
# so that most leaves are empty or small. Public data, and counts made up for the same trees:
#
#                                    leaves of 0, 1-9, 10-99, more, in %    in the largest tenth
#     taxi trips by zone and hour    22   38   18   22                      85% of all records
#     made up                        38   41   18    4                      84%
#     Washington's blocks            39   14   38    8                      60%
#     made up                        56   32    9    2                      95%
#     cells of race and age by block 83   13    4    0                      95%
#
# Logs of the shares of nonempty siblings have standard deviations from 0.4 (tracts of a county) to
# 1.8 (zones of a borough): 1.1 at blocks, 0.9 at hours. Of all siblings, 4% to 70% are empty.
RECORDS = 20
SPREAD = 1.5
# Columns of a file of public counts that may hold the counts; a release calls its own "value".
VALUES = ("count", "value")
MOST_TOTAL, MOST_SPREAD = 2**52, 10.0
_KEY = "`counts`"


@dataclass(frozen=True, eq=False)
class Basis:
    """Counts that releases are simulated from."""

    counts: IntArray  # shape (n,)
    text: str  # Their origin, in a sentence.
    options: str  # Options of the command line that give these counts.
    stamp: str | None = None  # Set if the counts are confidential.


def find_basis(
    plan: Plan,
    tree: Tree | Workload,
    base: Path,
    *,
    total: int | None = None,
    counts: str | Path | None = None,
    rows: Literal["public", "confidential"] | None = None,
    spread: float = SPREAD,
    seed: int,
) -> Basis:
    """Return the counts to simulate on: given ones, else made-up ones."""
    given = {"total": total, "counts": counts, "rows": rows}
    there = [name for name, value in given.items() if value is not None]
    if len(there) > 1:
        raise ArgumentError(
            f"{there[0]} and {there[1]} both say which counts to simulate on; give one of them."
        )
    if rows not in (None, "public", "confidential"):
        raise ArgumentError(f"rows is {rows!r}; give 'public' or 'confidential'.")
    if rows is not None:
        return from_rows(plan, tree, base, public=rows == "public")
    if counts is None:
        found = made_up(tree, seed=seed, total=total, spread=spread)
        if plan.invariants.as_many and isinstance(tree, Workload):
            found = replace(found, counts=_compared(plan, tree, found.counts))
    elif isinstance(tree, Workload):
        raise ArgumentError(
            "counts names a file, but for a plan with a table no file can be read; give a total."
        )
    else:
        found = from_file(plan, tree, Path(counts), base, seed=seed, spread=spread)
    if plan.hierarchy.domain == "data":
        text = ", except for the names of the nodes, which the plan leaves unprotected"
        return replace(found, text=found.text + text)
    return found


def made_up(
    domain: Tree | Workload, *, seed: int, total: int | None = None, spread: float = SPREAD
) -> Basis:
    """Make up counts with a given total and heavy-tailed shares.

    Notes
    -----
    The children of a node share its count in proportion to independent log-normal weights, rounded
    by largest remainder, so that both branches and leaves have very different sizes.
    """
    tree = _with_cells(domain) if isinstance(domain, Workload) else domain
    whole = RECORDS * tree.leaves.size if total is None else total
    _check(whole, spread)
    counts = np.zeros(len(tree), dtype=np.int64)
    counts[tree.roots] = _shared(whole, np.ones(tree.roots.size))
    counts = _spread_out(tree, counts, 0, spread, seeded(seed))
    given = "" if total is not None else f" (by default {RECORDS} a leaf)"
    text = (
        f"made-up counts: {whole:,} records{given}, divided at each place among its "
        f"parts by random weights (their logarithms are normal, with standard deviation "
        f"{spread:g}); no row was read"
    )
    options = f"--spread {spread:g}" if total is None else f"--total {total} --spread {spread:g}"
    return Basis(domain.roll_up(counts[tree.leaves]).astype(np.int64), text, options)


def places(domain: Tree | Workload) -> Tree:
    """Return the hierarchy of a plan's places, with a table or without one."""
    found = domain.tables[0].geography if isinstance(domain, Workload) else domain
    if found is None:
        raise AssertionError("a plan's table has a geography")
    return found


def _with_cells(workload: Workload) -> Tree:
    """Return the places with each one's possible cells as its children."""
    tree = places(workload)
    areas = [tree.leaves[np.nonzero(table.possible)[0]] for table in workload.tables]
    return Tree.from_parents(np.concatenate([tree.parents, *areas]))


def _compared(plan: Plan, workload: Workload, counts: IntArray) -> IntArray:
    """Lower the smaller counts of the plan's comparisons until they are no larger."""
    for text in plan.invariants.as_many:
        pairs = AtLeastAsMany(*comparison(text), plan.place_names[-1]).pairs(workload)
        larger, smaller = counts[pairs].T
        wrong = smaller > larger
        limit, whole = (np.ones(len(workload), dtype=np.int64) for _ in range(2))
        limit[pairs[wrong, 1]], whole[pairs[wrong, 1]] = larger[wrong], smaller[wrong]
        cells = counts[workload.cells]
        for entries in workload.chain:
            # of an entry -1, which counts nothing, the last limit is read and not used
            cells = np.where(entries >= 0, cells * limit[entries] // whole[entries], cells)
        counts = workload.roll_up(cells)
    return counts


def from_file(
    plan: Plan, tree: Tree, file: Path, base: Path = Path(), *, seed: int, spread: float = SPREAD
) -> Basis:
    """Read public counts from a file, and make up those of the levels below it."""
    _check(1, spread)
    paths, values = _read(plan, file, base)
    depth = max(len(path) for path in paths)
    index = {tree.path(v): v for v in np.flatnonzero(tree.level == depth - 1).tolist()}
    counts = np.zeros(len(tree), dtype=np.int64)
    known: set[int] = set()
    for path, value in zip(paths, values, strict=True):
        if len(path) < depth:
            continue
        node = index.get(path)
        if node is None or node in known:
            fault = " twice" if node in known else ", which is no node of the plan"
            raise DataError(f"{file.name} names {'/'.join(path)!r}{fault}; correct that row.")
        known.add(node)
        counts[node] = value
    level = plan.level_names[depth - 1]
    text = f"public counts of level {level} from {file.name}"
    if len(known) < len(index):
        text += f" ({len(index) - len(known)} of its {len(index)} nodes are missing and count as 0)"
    if depth < tree.depth:
        text += (
            ", divided below that level by random weights (their logarithms are normal, with "
            f"standard deviation {spread:g})"
        )
        counts = _spread_out(tree, counts, depth - 1, spread, seeded(seed))
    whole = tree.roll_up(counts[tree.leaves]).astype(np.int64)
    options = f"--counts {file.name}"
    if depth < tree.depth:
        options += f" --spread {spread:g}"
    return Basis(whole, f"{text}; the plan's rows were not used", options)


def from_rows(plan: Plan, tree: Tree | Workload, base: Path, *, public: bool) -> Basis:
    """Count the plan's own rows."""
    counted = count(plan, base=base)
    before, after = places(tree), places(counted.domain)
    if not (before.same_as(after) and before.names == after.names):
        raise DataError("the domain changed while the rows were counted; compare again.")
    counts = np.asarray(counted.counts, dtype=np.int64)
    if public:
        return Basis(counts, "the plan's own rows, which the user declares public", "--public")
    text = "the plan's own confidential rows, on request: the numbers are not private"
    return Basis(counts, text, "--with-truth", STAMP)


def _check(total: int, spread: float) -> None:
    if not 1 <= total <= MOST_TOTAL:
        raise ArgumentError(f"total is {total}; give a number of records from 1 to 2^52.")
    if not 0.0 <= spread <= MOST_SPREAD:
        raise ArgumentError(f"spread is {spread!r}; give a number from 0 to {MOST_SPREAD:g}.")


def _spread_out(
    tree: Tree, counts: IntArray, depth: int, spread: float, source: Randomness
) -> IntArray:
    """Distribute the counts of one level over the levels below it."""
    out = counts.copy()
    starts, children = tree.children
    weights = np.exp(spread * _normals(len(tree), source))
    for level in range(depth, tree.depth - 1):
        for node in np.flatnonzero((tree.level == level) & ~tree.is_leaf):
            below = children[starts[node] : starts[node + 1]]
            out[below] = _shared(int(out[node]), weights[below])
    return out


def _normals(n: int, source: Randomness) -> FloatArray:
    """Standard normal numbers, shape (n,), by the method of Box and Muller."""
    words = source.bits(2 * n) >> np.uint64(11)
    uniform: FloatArray = (words.astype(np.float64) + 0.5) * 2.0**-53
    radius = np.sqrt(-2.0 * np.log(uniform[:n]))
    return np.asarray(radius * np.cos(2.0 * np.pi * uniform[n:]))


def _shared(total: int, weights: FloatArray) -> IntArray:
    """Whole numbers that add up to a total, in proportion to weights, by largest remainder."""
    exact = total * (weights / weights.sum())
    out: IntArray = np.floor(exact).astype(np.int64)
    left = max(total - int(out.sum()), 0)
    out[np.argsort(out - exact, kind="stable")[:left]] += 1
    out[int(np.argmax(out))] += total - int(out.sum())  # rounding errors of large totals
    return out


def find_counts(file: Path) -> list[Path]:
    """Find the file of public counts, or those of a pattern."""
    return locate(Path(), str(file), _KEY)


def _read(plan: Plan, file: Path, base: Path) -> tuple[list[tuple[str, ...]], list[int]]:
    """Paths from the root and counts of the rows of a file of public counts."""
    files = find_counts(file)
    own = [path for path in matching(base, plan.data.source) if path.exists()]
    if any(path.samefile(one) for path in own for one in files):
        raise DataError(
            f"{_KEY} is {str(file)!r}, the plan's own rows (data.source); give a file of "
            "public counts, or compare with `rows='public'` if the rows are public."
        )
    with connect() as connection:
        restrict(connection, files)
        table = open_files(connection, files, str(file), _KEY, public=True)
        folded = {name.casefold(): name for name in table.columns}
        value = next((folded[name] for name in VALUES if name in folded), None)
        levels = [folded[v.casefold()] for v in plan.hierarchy.levels if v.casefold() in folded]
        missing = [v for v in plan.hierarchy.levels[: len(levels)] if v.casefold() not in folded]
        if value is None or missing or not levels:
            raise DataError(
                f"{file.name} has the columns {', '.join(table.columns)}; give it "
                f"{', '.join(plan.hierarchy.levels)} and 'count', or at least the first levels."
            )
        names = ", ".join(name_of(column, table.columns[column]) for column in levels)
        unread = f"{file.name} cannot be read as a table of counts"
        query = f"SELECT TRY_CAST({identifier(value)} AS DOUBLE), {names} FROM {table.sql}"
        rows = ask(connection, query, unread)
        stamped = "note" in folded and ask(
            connection,
            f"SELECT 1 FROM {table.sql} WHERE {identifier(folded['note'])} = {literal(STAMP)}",
            unread,
        )
    if stamped:
        raise DataError(
            f"{file.name} is stamped {STAMP!r}, so its counts are not public; give a real release."
        )
    if not rows:
        raise DataError(f"{file.name} holds no rows; give it one for each node.")
    paths, values = [], []
    for number, *parts in rows:
        given = [part for part in parts if part is not None]
        # a release's CSV quotes names that a spreadsheet would read as formulas
        path = (plan.hierarchy.root, *map(without_apostrophe, given))
        if parts[: len(given)] != given:
            raise DataError(f"{file.name} has a row with a gap in its path; fill in every level.")
        if number is None or not 0 <= number <= MOST_TOTAL or number != int(number):
            raise DataError(
                f"{file.name} has no count from 0 to 2^52 for {'/'.join(path)!r}; give a whole "
                "number."
            )
        paths.append(path)
        values.append(int(number))
    return paths, values
