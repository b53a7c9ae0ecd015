"""Run a notebook's cells without Jupyter, and keep what each cell shows."""

from __future__ import annotations

import ast
import json
from pathlib import Path


def cells_of(path: Path) -> list[str]:
    """Return the text of every cell of code, in order."""
    found = json.loads(path.read_text(encoding="utf-8"))
    return ["".join(cell["source"]) for cell in found["cells"] if cell["cell_type"] == "code"]


def run_cells(path: Path) -> list[object]:
    """Run all cells in one namespace; return what those that end in an expression show."""
    names: dict[str, object] = {"__name__": "notebook"}
    shown: list[object] = []
    for number, text in enumerate(cells_of(path)):
        where = f"{path.name}, cell {number}"
        body = ast.parse(text, where)
        last = body.body.pop() if isinstance(body.body[-1], ast.Expr) else None
        exec(compile(body, where, "exec"), names)
        if isinstance(last, ast.Expr):
            shown.append(eval(compile(ast.Expression(last.value), where, "eval"), names))  # noqa: S307
    return [value for value in shown if value is not None]
