"""Counts of a large release that its page loads when their names are searched for.

The page lists whole levels from the top. The counts of the next levels are in files beside it, in
the order of the names of their places. A file is a script, because a page that is opened from a
disk can load nothing else.
"""

from __future__ import annotations

import heapq
import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import groupby, islice
from pathlib import Path

import numpy as np

from congenial.report.shown_counts import Labels, ShownCounts

# Most counts of a page without side files, and the counts of a side file.
MOST, EACH = 20_000, 4_000
# Most counts of all side files: 3,000 files, of half a gigabyte.
MOST_BESIDE = 12_000_000
# Characters that could end a script element, open a comment in it, or end a line.
_IN_SCRIPT = {ord(c): f"\\u{ord(c):04x}" for c in "<>&\u2028\u2029"}
_JSON = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))
# Places are sorted as JavaScript orders text: by units of UTF-16.
_ORDER = "utf-16-be"


@dataclass(frozen=True)
class SideFiles:
    """The files beside a page."""

    first: tuple[str, ...]  # The first place in each file, as `searched`; ascending.
    counts: int


@dataclass(frozen=True)
class Depths:
    """The deepest level whose counts the page lists, and the deepest one in side files."""

    listed: int
    beside: int


def in_script(columns: object) -> str:
    """Return plain data as JSON that is safe inside a script element."""
    return _JSON.encode(columns).translate(_IN_SCRIPT)


def depths_of(nodes: Sequence[int]) -> Depths:
    """Return where the counts of each level are, given the number of counts of each level.

    The page lists whole levels from the top, at most `MOST` counts, and at least one level.
    """
    sizes = np.cumsum(nodes)
    listed = max(int(np.searchsorted(sizes, MOST, side="right")) - 1, 0)
    beside = int(np.searchsorted(sizes, sizes[listed] + MOST_BESIDE, side="right")) - 1
    return Depths(listed, beside)


def side_files(pieces: Iterable[ShownCounts], labels: Labels, folder: Path) -> SideFiles:
    """Write the scripts of some counts to a folder; memory holds one piece of them at a time."""
    sorted_runs = []
    for number, piece in enumerate(pieces):
        sorted_runs.append(folder / f"{number}.sorted")
        with sorted_runs[-1].open("w", encoding="utf-8", newline="\n") as file:
            file.writelines(sorted(_lines(piece, labels)))
    found, first = 0, list[str]()
    with ExitStack() as stack:
        files = (
            stack.enter_context(run.open(encoding="utf-8", newline="\n")) for run in sorted_runs
        )
        lines = heapq.merge(*files)
        while part := [line[:-1].split("\t") for line in islice(lines, EACH)]:
            place, _, *columns = zip(*part, strict=True)
            runs = [[_text_of(each), len([*same])] for each, same in groupby(place)]
            body = ",".join((f'"place":{in_script(runs)}', *map(_column, _COLUMNS, columns)))
            script = folder / f"{len(first)}.js"
            script.write_text(f"congenial({len(first)},{{{body}}});\n", encoding="utf-8")
            first.append(_text_of(place[0]))
            found += len(part)
    for run in sorted_runs:
        run.unlink()
    return SideFiles(tuple(first), found)


_COLUMNS = ("name", "path", "level", "value", "lower", "upper", "exact", "measured")


def _text_of(place: str) -> str:
    """Return the place that a sorted line begins with."""
    return bytes.fromhex(place).decode(_ORDER)


def _column(name: str, cells: Sequence[str]) -> str:
    """Write one column of a script; a column without any cell is null."""
    return f'"{name}":{"[" + ",".join(cells) + "]" if any(cells) else "null"}'


def _lines(shown: ShownCounts, labels: Labels) -> Iterator[str]:
    """Yield a line for each count: its place and its number, by which it is sorted; its cells.

    No two counts have the same number, and a tab comes before every digit of a place.
    """
    columns = {name: column for name, column in shown.columns.items() if column is not None}
    none = [""] * len(shown.number)
    cells = zip(*(columns.get(name, none) for name in _COLUMNS[2:]), strict=True)
    levels = shown.level.tolist()
    named = zip(labels.of(shown), shown.number.tolist(), levels, cells, strict=True)
    for label, number, level, own in named:
        place = labels.place(label.path, level).encode(_ORDER).hex()
        texts = in_script(label.name), in_script(" / ".join(label.path[: label.start]))
        shows = ("null" if cell is None else str(cell) for cell in own)
        yield "\t".join((place, f"{number:012}", *texts, *shows)) + "\n"
