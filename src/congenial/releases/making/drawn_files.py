"""Parts of a release drawn on other machines, each into a file whose name has its digest.

A part is drawn from a key of its own, so that an attempt that is repeated draws the same words. The
words depend on the counts too: if two attempts saw different counts, the difference of their draws
would say nothing about the noise. The name of a file has the digest of its content. So two attempts
at a part that differ leave two files, and equal ones leave one.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import msgspec

from congenial.data.staged_counts import no_rows, open_tallied, read_staged
from congenial.domain.tree import Tree
from congenial.errors import ReleaseError
from congenial.randomness import derived_key, keyed
from congenial.releases.making.part_rows import DrawnPart, PartLaw, Table, draw_part
from congenial.releases.part_models import PartFacts
from congenial.types import IntArray

# Folders of a stage: the counts of the parts, one order for each part, and the parts as drawn.
COUNTS, ORDERS, DRAWN = "counts", "orders", "drawn"


class PartOrder(msgspec.Struct, frozen=True):
    """An order to draw one part. It is confidential, as the counts beside it are."""

    path: tuple[str, ...]  # Names below the root down to the part's node.
    file: str | None  # File of its counts; None if it has no row.
    records: int  # The node's confidential count.
    total: int  # The node's released count.
    key: bytes  # A key of this part alone.

    def __repr__(self) -> str:
        """Show no count and no key."""
        return f"PartOrder(path={self.path!r})"


class _Content(msgspec.Struct, frozen=True):
    """The first line of a drawn part: the facts about it, and the bytes of each table after it."""

    facts: PartFacts
    sizes: tuple[tuple[Table, int], ...]


@dataclass(frozen=True)
class Drawing:
    """All that the workers need to draw parts, but for the orders in the stage; it has no count."""

    law: PartLaw
    base: Path
    stage: Path
    private: bool  # Whether the keys are secret.

    def write_order(self, number: int, order: PartOrder) -> None:
        """Write the order to draw the part of a number."""
        (self.stage / ORDERS / str(number)).write_bytes(msgspec.msgpack.encode(order))

    def draw(self, number: int) -> str:
        """Draw the part of a number; return the digest in the name of its file.

        Raises what drawing a part raises, and OSError if it cannot be written.
        """
        written = (self.stage / ORDERS / str(number)).read_bytes()
        order = msgspec.msgpack.decode(written, type=PartOrder)
        domain, counts = self._counted(order)
        words = keyed(part_key(order, domain, counts), private=self.private)
        part = draw_part(self.law, domain, counts, order.total, words)
        return _write(self.stage / DRAWN, number, part)

    def _counted(self, order: PartOrder) -> tuple[Tree, IntArray]:
        plan, file = self.law.plan, order.file

        def tally() -> Any:
            return no_rows(plan) if file is None else read_staged(self.stage / COUNTS / file)

        with open_tallied(plan, self.base, tally, within=order.path) as rows:
            domain, counts = cast(Tree, rows.domain), rows.counted.counts
        if counts[self.law.depth] != order.records:
            raise ReleaseError(
                "the staged counts of a part are not the ones that were counted; release again."
            )
        return domain, counts

    def read(self, number: int, digest: str) -> DrawnPart:
        """Read a drawn part, whose content must have the digest."""
        content = (self.stage / DRAWN / f"{number}.{digest}").read_bytes()
        if hashlib.sha256(content).hexdigest() != digest:
            raise ReleaseError(
                "a part that a worker drew was not written as it was drawn; nothing is published, "
                "and the debit stays. Release again."
            )
        first, rest = content.split(b"\n", 1)
        found = msgspec.json.decode(first, type=_Content)
        lines, begin = {}, 0
        for table, size in found.sizes:
            lines[table] = iter((rest[begin : begin + size],))
            begin += size
        return DrawnPart(found.facts, lines)

    def attempts(self) -> dict[int, set[str]]:
        """Return the digests of all attempts at each part that were completed."""
        found: dict[int, set[str]] = {}
        for path in (self.stage / DRAWN).iterdir():
            number, _, digest = path.name.partition(".")
            if number.isdigit():
                found.setdefault(int(number), set()).add(digest)
        return found


def part_key(order: PartOrder, domain: Tree, counts: IntArray) -> bytes:
    """Return the key of a part's words, which depends on its counts and on its released total."""
    digest = hashlib.sha256(domain.parents.tobytes() + counts.tobytes()).digest()
    return derived_key(order.key, digest, str(order.total).encode())


def _write(folder: Path, number: int, part: DrawnPart) -> str:
    """Write a part under the name of its digest, at once."""
    texts = {table: b"".join(lines) for table, lines in part.lines.items()}
    sizes = tuple((table, len(text)) for table, text in texts.items())
    pieces = [msgspec.json.encode(_Content(part.facts, sizes)), b"\n", *texts.values()]
    hashed = hashlib.sha256()
    handle, name = tempfile.mkstemp(dir=folder, prefix="unfinished-")
    with os.fdopen(handle, "wb") as file:
        for piece in pieces:
            hashed.update(piece)
            file.write(piece)
    Path(name).replace(folder / f"{number}.{hashed.hexdigest()}")
    return hashed.hexdigest()
