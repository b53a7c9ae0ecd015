"""The parts of a release, counted and drawn by Spark's workers.

The driver draws the top and assembles the files. Spark only counts, stores counts in the stage, and
draws each part from its order there. Nothing that is keyed or confidential is in a query, in a
setting or in a function that is sent to the workers. `docs/decisions/0024-drawing-in-spark.md`
says why.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from congenial import __version__, errors
from congenial.data.counts import RowSource, open_source
from congenial.data.frames import failures, quiet
from congenial.data.sources import locate
from congenial.data.staged_counts import Staging, check_summary, open_tallied
from congenial.domain.tree import Path as NodePath
from congenial.domain.tree import Tree
from congenial.durability.signals import uninterrupted
from congenial.errors import ArgumentError, CongenialError, DataError, ReleaseError
from congenial.plan.cut import Cut
from congenial.plan.plan import Plan
from congenial.randomness import derived_key, fresh_key
from congenial.releases.making.drawn_files import COUNTS, DRAWN, ORDERS, Drawing, PartOrder
from congenial.releases.making.order import Order
from congenial.releases.making.part_files import RowsHere
from congenial.releases.making.part_rows import DrawnPart, PartLaw
from congenial.types import IntArray

T = TypeVar("T")
# Settings of Spark, each with the value that drawing needs, the value if it is not set, and why.
_SETTINGS = (
    (
        "spark.io.encryption.enabled",
        "true",
        "false",
        "Spark would write counts to disks unencrypted",
    ),
    ("spark.speculation", "false", "false", "Spark would draw a part twice at once"),
)
_DRAWN = "part bigint, digest string, error string, message string"


@contextmanager
def rows_in_spark(cut: Cut, order: Order, session: object) -> Iterator[RowsInSpark]:
    """Yield the rows of a release in parts that Spark counts and draws; erase the stage after.

    Raises ArgumentError and ReleaseError if Spark is not as drawing needs it.
    """
    spark = _checked(session)
    if order.frame is None:
        order = replace(order, frame=_read(spark, cut.plan, order.base))
    stage = order.place.absolute().with_suffix(".stage")
    try:
        with uninterrupted():
            stage.mkdir(mode=0o700)
            for name in (COUNTS, ORDERS, DRAWN):
                (stage / name).mkdir(mode=0o700)
        yield RowsInSpark(cut, order, spark, stage)
    finally:
        with uninterrupted():
            _erase(stage)


def _erase(stage: Path) -> None:
    """Remove a stage; a task that still runs can write nothing there once the name is gone."""
    gone = stage.with_suffix(".erased")
    if stage.exists():
        os.rename(stage, gone)
    shutil.rmtree(gone, ignore_errors=True)


def _checked(session: object) -> Any:
    """Return a session of Spark whose settings let it draw."""
    conf = getattr(session, "conf", None)
    if not type(session).__module__.startswith("pyspark.") or conf is None:
        raise ArgumentError(
            f"on is a {type(session).__name__}; give a session of Spark, such as "
            "SparkSession.builder.getOrCreate()."
        )
    for name, needed, otherwise, why in _SETTINGS:
        found = str(conf.get(name, otherwise)).casefold()
        if found != needed:
            raise ReleaseError(
                f"{name} is {found}, so that {why}; start Spark with {name}={needed}."
            )
    return session


def _read(spark: Any, plan: Plan, base: Path) -> Any:
    """Open the rows of a plan's source in Spark."""
    files = locate(base, plan.data.source, "data.source")
    if any(file.suffix != ".parquet" for file in files):
        raise DataError(
            f"data.source is {plan.data.source!r}, and Spark reads Parquet files only, whose types "
            "are fixed; write the rows as Parquet, or give them as `frame`."
        )
    return _tried(
        lambda: spark.read.parquet(*(file.absolute().as_uri() for file in files)),
        "read the rows",
    )


@dataclass(eq=False)
class RowsInSpark:
    """The rows of a release in parts that Spark counts and draws; made by `rows_in_spark`."""

    cut: Cut
    order: Order
    spark: Any
    stage: Path
    keyed = True
    # The file of each part's counts and the number of its node's children, by the node's path.
    found: dict[NodePath, tuple[str, int]] = field(default_factory=dict, repr=False)

    @contextmanager
    def opened(self) -> Iterator[RowSource]:
        """Open the rows, counted down to the cut; Spark runs when the counts are used."""
        cut, order = self.cut, self.order
        with open_source(cut.plan, base=order.base, frame=order.frame) as rows:
            groups = rows.groups if isinstance(rows, RowSource) else None
            if not isinstance(rows, RowSource) or groups is None or groups.rows is None:
                raise ArgumentError("frame is no dataframe of Spark; give one, or leave `on` out.")
            staging = Staging(
                cut.plan,
                order.base.absolute(),
                tuple(rows.known),
                rows.shown,
                replace(groups, frame=None, rows=None),
                cut.depth,
                self.stage / COUNTS,
            )
            frame = groups.rows.to_native()
        plan, known = cut.top_plan(cut.depth), staging.known
        tally = partial(self._staged, staging, frame)
        with open_tallied(plan, order.base, tally, shown=staging.shown, known=known) as top:
            yield top

    def _staged(self, staging: Staging, frame: Any) -> Any:
        """Count the rows in Spark and store the counts of each part, once."""

        def tally(batches: Iterable[Any]) -> Iterator[Any]:
            for table in staging.tallied(batches):
                yield from table.to_batches()

        def store(part: Any) -> Any:
            return staging.stored(part)

        def run() -> Any:
            parts = frame.mapInArrow(tally, staging.tally_schema).groupBy(*staging.keys)
            return parts.applyInArrow(store, staging.summary_schema).toArrow()

        summary = _tried(run, "count the rows")
        check_summary(staging.plan, self.order.base, staging.shown, summary)
        for row in summary.select(["kept", *staging.keys, "file", "children"]).to_pylist():
            if row["kept"]:
                path = tuple(row[key] for key in staging.keys)
                self.found[path] = row["file"], row["children"]
        return summary

    def children(self, top: Tree) -> IntArray:
        """Return the number of children of each cut node of the top."""
        if self.cut.plan.hierarchy.domain != "data":
            return RowsHere(self.cut, self.order).children(top)
        at = np.flatnonzero(top.level == self.cut.depth).tolist()
        return np.array([self.found[top.path(v)[1:]][1] for v in at], dtype=np.int64)

    def drawn(
        self, law: PartLaw, top: Tree, counts: IntArray, values: IntArray
    ) -> Iterator[DrawnPart]:
        """Draw all parts in Spark; then yield them, if each was drawn in one way only."""
        drawing = Drawing(
            law, self.order.base.absolute(), self.stage, self.order.randomness.private
        )
        at = np.flatnonzero(top.level == law.depth).tolist()
        master = fresh_key(self.order.randomness)
        for number, node in enumerate(at):
            path = top.path(node)[1:]
            file, _ = self.found.get(path, (None, 0))
            key = derived_key(master, str(number).encode())
            order = PartOrder(path, file, int(counts[node]), int(values[node]), key)
            drawing.write_order(number, order)
        self.order.notify(f"drawing {len(at):,} parts in Spark")
        rows = self._run(drawing, len(at))
        for number, digest in enumerate(committed(rows, drawing, len(at))):
            yield drawing.read(number, digest)

    def _run(self, drawing: Drawing, parts: int) -> list[dict[str, Any]]:
        version = __version__

        def task(batches: Iterable[Any]) -> Iterator[Any]:
            for batch in batches:
                for number in batch.column(0).to_pylist():
                    yield drawn_on_worker(drawing, version, number)

        numbers = self.spark.range(0, parts, 1, parts)
        found = _tried(lambda: numbers.mapInArrow(task, _DRAWN).toArrow(), "draw the parts")
        rows: list[dict[str, Any]] = found.to_pylist()
        return rows


def drawn_on_worker(drawing: Drawing, version: str, number: int) -> Any:
    """Draw one part on a worker; return the digest, or the error that the driver is to raise."""
    import pyarrow as pa

    digest, error, message = None, None, None
    try:
        if version != __version__:
            raise ReleaseError(
                f"the driver has congenial {version}, and a worker has {__version__}; install one "
                "version everywhere."
            )
        digest = drawing.draw(number)
    except CongenialError as caught:
        error, message = type(caught).__name__, str(caught)
    names = ("part", "digest", "error", "message")
    row = dict(zip(names, (number, digest, error, message), strict=True))
    kinds = [pa.int64(), pa.string(), pa.string(), pa.string()]
    return pa.RecordBatch.from_pylist([row], pa.schema(list(zip(names, kinds, strict=True))))


def committed(rows: list[dict[str, Any]], drawing: Drawing, parts: int) -> list[str]:
    """Return the digest of each part; refuse parts that were not drawn in exactly one way."""
    for row in rows:
        if row["error"] is not None:
            kind = getattr(errors, row["error"], None)
            raise (kind if isinstance(kind, type) else ReleaseError)(row["message"])
    found = {row["part"]: row["digest"] for row in rows}
    attempts = drawing.attempts()
    if len(rows) != parts or set(found) != set(range(parts)):
        raise ReleaseError(
            "Spark did not draw each part exactly once; nothing is published, and the debit stays. "
            "Release again."
        )
    if any(attempts.get(number) != {digest} for number, digest in found.items()):
        raise ReleaseError(
            "two attempts at a part of the release differ; nothing is published, and the debit "
            "stays. See that all workers have the same processors and libraries, and release again."
        )
    return [found[number] for number in range(parts)]


def _tried(work: Callable[[], T], what: str) -> T:
    """Run a query of Spark; its own error may quote a cell, so it is not shown."""
    try:
        with quiet():
            return work()
    except CongenialError:
        raise
    except failures():
        pass  # outside the handler, whose error may quote a cell
    raise ReleaseError(
        f"Spark failed to {what}, and its log says why: for example, a worker has no room on its "
        "disk, does not have congenial installed, or does not see the directory of the release. "
        "Nothing is published."
    )
