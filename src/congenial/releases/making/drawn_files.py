"""Parts of a release drawn on other machines; a file's name has the digest of its content.

A part is drawn from a key of its own, so that an attempt that is repeated draws the same words. The
words depend on the counts too: if two attempts saw different counts, the difference of their draws
would say nothing about the noise. The name of a file has the digest of its content. So two attempts
at a part that differ leave two files, and equal ones leave one.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import msgspec
import numpy as np

from congenial.data.staged_counts import no_rows, open_tallied, read_staged
from congenial.domain.tree import Tree
from congenial.domain.workers import Arguments
from congenial.errors import ReleaseError
from congenial.plan.plan import Plan
from congenial.randomness import derived_key, keyed
from congenial.releases import directory as files
from congenial.releases.making.joined_tables import PartFiles
from congenial.releases.making.part_draws import forest_below
from congenial.releases.making.part_law import CutNode, FromTop, PartLaw
from congenial.releases.making.part_rows import Table, draw_part
from congenial.releases.part_models import PartFacts, PartShape, shape_of
from congenial.sum_network.joined import Outside, PartMessage
from congenial.types import FloatArray, IntArray

if TYPE_CHECKING:
    from congenial.imaging.part_values import SteppedValues
    from congenial.releases.making.measured_parts import MeasuredPart

# Folders of a stage: the counts of the parts, one order for each part, and the results of workers.
COUNTS, ORDERS, RESULTS = "counts", "orders", "results"
# Digest of an empty result: the part refuses the top's draw.
REFUSED = hashlib.sha256().hexdigest()
_UNFINISHED = "unfinished-"
# Bytes read at a time.
_CHUNK = 1 << 20


class PartOrder(msgspec.Struct, frozen=True):
    """An order to a worker about one part. It is confidential, as the counts beside it are."""

    node: CutNode
    file: str | None  # File of its counts; None if it has no row.
    outside: Outside | None = None  # The rest of the tree, to work out the part's message.
    given: FromTop | None = None  # The top's draw, to draw the part; None to measure it.
    above: tuple[tuple[Table, bytes], ...] = ()  # Lines of the top that come before the part's.
    key: bytes = b""  # A key of this part alone, to measure it or to draw it.

    def __repr__(self) -> str:
        """Show no count and no key."""
        return f"PartOrder(path={self.node.path!r})"


class _Content(msgspec.Struct, frozen=True):
    """The first line of a drawn part: the facts about it, and the bytes of the files after it."""

    facts: PartFacts
    sizes: tuple[tuple[Table, int, int], ...]  # Of each table as CSV and as Parquet.


@dataclass(frozen=True, eq=False)
class WrittenPart:
    """A part that a worker drew: the facts about it, and its rows by table."""

    facts: PartFacts
    tables: Mapping[Table, PartFiles] = field(repr=False)


@dataclass(frozen=True)
class Stage:
    """A directory that all machines see, with the counts of the parts."""

    plan: Plan
    depth: int  # Of the level below whose nodes the parts lie.
    base: Path
    place: Path

    def write_orders(self, orders: Iterable[PartOrder]) -> None:
        """Write an order for each part, in the place of those before."""
        for number, order in enumerate(orders):
            (self.place / ORDERS / str(number)).write_bytes(_packed(order))

    def write_arguments(self, given: Arguments) -> None:
        """Write the arguments of a step for some parts, in the place of orders."""
        for number, one in enumerate(given.items()):
            (self.place / ORDERS / str(number)).write_bytes(pickle.dumps(one))

    def forget(self, step: str) -> None:
        """Remove the results of a step."""
        for path in (self.place / RESULTS).glob(f"{step}.*"):
            path.unlink()

    def order(self, number: int) -> tuple[PartOrder, Tree, IntArray]:
        """Return the order about a part, its nodes with those above them, and their counts."""
        written = (self.place / ORDERS / str(number)).read_bytes()
        order = _unpacked(written, PartOrder)
        plan, file = self.plan, order.file

        def tally() -> Any:
            return no_rows(plan) if file is None else read_staged(self.place / COUNTS / file)

        with open_tallied(plan, self.base, tally, within=[order.node.path]) as rows:
            domain, counts = cast(Tree, rows.domain), rows.counted.counts
        if counts[self.depth] != order.node.records:
            raise ReleaseError(
                "the staged counts of a part are not the ones that were counted; release again."
            )
        return order, domain, counts

    def write(self, step: str, number: int, pieces: Iterable[bytes]) -> str:
        """Write the result of a step for a part at once; return the digest in its name."""
        hashed, folder = hashlib.sha256(), self.place / RESULTS
        handle, name = tempfile.mkstemp(dir=folder, prefix=_UNFINISHED)
        with os.fdopen(handle, "wb") as file:
            for piece in pieces:
                hashed.update(piece)
                file.write(piece)
        Path(name).replace(folder / f"{step}.{number}.{hashed.hexdigest()}")
        return hashed.hexdigest()

    @contextmanager
    def unfinished(self) -> Iterator[Path]:
        """Make a directory in the stage; erase it after. None is made once the stage is gone."""
        with tempfile.TemporaryDirectory(
            dir=self.place / RESULTS, prefix=_UNFINISHED, ignore_cleanup_errors=True
        ) as place:
            yield Path(place)

    def read(self, step: str, number: int, digest: str) -> bytes:
        """Read the result of a step for a part, whose content must have the digest."""
        content = (self.place / RESULTS / f"{step}.{number}.{digest}").read_bytes()
        if hashlib.sha256(content).hexdigest() != digest:
            raise ReleaseError(
                "the result of a worker was not written as it was made; nothing is published, and "
                "a debit stays. Release again."
            )
        return content

    def attempts(self, step: str) -> dict[int, set[str]]:
        """Return the digests of all attempts at a step for each part that were completed."""
        found: dict[int, set[str]] = {}
        for path in (self.place / RESULTS).glob(f"{step}.*"):
            _, number, digest = path.name.split(".")
            found.setdefault(int(number), set()).add(digest)
        return found


# Does a step of the work on one part, given its number; returns the digest of the result.
PartStep = Callable[[int], str]


@dataclass(frozen=True)
class Shaping:
    """The step that finds the shape of a part."""

    stage: Stage
    name = "shape"

    def __call__(self, number: int) -> str:
        """Write the shape of a part."""
        _, domain, _ = self.stage.order(number)
        shape = shape_of(forest_below(domain, self.stage.depth))
        return self.stage.write(self.name, number, [msgspec.json.encode(shape)])

    def read(self, number: int, digest: str) -> PartShape:
        """Read the shape of a part."""
        return msgspec.json.decode(self.stage.read(self.name, number, digest), type=PartShape)


@dataclass(frozen=True)
class Sending:
    """The step that works out the message of a part."""

    stage: Stage
    law: PartLaw
    attempt: int

    @property
    def name(self) -> str:
        """The name of the step, a new one each time that messages are asked for."""
        return f"message-{self.attempt}"

    def __call__(self, number: int) -> str:
        """Write the message of a part."""
        from congenial.releases.making.conditioned_parts import message_of_part

        order, domain, counts = self.stage.order(number)
        if order.outside is None:
            raise AssertionError("the order says what is outside the part")
        message = message_of_part(self.law, domain, counts, order.node, order.outside)
        return self.stage.write(self.name, number, [_packed(message)])

    def read(self, number: int, digest: str) -> PartMessage:
        """Read the message of a part."""
        written = self.stage.read(self.name, number, digest)
        return cast(PartMessage, _unpacked(written, PartMessage))


@dataclass(frozen=True)
class PartMeasuring:
    """The step that measures a part which is to be moved."""

    stage: Stage
    law: PartLaw
    private: bool  # Whether the keys are secret.
    name = "measured"

    def __call__(self, number: int) -> str:
        """Measure a part, and write its measurements."""
        from congenial.releases.making.measured_parts import MeasuredPart

        order, domain, counts = self.stage.order(number)
        words = keyed(part_key(order, domain, counts), private=self.private)
        part = MeasuredPart.of(self.law, domain, counts, order.node, words)
        return self.stage.write(self.name, number, [part.to_bytes()])

    def read(self, number: int, digest: str) -> MeasuredPart:
        """Read the measurements of a part."""
        from congenial.releases.making.measured_parts import MeasuredPart

        return MeasuredPart.from_bytes(self.stage.read(self.name, number, digest))


@dataclass(frozen=True)
class Moving:
    """A step of the work on the measurements of a part, see `domain.workers`.

    Its arguments and results are pickled. They lie in the stage, where nobody else may write.
    """

    stage: Stage
    name: str
    step: Callable[..., object]
    values: SteppedValues  # Those that the step reads and keeps.

    def __call__(self, number: int) -> str:
        """Do the step, and write its result with the digest of what it kept."""
        part, given = pickle.loads((self.stage.place / ORDERS / str(number)).read_bytes())  # noqa: S301 -- written by the driver
        result = self.step(part, *given)
        return self.stage.write(self.name, number, [pickle.dumps((result, self.values.digest()))])

    def read(self, number: int, digest: str) -> Any:
        """Read the result of the step."""
        result, _ = pickle.loads(self.stage.read(self.name, number, digest))  # noqa: S301 -- written by a worker
        return result


@dataclass(frozen=True)
class Drawing:
    """The step that draws a part."""

    stage: Stage
    law: PartLaw
    private: bool  # Whether the keys are secret.
    attempt: int

    @property
    def name(self) -> str:
        """The name of the step, a new one each time that the top is drawn."""
        return f"drawn-{self.attempt}"

    def __call__(self, number: int) -> str:
        """Draw a part, and write it; its result is empty if it refuses the top's draw.

        Raises what drawing a part raises, and OSError if it cannot be written.
        """
        order, domain, counts = self.stage.order(number)
        words = keyed(part_key(order, domain, counts), private=self.private)
        given = cast(FromTop, order.given)
        part = draw_part(self.law, domain, counts, order.node, given, words)
        if part is None:
            return self.stage.write(self.name, number, [])
        above = dict(order.above)
        with self.stage.unfinished() as place:
            written, sizes = list[tuple[Path, int]](), []
            for table, lines in part.lines.items():
                columns = part.columns[table]
                with files.writing(place, table, columns) as write:
                    write((above[table],))
                    write(lines)
                begin, ends = len(files.header_of(columns)), [place / name for name in table]
                text, parquet = (path.stat().st_size for path in ends)
                sizes.append((table, text - begin, parquet))
                written += zip(ends, (begin, 0), strict=True)
            content = msgspec.json.encode(_Content(part.facts, tuple(sizes)))
            pieces = chain([content, b"\n"], *(_read(*each) for each in written))
            return self.stage.write(self.name, number, pieces)

    def read(self, number: int, digest: str) -> WrittenPart:
        """Read a drawn part."""
        content = self.stage.read(self.name, number, digest)
        begin = content.index(b"\n") + 1
        found = msgspec.json.decode(memoryview(content)[:begin], type=_Content)
        rest, tables = memoryview(content)[begin:], {}
        for table, text, parquet in found.sizes:
            tables[table] = PartFiles(rest[:text], rest[text : text + parquet])
            rest = rest[text + parquet :]
        return WrittenPart(found.facts, tables)


def _read(path: Path, begin: int) -> Iterator[bytes]:
    """Yield the bytes of a file from one on, some at a time."""
    with path.open("rb") as file:
        file.seek(begin)
        yield from iter(partial(file.read, _CHUNK), b"")


def part_key(order: PartOrder, domain: Tree, counts: IntArray) -> bytes:
    """Return the key of a part's words, which depends on its counts and on its released total.

    A part that is measured has no released total yet.
    """
    digest = hashlib.sha256(domain.parents.tobytes() + counts.tobytes()).digest()
    total = b"" if order.given is None else str(order.given.total).encode()
    return derived_key(order.key, digest, total)


def _packed(record: object) -> bytes:
    """Write a record as bytes; arrays are of float64."""

    def as_bytes(array: FloatArray) -> bytes:
        return array.tobytes()

    return msgspec.msgpack.encode(record, enc_hook=as_bytes)


def _unpacked(written: bytes, kind: Any) -> Any:
    """Read a record from bytes."""

    def as_array(_: object, content: bytes) -> FloatArray:
        return np.frombuffer(content, dtype=np.float64)

    return msgspec.msgpack.decode(written, type=kind, dec_hook=as_array)
