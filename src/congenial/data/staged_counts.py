"""Counts of the parts of a release, made and stored where an engine's workers are.

Each worker tallies rows as this process would, and packs its tally of each part into one cell. So
the engine moves few rows. Then each part's counts are stored as one file. Of a part, one line comes
back: the count of its node and the name of its file.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from congenial.data.counts import RowSource, check_tally, fill_tally
from congenial.data.lazy_frames import GroupQuery
from congenial.data.public_domain import BROKEN, level_columns, open_public
from congenial.data.sources import Connection, Relation, ask, connect
from congenial.domain.tree import Path as NodePath
from congenial.plan.plan import Plan

# Rows that a worker tallies at a time.
_AT_ONCE = 1_000_000


@dataclass(frozen=True)
class Staging:
    """All that a worker needs to tally rows; it holds no value of a row."""

    plan: Plan
    base: Path
    known: Sequence[str]  # Columns of the rows.
    shown: str  # The rows, as messages name them.
    groups: GroupQuery  # Without its frames.
    depth: int  # Of the level of which each node has one part.
    folder: Path  # Directory for the files of counts.

    @property
    def keys(self) -> list[str]:
        """Columns that name a part."""
        return list(level_columns(self.plan))[: self.depth]

    @property
    def tally_schema(self) -> str:
        """Columns of packed tallies, as Spark writes a schema."""
        return ", ".join([*(f"{name} string" for name in self.keys), "tally binary"])

    @property
    def summary_schema(self) -> str:
        """Columns of a summary, as Spark writes a schema."""
        names = ", ".join(f"{name} string" for name in level_columns(self.plan))
        numbers = "records decimal(38,0), children bigint"
        return f"kept boolean, fate string, {names}, {numbers}, file string"

    def tallied(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Tally Arrow batches of rows, many at a time; yield Arrow tables of packed tallies."""
        with connect() as connection:
            public = open_public(connection, self.plan, self.base)
            for table in _gathered(batches):
                connection.register("groups", table)
                relations: Iterable[Relation] = [self.groups.opened(connection, self.shown)]
                left = self.groups.condition
                source = RowSource(
                    connection, self.plan, public, self.known, self.shown, relations, left
                )
                fill_tally(source, source.needed)
                yield self._packed(connection)

    def _packed(self, connection: Connection) -> Any:
        """Pack the table `tally` into one cell for each part, beside the names of the part."""
        import pyarrow as pa

        names, keys = ", ".join(level_columns(self.plan)), ", ".join(self.keys)
        # a task that is repeated must have the same bytes, or an engine repeats the whole job
        whole = _arrow(
            connection,
            f"SELECT kept, fate, {names}, CAST(records AS DECIMAL(38,0)) AS records FROM tally",
            order=f"{names}, kept, fate",
        )
        sizes = _arrow(
            connection, f"SELECT {keys}, count(*) AS size FROM tally GROUP BY {keys}", order=keys
        )
        cells, begin = [], 0
        for size in sizes["size"].to_pylist():
            cells.append(_pack(whole.slice(begin, size)))
            begin += size
        return sizes.drop_columns("size").append_column("tally", pa.array(cells, pa.binary()))

    def stored(self, rows: Any) -> Any:
        """Store the packed tallies of one part as a file; return an Arrow table that summarises it.

        A summary has the counts down to the part's node. Of a deeper name it says whether there is
        one, as an empty text.
        """
        import pyarrow.parquet as pq

        names = list(level_columns(self.plan))
        with connect() as connection:
            connection.register("part", _unpacked(rows["tally"]))
            total = "CAST(sum(records) AS DECIMAL(38,0)) AS records FROM part"
            inside = f"SELECT kept, fate, {', '.join(names)}, {total} WHERE kept GROUP BY ALL"
            # a new name each time: an attempt that is repeated leaves the other's file alone
            handle, file = tempfile.mkstemp(dir=self.folder, suffix=".parquet")
            with os.fdopen(handle, "wb") as sink:
                pq.write_table(_arrow(connection, inside), sink)
            above, below = names[: self.depth], names[self.depth :]
            blanks = [f"CASE WHEN {name} IS NOT NULL THEN '' END AS {name}" for name in below]
            children = f"(SELECT count(DISTINCT {below[0]}) FROM part WHERE kept)"
            return _arrow(
                connection,
                f"SELECT *, {children} AS children, '{Path(file).name}' AS file FROM (SELECT kept, "
                f"fate, {', '.join([*above, *blanks])}, {total} GROUP BY ALL)",
            )


def _gathered(batches: Iterable[Any]) -> Iterator[Any]:
    """Yield Arrow tables of many batches each."""
    import pyarrow as pa

    found, size = [], 0
    for batch in batches:
        found.append(batch)
        size += batch.num_rows
        if size >= _AT_ONCE:
            yield pa.Table.from_batches(found)
            found, size = [], 0
    if found:
        yield pa.Table.from_batches(found)


def _pack(table: Any) -> bytes:
    """Write an Arrow table as bytes."""
    import pyarrow as pa

    sink, options = pa.BufferOutputStream(), pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_stream(sink, table.schema, options=options) as stream:
        stream.write_table(table)
    packed: bytes = sink.getvalue().to_pybytes()
    return packed


def _unpacked(cells: Any) -> Any:
    """Read packed tallies as one Arrow table."""
    import pyarrow as pa

    return pa.concat_tables(pa.ipc.open_stream(cell.as_buffer()).read_all() for cell in cells)


def _arrow(connection: Connection, sql: str, *, order: str = "") -> Any:
    """Run a query and return its rows as an Arrow table, ordered by some columns if any."""
    import pyarrow as pa

    ask(connection, f"CREATE OR REPLACE TEMP TABLE found AS {sql}", BROKEN)
    # a table of DuckDB does not keep the order of its rows
    sql = f"SELECT * FROM found ORDER BY {order}" if order else "SELECT * FROM found"
    return pa.table(connection.sql(sql).to_arrow_table())


def check_summary(plan: Plan, base: Path, shown: str, summary: Any) -> None:
    """Refuse rows that cannot be counted, by the summaries of all parts."""
    with open_tallied(plan, base, lambda: summary, shown=shown) as rows:
        fill_tally(rows, ())
        check_tally(rows.connection, plan, shown, some=True)


def read_staged(file: Path) -> Any:
    """Read the tally of a part as an Arrow table."""
    import pyarrow.parquet as pq

    return pq.read_table(file)


def no_rows(plan: Plan) -> Any:
    """Return the tally of a part without rows, as an Arrow table."""
    with connect() as connection:
        names = ", ".join(f"NULL::VARCHAR AS {name}" for name in level_columns(plan))
        return _arrow(
            connection,
            f"SELECT true AS kept, '' AS fate, {names}, 0::DECIMAL(38,0) AS records LIMIT 0",
        )


@contextmanager
def open_tallied(
    plan: Plan,
    base: Path,
    tally: Callable[[], Any],
    *,
    shown: str = "the frame",
    known: Sequence[str] = (),
    within: Sequence[NodePath] = (),
) -> Iterator[RowSource]:
    """Open rows that are tallied already; `tally` returns them, and is called when they are used.

    Of a tree, only nodes on the paths `within` and below them are counted, if any is given.
    """
    with connect() as connection:
        public = open_public(connection, plan, base)
        yield RowSource(connection, plan, public, known, shown, (), within=within, tallied=tally)
