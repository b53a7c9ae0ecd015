"""Worlds of the studies of coverage: counts, noise, and every method on draws of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numba
import numpy as np

from congenial.domain.tree import Tree
from congenial.exhibits.exhibit import Cell, Exhibit
from congenial.exhibits.files import as_rows
from congenial.randomness import seeded
from congenial.types import IntArray
from papers.studies.coverage_methods import INVERSION
from papers.studies.coverage_tables import tables
from papers.studies.coverage_tallies import Tally, tallies
from papers.studies.sources import blocks
from papers.studies.study import DIGITS, replicates

# Below this share of the replicates one county stands for the state.
_WHOLE, _COUNTY = 0.05, "53067"
_MOST_WORKERS = 8
METHODS = (
    "Conditioning draws its own releases: once with sums alone, and once also with no count below "
    "0. All other methods get the same measurements. Error margins are exact for conditioning on "
    "sums alone and for measurements, whose noise has a known law. For L2, they are those of a "
    "normal law with the spread of simulated images. For conditioning on bounds, for L2 with no "
    "count below 0 and for TopDown, no error margins are proved. The study takes those that a "
    "user might take: the error margins without bounds, or those of one measurement. The posterior "
    "of a release that was conditioned on bounds is that of `read_release`, fitted to the released "
    "counts. Inversion gives the intervals of such releases, which are proved for all counts"
)


@dataclass(frozen=True, eq=False)
class World:
    """Counts that are released many times.

    Attributes
    ----------
    name, title : str
        In names of tables, and in their titles.
    tree : Tree
    x : ndarray of int64, shape (n,)
    scale : float
        Of the noise on every node.
    inverted : bool
        Whether intervals by inversion are among the methods.
    replicates : int
        Of the full study.
    """

    name: str
    title: str
    tree: Tree
    x: IntArray
    scale: float
    inverted: bool
    replicates: int = 1_000


def census_blocks(effort: float, scale: float, *, inverted: bool) -> World:
    """Return the people of Washington by census block; of one county for small efforts."""
    state = effort >= _WHOLE
    title = f"people by census block, {'Washington' if state else 'one county'}"
    return World("blocks", title, *blocks(None if state else _COUNTY), scale, inverted)


def measured(
    worlds: Sequence[World],
    seed: int,
    effort: float,
    *,
    workers: int | None,
    notify: Callable[[str], None],
) -> dict[str, tuple[Tally, ...]]:
    """Run every method on each of the worlds, which have seeds of their own.

    Parameters
    ----------
    worlds : sequence of World
    seed : int
    effort : float
        Share of the full study's replicates.
    workers : int, optional
        Threads, by default as many as numba uses (NUMBA_NUM_THREADS) and 8 at most, for the sake of
        memory. What is found does not depend on them.
    notify : callable
        Told how far it is.
    """
    if workers is None:
        workers = min(int(numba.config.NUMBA_NUM_THREADS), _MOST_WORKERS)
    # so small efforts make the first replicates of the whole
    seeds = seeded(seed).bits(len(worlds)).tolist()
    return {
        world.name: tallies(
            world.tree,
            world.x,
            world.scale,
            replicates(world.replicates, effort, least=4),
            seeded(one),
            inverted=world.inverted,
            workers=workers,
            notify=partial(_tell, notify, world.name),
        )
        for world, one in zip(worlds, seeds, strict=True)
    }


def _tell(notify: Callable[[str], None], name: str, how_far: str) -> None:
    notify(f"{name}: {how_far}")


def told(name: str, made: tuple[Tally, ...]) -> str:
    """Return what the tallies of one world come to: a table with a row for each method."""
    by = {tally.method: tally for tally in made}
    shown = as_rows(overview(tables(name, name, made)), DIGITS)
    return (
        f"**On {name}.** The first row has the coverage of exact error margins, the others that of "
        "all other intervals. Coverage is for the worst and the best size of the true count, and "
        "for all leaves. Next are the mean width of an interval and the mean absolute error of a "
        "leaf. Bias is the mean of estimate less count. It is for the top tenth of the true "
        "counts, for the top tenth of the estimates, and for that tenth of the estimates where it "
        f"is largest.\n\n{shown}\n\n"
        f"{_of_inversion(by)}"
    ).strip()


def overview(found: Sequence[Exhibit]) -> Exhibit:
    """Return a row for each method, from the tables of one world."""
    coverage, _, _, bias, estimate = found
    rows: list[tuple[Cell, ...]] = []
    for at, method in enumerate(bias.column("method")):
        own = [row for row in coverage.rows if row[0] == method]
        (shares,) = (row[3:] for row in own if row[2] == "coverage")
        (wide,) = (row[-1] for row in own if row[2] == "mean width")
        width = wide if isinstance(wide, float) and np.isfinite(wide) else None  # if refused
        sizes = [float(share) for share in shares[:-1] if isinstance(share, float)]
        true, given = (
            [float(cell) for cell in table.rows[at][-11:-1] if isinstance(cell, float)]
            for table in (bias, estimate)
        )
        largest = max(given, key=abs, default=None)
        error = bias.rows[at][2]
        ends = (true[-1], given[-1], largest)
        rows.append((method, min(sizes), max(sizes), shares[-1], width, error, *ends))
    columns = (
        *("method", "worst size", "best size", "all leaves", "mean width", "error"),
        *("bias, top counts", "bias, top estimates", "largest bias"),
    )
    return Exhibit("overview", "Every method", columns, tuple(rows))


def _of_inversion(by: dict[str, Tally]) -> str:
    if INVERSION not in by:
        return ""
    found, free = by[INVERSION], by["conditioning, adds up"]
    known = np.isfinite(found.width[:, -1])
    refused = int((~known).sum())
    if refused == known.size:
        return "Inversion is refused in every replicate, which counts as covered. "
    levels = found.levels[known].mean(axis=0)
    without = (
        f"It is refused in {refused:,} of the {known.size:,} replicates. These are left out here, "
        "and count as covered, without an end, in the tables. "
        if refused
        else ""
    )
    return (
        f"Intervals by inversion cover {levels.min():.1%} to {levels.max():.1%} of the nodes of a "
        f"level. For leaves, their mean width is {found.width[known, -1].mean():.1f}, compared "
        f"with {free.width[:, -1].mean():.1f} without bounds. {without}"
    )
