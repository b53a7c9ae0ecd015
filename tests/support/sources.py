"""Sources as syntax trees, and a small package to plant faults in."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "congenial"

# Libraries inside the package: others import what such a folder's `__init__` offers, nothing else.
DOORS = (
    "sum_network",
    "sum_network/cutset",
    "sum_network/families",
    "sum_network/joined",
    "sum_network/exact",
    "sum_network/closing",
)

SOUND = {
    "__init__.py": "",
    "errors.py": "class CongenialError(Exception):\n    pass\n",
    "randomness.py": "import os\nimport numpy as np\nnp.random.Philox(1)\nos.urandom(8)\n",
    "kernels/numerics/laws.py": "import numpy as np\n",
    "kernels/network/messages.py": "from congenial.kernels.numerics.laws import np\n",
    "domain/tree.py": (
        "import congenial.errors\nfrom congenial import __version__\n\n\nclass Tree:\n    pass\n"
    ),
    "invariants/written.py": "from congenial.domain.tree import Tree\n",
    "sum_network/__init__.py": "from congenial.sum_network.tables import fill\n",
    "sum_network/tables.py": "def fill():\n    pass\n",
    "inference/exact.py": "from congenial.sum_network import fill\n",
    "inference/law.py": "from congenial import sum_network\n",
    "imaging/update.py": "def image(a, b, *, c):\n    return a, b, c\n",
    "conditioning/choice.py": "from congenial.invariants import written\n",
    "cli/main.py": (
        "try:\n    import congenial.domain.tree\nexcept (OSError, KeyError):\n    pass\n"
    ),
}


def planted(folder: Path, file: str, text: str) -> Path:
    """Write a small sound package into a folder, with one text in one file; return its root."""
    root = folder / "congenial"
    for name, content in (SOUND | {file: text}).items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(content, encoding="utf-8")
    return root


@cache
def _parsed(text: str) -> ast.Module:
    """Return a syntax tree, which every check reads and none changes."""
    return ast.parse(text)


def modules(source: Path, *, packages: bool = False) -> dict[str, ast.Module]:
    """Return the syntax tree of every module, by dotted name; of every `__init__` too if asked.

    The `__init__` of a door is a module of its folder.
    """
    found = {}
    for path in sorted(source.rglob("*.py")):
        parts = path.relative_to(source).with_suffix("").parts
        if path.name.startswith("__"):
            if path.name == "__init__.py" and path.relative_to(source).parent.as_posix() in DOORS:
                found[".".join(parts)] = _parsed(path.read_text(encoding="utf-8"))
            if not packages:
                continue
            parts = parts[:-1] if parts[-1] == "__init__" else parts
        found[".".join(parts)] = _parsed(path.read_text(encoding="utf-8"))
    return found


def folder_of(name: str) -> str:
    """Return the folder of a module, "." for one at the top."""
    return "/".join(name.split(".")[:-1]) or "."


def imported(module: ast.Module) -> Iterator[tuple[str, str]]:
    """Yield the full name of everything imported, and the module that it is taken from, or ""."""
    for node in ast.walk(module):
        if isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            parent = "." * node.level + str(node.module or "")
            yield from ((f"{parent}.{alias.name}", parent) for alias in node.names)


def imports(name: str, module: ast.Module, known: set[str]) -> Iterator[tuple[str, list[str]]]:
    """Yield each module of ours that one imports, anywhere in it, and the names it takes."""
    for full, parent in imported(module):
        if full.startswith("."):
            yield f"a relative path in {name}", []
            continue
        if full.split(".")[0] != "congenial" or full == "congenial.__version__":
            continue
        short = full.removeprefix("congenial.")
        above = parent.removeprefix("congenial.")
        if f"{short}.__init__" in known:
            yield f"{short}.__init__", []
        elif short in known:
            yield short, []
        elif f"{above}.__init__" in known:
            yield f"{above}.__init__", [short.rpartition(".")[2]]
        elif parent.removeprefix("congenial.") in known:
            yield parent.removeprefix("congenial."), [short.rpartition(".")[2]]
        else:
            yield short, []
