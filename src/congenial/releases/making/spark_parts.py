"""The parts of a release, counted and drawn by Spark's workers.

The driver draws the top and assembles the files. Spark only counts, stores counts in the stage, and
works on each part by the order there. Nothing that is keyed or confidential is in a query, in a
setting or in a function that is sent to the workers. `docs/decisions/0024-drawing-in-spark.md`
says why.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np

from congenial import __version__, errors
from congenial.data.counts import RowSource, open_source
from congenial.data.frames import failures, quiet
from congenial.data.sources import locate
from congenial.data.staged_counts import Staging, check_summary, open_tallied
from congenial.domain.tree import Path as NodePath
from congenial.domain.tree import Tree
from congenial.domain.workers import Arguments, Workers
from congenial.durability.signals import uninterrupted
from congenial.errors import ArgumentError, CongenialError, DataError, ReleaseError
from congenial.plan.cut import Cut
from congenial.plan.plan import Plan
from congenial.randomness import Randomness, derived_key, fresh_key, keyed
from congenial.releases.making.drawn_files import (
    COUNTS,
    ORDERS,
    REFUSED,
    RESULTS,
    Drawing,
    Moving,
    PartMeasuring,
    PartOrder,
    PartStep,
    Sending,
    Shaping,
    Stage,
)
from congenial.releases.making.joined_tables import joining
from congenial.releases.making.order import Order
from congenial.releases.making.part_draws import DrawnRows
from congenial.releases.making.part_files import RowsHere
from congenial.releases.making.part_law import CutNode, FromTop, PartLaw
from congenial.releases.making.part_rows import lines_above, tables_of
from congenial.releases.part_models import PartFacts, PartShape
from congenial.types import IntArray

if TYPE_CHECKING:
    from congenial.imaging.part_values import PartValues, SteppedValues
    from congenial.releases.making.measured_parts import MeasuredParts
    from congenial.sum_network.joined import Outside, PartMessage

T = TypeVar("T")
Result_co = TypeVar("Result_co", covariant=True)
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
_DONE = "part bigint, digest string, error string, message string"


class _Reading(Protocol[Result_co]):
    """A step of the work on a part, whose result can be read."""

    @property
    def name(self) -> str: ...

    def __call__(self, number: int) -> str: ...

    def read(self, number: int, digest: str) -> Result_co: ...


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
            for name in (COUNTS, ORDERS, RESULTS):
                (stage / name).mkdir(mode=0o700)
        shared = Stage(cut.plan, cut.depth, order.base.absolute(), stage)
        yield RowsInSpark(cut, order, spark, shared)
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
            "are fixed; write the rows as Parquet, or release a frame in Python "
            "(docs/how-to/spark.md)."
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
    stage: Stage
    keyed = True
    asked: int = 0  # How often messages were asked for.
    drawn: int = 0  # How often the top was drawn.
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
                self.stage.place / COUNTS,
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

    def shapes(self, nodes: Sequence[CutNode]) -> list[PartShape]:
        """Return the shape of the part below each node."""
        orders = (PartOrder(node, self._file(node)) for node in nodes)
        step = Shaping(self.stage)
        return list(_read_all(step, self._done(step, orders, len(nodes), "looking at")))

    def messages(
        self, law: PartLaw, nodes: Sequence[CutNode], outsides: Sequence[Outside]
    ) -> list[PartMessage]:
        """Work out the messages of all parts in Spark."""
        self.asked += 1
        orders = (
            PartOrder(node, self._file(node), outside)
            for node, outside in zip(nodes, outsides, strict=True)
        )
        step = Sending(self.stage, law, self.asked)
        return list(_read_all(step, self._done(step, orders, len(nodes), "preparing")))

    def workers(self, place: Path) -> tuple[PartValues, Workers]:
        """Return Spark's workers, and files that they read."""
        from congenial.imaging.part_values import SteppedValues

        kept = SteppedValues(place)
        return kept, WorkersInSpark(self, kept)

    def measure(self, parts: MeasuredParts, nodes: Sequence[CutNode]) -> int:
        """Measure all parts in Spark."""
        keys = self._keys()
        orders = (PartOrder(node, self._file(node), key=next(keys)) for node in nodes)
        step = PartMeasuring(self.stage, parts.law, self.order.randomness.private)
        return parts.keep(_read_all(step, self._done(step, orders, len(nodes), "measuring")))

    def write(
        self, law: PartLaw, top: DrawnRows, nodes: Sequence[CutNode], given: Sequence[FromTop]
    ) -> list[PartFacts] | None:
        """Draw all parts in Spark; then join their files, if each was drawn in one way only.

        None if a part refuses the top's draw.
        """
        self.drawn += 1
        keys = self._keys()
        orders = (
            PartOrder(
                node,
                self._file(node),
                given=one,
                above=tuple(above.items()),
                key=next(keys),
            )
            for node, one, above in zip(nodes, given, lines_above(law, top), strict=True)
        )
        step = Drawing(self.stage, law, self.order.randomness.private, self.drawn)
        digests, facts = self._done(step, orders, len(nodes), "drawing"), list[PartFacts]()
        if REFUSED in digests:
            return None
        with ExitStack() as stack:
            tables = {
                table: stack.enter_context(joining(self.order.place, table, columns))
                for table, columns in tables_of(law, top).items()
            }
            for part in _read_all(step, digests):
                for table, append in tables.items():
                    append(part.tables[table])
                facts.append(part.facts)
        return facts

    def _keys(self) -> Iterator[bytes]:
        """Yield a key for each part, from a new master key."""
        master = fresh_key(self.order.randomness)
        return (derived_key(master, str(number).encode()) for number in count())

    def _file(self, node: CutNode) -> str | None:
        """Return the file of a part's counts; None if it has no row."""
        return self.found.get(node.path, (None, 0))[0]

    def _done(
        self, step: _Reading[T], orders: Iterable[PartOrder], parts: int, doing: str
    ) -> list[str]:
        """Do a step of the work on all parts in Spark; return the digest of each result."""
        self.stage.write_orders(orders)
        return self.done(step, parts, doing)

    def done(self, step: _Reading[T], parts: int, doing: str) -> list[str]:
        """Do a step whose orders are written."""
        self.order.notify(f"{doing} {parts:,} parts in Spark")
        version = __version__

        def task(batches: Iterable[Any]) -> Iterator[Any]:
            for batch in batches:
                for number in batch.column(0).to_pylist():
                    yield done_on_worker(step, version, number)

        numbers = self.spark.range(0, parts, 1, parts)
        found = _tried(lambda: numbers.mapInArrow(task, _DONE).toArrow(), "draw the parts")
        return committed(found.to_pylist(), self.stage.attempts(step.name), parts)


@dataclass(eq=False)
class WorkersInSpark:
    """Spark's workers on the measurements of parts, see `domain.workers`."""

    rows: RowsInSpark
    kept: SteppedValues
    steps: int = 0  # How many were done.

    def run(self, doing: str, step: Callable[..., T], given: Arguments) -> list[T]:
        """Do a step for each part that it is given, in Spark."""
        if not given:
            return []
        self.steps += 1
        stage, name = self.rows.stage, f"moved-{self.steps}"
        self.kept.begin(name)
        stage.write_arguments(given)
        moving = Moving(stage, name, step, self.kept)
        found = list(_read_all(moving, self.rows.done(moving, len(given), doing)))
        self.kept.end()
        stage.forget(name)
        return found

    def source(self, rng: Randomness) -> Randomness:
        """Return words from a new key, so that a step that is repeated has the same words."""
        return keyed(fresh_key(rng), private=rng.private)


def _read_all(step: _Reading[T], digests: Sequence[str]) -> Iterator[T]:
    """Yield the results of a step, in order."""
    return (step.read(number, digest) for number, digest in enumerate(digests))


def done_on_worker(step: PartStep, version: str, number: int) -> Any:
    """Work on one part on a worker; return the digest, or the error that the driver is to raise."""
    import pyarrow as pa

    digest, error, message = None, None, None
    try:
        if version != __version__:
            raise ReleaseError(
                f"the driver has congenial {version}, and a worker has {__version__}; install one "
                "version everywhere."
            )
        digest = step(number)
    except CongenialError as caught:
        error, message = type(caught).__name__, str(caught)
    names = ("part", "digest", "error", "message")
    row = dict(zip(names, (number, digest, error, message), strict=True))
    kinds = [pa.int64(), pa.string(), pa.string(), pa.string()]
    return pa.RecordBatch.from_pylist([row], pa.schema(list(zip(names, kinds, strict=True))))


def committed(
    rows: list[dict[str, Any]], attempts: Mapping[int, set[str]], parts: int
) -> list[str]:
    """Return the digest of each part's result; refuse parts that have not exactly one."""
    for row in rows:
        if row["error"] is not None:
            kind = getattr(errors, row["error"], None)
            raise (kind if isinstance(kind, type) else ReleaseError)(row["message"])
    found = {row["part"]: row["digest"] for row in rows}
    if len(rows) != parts or set(found) != set(range(parts)):
        raise ReleaseError(
            "Spark did not work on each part exactly once; nothing is published, and a debit "
            "stays. Release again."
        )
    if any(attempts.get(number) != {digest} for number, digest in found.items()):
        raise ReleaseError(
            "two attempts at a part of the release differ; nothing is published, and a debit "
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
