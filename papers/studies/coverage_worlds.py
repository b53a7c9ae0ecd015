"""Worlds of the studies of coverage: counts, noise, and every method on draws of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numba
import numpy as np

from congenial.domain.tree import Tree
from congenial.randomness import seeded
from congenial.types import FloatArray, IntArray
from papers.studies.coverage_methods import INVERSION
from papers.studies.coverage_tallies import Tally, tallies
from papers.studies.sources import blocks
from papers.studies.study import replicates

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
    """Return what the tallies of one world come to, in a paragraph."""
    by = {tally.method: tally for tally in made}
    free, flat, fitted, table = (
        by[method]
        for method in (
            "conditioning, adds up",
            "posterior, flat",
            "posterior, fitted",
            "conditioning, ≥ 0, posterior",
        )
    )
    worst = {t.method: float(np.nanmin(t.covered.mean(axis=0))) for t in made}
    least = min(worst, key=lambda method: worst[method])

    def at(values: FloatArray, decile: int) -> str:
        return f"{values[:, decile].mean():+.2f}"

    def most(tally: Tally) -> str:
        means = tally.surplus.mean(axis=0)
        return f"{means[np.argmax(np.abs(means))]:+.2f}"

    return (
        f"On {name}, the coverage of exact error margins is {_range(free)} by class of the true "
        f"count, and {free.covered[:, -1].mean():.1%} over all leaves. The coverage of the fitted "
        f"posterior is {_range(fitted)} by class and {fitted.covered[:, -1].mean():.1%} over all "
        f"leaves; that of the flat posterior {_range(flat)} and {flat.covered[:, -1].mean():.1%}. "
        f"The posterior of a release conditioned on bounds has {_range(table)} by class, "
        f"{table.covered[:, -1].mean():.1%} over all leaves, and {_sums(table)} by level for sums "
        f"above the leaves. {_of_inversion(by)}"
        f"The lowest coverage is {worst[least]:.1%}, of {least}. In the top decile of the true "
        f"count, the mean of the flat posterior is off by {at(flat.bias, -1)}, and that of the "
        f"fitted posterior by {at(fitted.bias, -1)}. In the top decile of the estimate, they are "
        f"off by {at(flat.surplus, -1)} and {at(fitted.surplus, -1)}; in the decile of the "
        f"estimate where each is off most, by {most(flat)} and {most(fitted)}. Mean absolute "
        f"errors of a leaf: flat posterior {flat.error.mean():.2f}, fitted posterior "
        f"{fitted.error.mean():.2f}, measurements {by['measurements'].error.mean():.2f}, L2 "
        f"{by['L2, normal'].error.mean():.2f}, L2 with no count below 0 "
        f"{by['L2 ≥ 0, normal'].error.mean():.2f}, TopDown "
        f"{by['TopDown, raw noise'].error.mean():.2f}, conditioning {free.error.mean():.2f}, "
        "conditioning with no count below 0 "
        f"{by['conditioning, ≥ 0 too'].error.mean():.2f}."
    )


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


def _range(tally: Tally) -> str:
    shares = tally.covered[:, :-1].mean(axis=0)
    return f"{np.nanmin(shares):.1%} to {np.nanmax(shares):.1%}"


def _sums(tally: Tally) -> str:
    shares = tally.levels[:, :-1].mean(axis=0)
    return f"{shares.min():.1%} to {shares.max():.1%}"
