"""Footers of Parquet files, which say where the pages of each group of rows are.

A Parquet file is a magic word, the pages of its groups of rows, and a footer. The footer is a
record in the compact encoding of Thrift: a sequence of numbered fields, each with a kind. A field
is read without knowing its meaning, so that fields that are not listed here are kept as they are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from congenial.errors import ReleaseError

MAGIC = b"PAR1"
# Kinds of the compact encoding.
_TRUE, _FALSE, _BYTE, _DOUBLE, _BINARY, _LIST, _SET, _RECORD = 1, 2, 3, 7, 8, 9, 10, 12
_WHOLE = (4, 5, 6)
# A record's fields: the kind and the value of each, by its number.
Record = dict[int, tuple[int, Any]]

# Numbers of the fields that are read here, as the specification of Parquet gives them.
_SCHEMA, _ROWS, _GROUPS = 2, 3, 4
_COLUMNS, _GROUP_BEGINS, _ORDINAL = 1, 5, 7
_FACTS = 3
# Fields with a place in the file: of a column in a group, and of the facts about it.
_PLACES, _FACTS_PLACES = (2, 4, 6), (9, 10, 11, 14)


@dataclass(frozen=True)
class Piece:
    """A Parquet file in memory, whose pages are to be copied to another one."""

    pages: memoryview
    footer: Record

    @property
    def rows(self) -> int:
        """Number of rows."""
        return _signed(self.footer[_ROWS][1])

    def groups(self, moved: int) -> list[bytes]:
        """Return the records of the groups of rows, for pages that lie some bytes further on."""
        _, (_, groups) = self.footer[_GROUPS]
        return [encoded(_group_moved(group, moved)) for group in groups]


def piece_of(content: memoryview) -> Piece:
    """Return the pages and the footer of a Parquet file; refuse what is none."""
    size = len(content)
    if size < 12 or content[:4] != MAGIC or content[-4:] != MAGIC:
        raise ReleaseError("a worker wrote no Parquet file; nothing is published. Release again.")
    begin = size - 8 - int.from_bytes(content[-8:-4], "little")
    return Piece(content[4:begin], decoded(bytes(content[begin:-8])))


def same_columns(one: Record, other: Record) -> bool:
    """Whether the files of two footers have the same columns."""
    return bool(one[_SCHEMA] == other[_SCHEMA])


def end_of(first: Record, groups: Sequence[bytes], rows: int) -> bytes:
    """Return the end of a file, given the footer of one of its parts and all groups of rows."""
    before = {n: field for n, field in first.items() if n < _ROWS}
    before[_ROWS] = first[_ROWS][0], _unsigned(rows)
    out = bytearray(encoded(before)[:-1])
    # a large file has many groups, which were encoded one by one
    out.append((_GROUPS - _ROWS) << 4 | _LIST)
    _put_list_head(out, _RECORD, len(groups))
    out += b"".join(groups)
    _put_record(out, {n: field for n, field in first.items() if n > _GROUPS}, _GROUPS)
    return bytes(out) + len(out).to_bytes(4, "little") + MAGIC


def _group_moved(group: Record, moved: int) -> Record:
    kind, columns = group[_COLUMNS][1]
    found = _moved(group, (_GROUP_BEGINS,), moved)
    found.pop(_ORDINAL, None)  # the number of the group in its file, which may be left out
    found[_COLUMNS] = _LIST, (kind, [_column_moved(column, moved) for column in columns])
    return found


def _column_moved(column: Record, moved: int) -> Record:
    found = _moved(column, _PLACES, moved)
    if _FACTS in found:
        found[_FACTS] = _RECORD, _moved(found[_FACTS][1], _FACTS_PLACES, moved)
    return found


def _moved(record: Record, places: tuple[int, ...], moved: int) -> Record:
    """Return a record with the places in the file moved on; 0 stands for no place."""
    found = dict(record)
    for number in places:
        kind, value = found.get(number, (0, 0))
        if value:
            found[number] = kind, _unsigned(_signed(value) + moved)
    return found


def _signed(value: int) -> int:
    return value >> 1 ^ -(value & 1)


def _unsigned(value: int) -> int:
    return value << 1 if value >= 0 else ~value << 1 | 1


def decoded(written: bytes) -> Record:
    """Read a record; whole numbers stay in the order of the encoding: 0, -1, 1, -2, 2."""
    return _record(written, 0)[0]


def encoded(record: Mapping[int, tuple[int, Any]]) -> bytes:
    """Write a record as `decoded` reads it."""
    out = bytearray()
    _put_record(out, record, 0)
    return bytes(out)


def _number(written: bytes, at: int) -> tuple[int, int]:
    """Read a number of seven bits a byte; return it and where the next thing begins."""
    found = shift = 0
    while True:
        byte = written[at]
        at += 1
        found |= (byte & 127) << shift
        if byte < 128:
            return found, at
        shift += 7


def _record(written: bytes, at: int) -> tuple[Record, int]:
    found: Record = {}
    number = 0
    while head := written[at]:
        kind, step = head & 15, head >> 4
        at += 1
        if not step:  # the number itself, which is far from the one before
            number, at = _number(written, at)
            number = _signed(number)
        number += step
        if kind in (_TRUE, _FALSE):
            found[number] = kind, None
        else:
            value, at = _value(written, at, kind)
            found[number] = kind, value
    return found, at + 1


def _value(written: bytes, at: int, kind: int) -> tuple[Any, int]:
    if kind in _WHOLE:
        return _number(written, at)
    if kind == _RECORD:
        return _record(written, at)
    if kind in (_LIST, _SET):
        head = written[at]
        inside, size = head & 15, head >> 4
        at += 1
        if size == 15:
            size, at = _number(written, at)
        values = []
        for _ in range(size):
            value, at = _value(written, at, inside)
            values.append(value)
        return (inside, values), at
    if kind == _BINARY:
        size, at = _number(written, at)
    elif kind == _DOUBLE:
        size = 8
    elif kind in (_TRUE, _FALSE, _BYTE):
        size = 1
    else:
        raise ReleaseError(
            "a footer of Parquet is written in a way that is not known here; install the version "
            "of DuckDB that congenial names, and release again."
        )
    return written[at : at + size], at + size


def _put_number(out: bytearray, value: int) -> None:
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)


def _put_list_head(out: bytearray, kind: int, size: int) -> None:
    out.append(min(size, 15) << 4 | kind)
    if size >= 15:
        _put_number(out, size)


def _put_record(out: bytearray, record: Mapping[int, tuple[int, Any]], last: int) -> None:
    for number, (kind, value) in sorted(record.items()):
        step = number - last
        if 0 < step < 16:
            out.append(step << 4 | kind)
        else:
            out.append(kind)
            _put_number(out, _unsigned(number))
        last = number
        if value is not None:
            _put_value(out, kind, value)
    out.append(0)


def _put_value(out: bytearray, kind: int, value: Any) -> None:
    if kind in _WHOLE:
        _put_number(out, value)
    elif kind == _RECORD:
        _put_record(out, value, 0)
    elif kind in (_LIST, _SET):
        inside, values = value
        _put_list_head(out, inside, len(values))
        for one in values:
            _put_value(out, inside, one)
    else:
        if kind == _BINARY:
            _put_number(out, len(value))
        out += value
