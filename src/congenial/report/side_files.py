"""Counts of a large release that its page loads when their names are searched for.

The page lists whole levels from the top. The other counts are in files beside it, in the order of
the names of their places. A file is a script, because a page that is opened from a disk can load
nothing else.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from congenial.domain.tree import Path, Tree
from congenial.domain.workload import Workload
from congenial.releases.reading import Release
from congenial.types import BoolArray, FloatArray, IntArray

# Most counts of a page without side files, and the counts of a side file.
MOST, EACH = 20_000, 4_000
# Number of quantiles by which a page says how many counts of a level are accurate enough.
_QUANTILES = 201
# Characters that could end a script element, open a comment in it, or end a line.
_IN_SCRIPT = {ord(c): f"\\u{ord(c):04x}" for c in "<>&\u2028\u2029"}


@dataclass(frozen=True, eq=False)
class SideFiles:
    """The counts that a page does not list."""

    listed: BoolArray  # shape (n,): Whether the page lists a count itself.
    scripts: tuple[str, ...]  # One for each file.
    first: tuple[str, ...]  # The first place in each file, in lower case; ascending.
    # Names of the levels that the page does not list, with quantiles of each count's relative
    # error margin, None for infinity, and the number of counts that have one.
    levels: dict[int, tuple[list[float | None], int]]


def in_script(columns: object) -> str:
    """Return plain data as JSON that is safe inside a script element."""
    return json.dumps(columns, ensure_ascii=False, separators=(",", ":")).translate(_IN_SCRIPT)


def listed(level: IntArray) -> BoolArray:
    """Return which counts a page lists: whole levels from the top, at most `MOST` counts."""
    sizes = np.cumsum(np.bincount(level))
    return np.asarray(level <= max(int(np.searchsorted(sizes, MOST, side="right")) - 1, 0))


def side_files(
    release: Release, names: Sequence[str], reach: FloatArray, measured: list[int | None] | None
) -> SideFiles | None:
    """Return the counts that the page about a release does not list; None if it lists all.

    `reach`, shape (n,), is the distance from each count to the farther end of its interval.
    """
    domain, values = release.domain, release.values
    if len(domain) <= MOST:
        return None
    shown = listed(domain.level)
    rest = np.flatnonzero(~shown)
    if not rest.size:
        return None
    paths = [domain.path(v) for v in rest.tolist()]
    keys = _places(domain, rest, paths)
    # JavaScript orders text by units of UTF-16
    order = sorted(range(rest.size), key=lambda at: (keys[at].encode("utf-16-be"), at))
    lower, upper = (release.rows.numbers(end).objects() for end in ("lower", "upper"))
    exact = release.model.determined
    scripts, first = [], []
    for number, start in enumerate(range(0, rest.size, EACH)):
        part = order[start : start + EACH]
        nodes = rest[part].tolist()
        above = (_above(paths[at], names[rest[at]]) for at in part)
        columns = {
            "name": [names[v] for v in nodes],
            "path": [" / ".join(path) for path in above],
            "level": domain.level[nodes].tolist(),
            "value": values[nodes].tolist(),
            "lower": [lower[v] for v in nodes],
            "upper": [upper[v] for v in nodes],
            "exact": exact[nodes].astype(int).tolist(),
            "measured": None if measured is None else [measured[v] for v in nodes],
        }
        scripts.append(f"congenial({number},{in_script(columns)});\n")
        first.append(keys[part[0]])
    levels = {}
    for depth in np.unique(domain.level[rest]).tolist():
        here = (domain.level == depth) & np.isfinite(reach)
        levels[depth] = _quantiles(reach[here], np.abs(values[here])), int(here.sum())
    return SideFiles(shown, tuple(scripts), tuple(first), levels)


def _places(domain: Tree | Workload, nodes: IntArray, paths: Sequence[Path]) -> list[str]:
    """Return the names of the counts' places in lower case, by which they are searched for.

    A name that occurs in most places, such as a cell's in every block, is no place's: the count is
    then searched for by the name above.
    """
    level = domain.level[nodes]
    if isinstance(domain, Workload):
        valued = np.array([bool(block.margin) for block in domain.blocks])[level]
        return [path[-2 if own else -1].lower() for path, own in zip(paths, valued, strict=True)]
    called: dict[int, int] = {}
    for depth in np.unique(level).tolist():
        below = [paths[at] for at in np.flatnonzero(level == depth).tolist()]
        apart = (
            at
            for at in range(depth, 0, -1)
            if 2 * len({path[at] for path in below}) > len({path[: at + 1] for path in below})
        )
        called[depth] = next(apart, depth)
    return [path[called[len(path) - 1]].lower() for path in paths]


def _above(path: Path, name: str) -> Path:
    """Return a path without the end of it that is shown as the count's name."""
    return next(path[:k] for k in range(len(path)) if "/".join(path[k:]) == name)


def _quantiles(reach: FloatArray, value: IntArray) -> list[float | None]:
    if not reach.size:
        return []
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.sort(np.where(reach == 0.0, 0.0, reach / value))
    at = np.linspace(0, share.size - 1, _QUANTILES).astype(np.int64)
    return [None if np.isinf(v) else round(v, 6) for v in share[at].tolist()]
