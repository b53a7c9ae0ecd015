"""A parsed plan made into structs, with one sentence for each mistake."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Annotated, Any, Literal, NoReturn, TypeVar, get_args, get_origin

import msgspec

from congenial.errors import PlanError
from congenial.wording import joined, nearest, on_a_line, one_of, show

Kind = TypeVar("Kind", bound=msgspec.Struct)
# UnicodeEncodeError is raised for text that UTF-8 cannot encode
_MISFITS = (msgspec.ValidationError, UnicodeEncodeError)
_NUMBER = msgspec.Meta(pattern=r"^\s*[-+]?[0-9.]+(e[-+]?[0-9]+)?\s*$")
_REMEDIES = {str: "give text in quotes", bool: "give true or false", float: "give a number"}


class Section(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A table of a plan; the description of a key's type is the remedy in its errors."""


def refuse(key: str, problem: str, remedy: str) -> NoReturn:
    """Raise a PlanError: one sentence with the key, the problem and the remedy."""
    raise PlanError(f"{key} {problem}; {remedy}.") from None


def check_once(
    key: str, entries: Iterable[str], remedy: str = "name it once", same: Callable[[str], str] = str
) -> None:
    """Refuse two entries that `same` maps to one value."""
    seen: set[str] = set()
    for entry in entries:
        if same(entry) in seen:
            refuse(key, f"holds {entry!r} twice", remedy)
        seen.add(same(entry))


def fit(raw: object, kind: type[Kind], key: str = "") -> Kind:
    """Make a struct of a parsed table, or of a struct's plain data."""
    try:
        return msgspec.convert(raw, kind)
    except _MISFITS:
        _explain(raw, kind, key)


def _fits(value: object, kind: Any) -> bool:
    try:
        msgspec.convert(value, kind)
    except _MISFITS:
        return False
    return True


def _explain(value: Any, kind: Any, key: str) -> NoReturn:
    """Find the value that msgspec refuses, in tables and lists too, and refuse it."""
    bare, _ = _bare(kind)
    if isinstance(value, dict) and isinstance(bare, type) and issubclass(bare, msgspec.Struct):
        _explain_table(value, bare, key)
    if isinstance(value, dict) and get_origin(bare) is dict:
        inner = get_args(bare)[1]
        for name, entry in value.items():
            if not _fits(entry, inner):
                _explain(entry, inner, _under(key, name))
    if isinstance(value, list) and value and get_origin(bare) is tuple:
        inner = get_args(bare)[0]
        for entry in value:
            if not _fits(entry, inner):
                refuse(key, f"holds {show(entry)}", _remedy(inner, key, entry))
        refuse(key, f"has {len(value):,} entries", _remedy(kind, key))
    empty = not value.strip() if isinstance(value, str) else value in ([], {})
    refuse(key, "is empty" if empty else f"is {show(value)}", _remedy(kind, key, value))


def _explain_table(value: dict[str, Any], kind: type[msgspec.Struct], key: str) -> None:
    fields = {field.name: field for field in msgspec.structs.fields(kind)}
    for name in value:
        if name not in fields:
            refuse(
                _under(key, name),
                "is not a key of a plan",
                f"{key or 'the plan'} has the {'keys' if key else 'sections'} {', '.join(fields)}"
                f"{nearest(name, fields)}",
            )
    for name, field in fields.items():
        at = _under(key, name)
        if name in value and not _fits(value[name], field.type):
            _explain(value[name], field.type, at)
        if name not in value and field.required:
            refuse(at, "is missing", _remedy(field.type, at))


def _under(key: str, name: str) -> str:
    return f"{key}.{on_a_line(name)}" if key else on_a_line(name)


def _bare(kind: Any) -> tuple[Any, msgspec.Meta]:
    """Return a type without None and without its limits, and the limits."""
    if type(None) in get_args(kind):
        kind = get_args(kind)[0]
    if get_origin(kind) is Annotated:
        return get_args(kind)[0], get_args(kind)[-1]
    return kind, msgspec.Meta()


def _remedy(kind: Any, key: str, value: object = "") -> str:
    bare, meta = _bare(kind)
    if meta.description is not None:
        near = nearest(str(value), (meta.extra or {}).get("known", ()))
        quoted = bare is float and isinstance(value, str) and _fits(value, Annotated[str, _NUMBER])
        return meta.description + near + ", without quotes" * quoted
    if get_origin(bare) is Literal:
        return f"give {one_of(get_args(bare))}{nearest(str(value), get_args(bare))}"
    if isinstance(bare, type) and issubclass(bare, msgspec.Struct):
        if value != "":
            return "give a table with its keys"
        required = [field.name for field in msgspec.structs.fields(bare) if field.required]
        return f"add the section [{key}] with {joined(required)}"
    return _REMEDIES[bare]
