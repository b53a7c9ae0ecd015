"""Keys and types of a plan's tables, and the wording of what is wrong with them."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from types import UnionType
from typing import Any, NoReturn, get_args, get_origin

import msgspec

from congenial.errors import PlanError

# Longest value shown in a message, in characters.
_SHOWN = 60


def refuse(key: str, problem: str, remedy: str) -> NoReturn:
    """Raise a PlanError: one sentence with the key, what is wrong with it and what is right."""
    raise PlanError(f"{key} {problem}; {remedy}.")


def show(value: object) -> str:
    """Write a value as a plan would, on one line and not too long."""
    if isinstance(value, bool):
        return "true" if value else "false"
    text = repr(value)
    return text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."


def on_a_line(name: str) -> str:
    """Quote a name of several lines or invisible signs, which would break what it stands in."""
    return name if name.isprintable() else repr(name)


def one_of(names: Iterable[str]) -> str:
    """Join names as a choice."""
    shown = [f"'{name}'" for name in names]
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} or {shown[-1]}"


def nearest(name: str, known: Iterable[str]) -> str:
    """Suggest the known name that `name` resembles most, in brackets, or nothing."""
    folded = {v.casefold(): v for v in reversed(list(known))}
    close = difflib.get_close_matches(name.casefold(), folded, n=1, cutoff=0.6)
    return f" (did you mean '{folded[close[0]]}'?)" if close else ""


def fit(
    raw: Mapping[str, Any],
    kind: type[msgspec.Struct],
    *,
    examples: Mapping[str, str],
    at: str = "",
) -> None:
    """Check that a parsed TOML table has the keys and types of a struct, and those inside it too.

    Raises
    ------
    PlanError
        If a key is unknown or missing, or a value has the wrong type.
    """
    fields = {f.name: f for f in msgspec.structs.fields(kind)}
    here = at or "the plan"
    for key in raw:
        if key not in fields:
            refuse(
                f"{at}.{key}" if at else key,
                "is not a key of a plan",
                f"{here} has the {'keys' if at else 'sections'} "
                f"{', '.join(fields)}{nearest(key, fields)}",
            )
    for name, field in fields.items():
        key = f"{at}.{name}" if at else name
        options = get_args(field.type) if isinstance(field.type, UnionType) else (field.type,)
        expected = options[0]
        if name not in raw:
            if field.required:
                refuse(key, "is missing", _example(key, expected, examples))
            continue
        value = raw[name]
        right = _expectation(value, expected)
        if right:
            refuse(key, f"is {show(value)}", right)
        if get_origin(expected) is dict:
            inner = get_args(expected)[1]
            for part, entry in value.items():
                if right := _expectation(entry, inner):
                    refuse(f"{key}.{part}", f"is {show(entry)}", right)
        elif isinstance(value, dict) and issubclass(expected, msgspec.Struct):
            fit(value, expected, examples=examples, at=key)


def _example(key: str, expected: Any, examples: Mapping[str, str]) -> str:
    if isinstance(expected, type) and issubclass(expected, msgspec.Struct):
        required = [f.name for f in msgspec.structs.fields(expected) if f.required]
        return f"add the section [{key}] with {' and '.join(', '.join(required).rsplit(', ', 1))}"
    return examples.get(key, examples.get(key.rpartition(".")[0], "add it"))


def is_number(value: object) -> bool:
    """Whether a value is a number, which true and false are not."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def _expectation(value: object, expected: Any) -> str:
    """What should have been given, or nothing where `value` has the right type."""
    texts = isinstance(value, list) and all(isinstance(v, str) for v in value)
    fits, right = {
        str: (isinstance(value, str), "give text in quotes"),
        bool: (isinstance(value, bool), "give true or false"),
        float: (is_number(value), "give a number"),
        tuple[str, ...]: (texts, "give a list of texts in quotes, such as ['zone', 'borough']"),
        dict[str, float]: (
            isinstance(value, dict),
            "give a table of numbers by level, such as { zone = 1.0 }",
        ),
        dict[str, str]: (isinstance(value, dict), "give a table, such as { age = 'INTEGER' }"),
        dict[str, tuple[str, ...]]: (
            isinstance(value, dict),
            "give a table of lists of nodes, such as { both = ['North', 'South'] }",
        ),
    }.get(expected, (isinstance(value, dict), "give a table with its keys"))
    return "" if fits else right
