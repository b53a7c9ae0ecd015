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
    'Conditioning draws its own releases, of two kinds: in "adds up", counts only add up; in "≥ 0 '
    'too", no count is negative either. Imaging, TopDown and the posteriors "flat" and "fitted" '
    "all get "
    "the same measurements. Error margins are exact for conditioning without bounds and for "
    "measurements, because the law of their errors is known. For L2 imaging, they come from a "
    "normal law, with a variance from simulated images. For conditioning on bounds, for L2 imaging "
    "with no negative count and for TopDown, no error margins are proved. For the first two, the "
    "study takes the error margins of the same method without bounds. For TopDown, it takes the "
    "error margins of one measurement. Two more methods start from releases that were conditioned "
    "on bounds: the posterior by `read_release`, whose prior is fitted to the released counts, and "
    "inversion"
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
        f'**On {name}.** The error margins of rows "conditioning, adds up" and "measurements" are '
        "exact. The first three columns are coverage: in the size of true count "
        "where it is lowest, in the size where it is highest, and over all leaves. The error is "
        "the mean absolute error of a leaf. The last three columns are bias, each in a tenth "
        "of the leaves: the tenth with the largest true counts; the tenth with the largest "
        "estimates; and, of all tenths by estimate, the one whose bias is farthest from "
        f"0.\n\n{shown}\n\n{_of_inversion(by)}"
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
        *("method", "lowest coverage", "highest", "all leaves", "mean width", "error"),
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
        f"Intervals by inversion cover {levels.min():.1%} to {levels.max():.1%} of the nodes of "
        f"each level. For leaves, their mean width is {found.width[known, -1].mean():.1f}, "
        f"compared with {free.width[:, -1].mean():.1f} for conditioning without bounds. {without}"
    )
