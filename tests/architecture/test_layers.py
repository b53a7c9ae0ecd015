"""The map of the package: layers, folders, floors, names, sizes.

`docs/architecture.md` explains the map. Each check reads a folder of sources and returns its faults
as sentences. It runs on the package, where it must find none, and on a small package with one
planted fault, which it must find.
"""

from __future__ import annotations

import ast
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "congenial"

# From the ground up: a folder imports from folders before it, in its own layer or below.
LAYERS = {
    "base": (".",),
    "kernels": ("kernels/numerics", "kernels/network", "kernels/projection", "kernels/chains"),
    "what": ("domain", "invariants", "invariants/feasibility"),
    "privacy": (
        "noise",
        "accounting/neighbours",
        "accounting/loss",
        "accounting",
        "accounting/calibration",
    ),
    "methods": (
        "sum_network",
        "sum_network/cutset",
        "conditioning/laws",
        "conditioning",
        "conditioning/samplers",
        "imaging/solvers",
        "imaging",
        "belief",
    ),
    "readers": ("inference", "auditing"),
    "releases": (
        "plan",
        "data",
        "ledger",
        "releases",
        "verification",
        "exhibits",
        "preview",
        "preview/comparison",
    ),
    "faces": ("report", "cli", "cli/commands"),
}
ORDER = {
    folder: place for place, folder in enumerate(f for layer in LAYERS.values() for f in layer)
}
# Modules at the top of the package, `__init__` apart: what every folder may use.
BASE = {"_version", "errors", "randomness", "signals", "types", "wording"}
FLOORS = 12
LONGEST = 700  # lines of a file
FULLEST = 16  # files of a folder
CROWDED = {"kernels/network"}  # one algorithm in many kernels


def modules(source: Path) -> dict[str, ast.Module]:
    """Return the syntax tree of every module but the package's root, by dotted name."""
    return {
        ".".join(path.relative_to(source).with_suffix("").parts): ast.parse(
            path.read_text(encoding="utf-8")
        )
        for path in sorted(source.rglob("*.py"))
        if not path.name.startswith("__")
    }


def folder_of(name: str) -> str:
    """Return the folder of a module, "." for one at the top."""
    return "/".join(name.split(".")[:-1]) or "."


def imports(name: str, module: ast.Module, known: set[str]) -> Iterator[tuple[str, list[str]]]:
    """Yield each module of ours that one imports, anywhere in it, and the names it takes."""
    for node in ast.walk(module):
        if isinstance(node, ast.Import):
            wanted = [(alias.name, "") for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            if node.level:
                yield f"a relative path in {name}", []
                continue
            wanted = [(f"{node.module}.{alias.name}", str(node.module)) for alias in node.names]
        else:
            continue
        for full, parent in wanted:
            if full.split(".")[0] != "congenial" or full == "congenial.__version__":
                continue
            short = full.removeprefix("congenial.")
            if short in known:
                yield short, []
            elif parent.removeprefix("congenial.") in known:
                yield parent.removeprefix("congenial."), [short.rpartition(".")[2]]
            else:
                yield short, []


def layer_faults(source: Path) -> list[str]:
    """Return imports that do not point downwards, and folders and modules without a place."""
    found = modules(source)
    faults = []
    for name, module in found.items():
        here = folder_of(name)
        if here not in ORDER:
            faults.append(f"{name}: the folder {here} has no layer; give it a place in LAYERS.")
            continue
        if here == "." and name not in BASE:
            faults.append(f"{name} lies at the top; only {', '.join(sorted(BASE))} may.")
        for wanted, _ in imports(name, module, set(found)):
            there = folder_of(wanted)
            if wanted not in found:
                faults.append(f"{name} imports {wanted}, which is no module.")
            elif there != here and ORDER[there] >= ORDER[here]:
                faults.append(f"{name} imports {wanted}, which is not below it.")
            elif here.startswith("kernels") and not there.startswith("kernels"):
                faults.append(f"{name} imports {wanted}; kernels import nothing of ours.")
    return faults


def circle_faults(source: Path) -> list[str]:
    """Return one circle of files, if there is one."""
    found = modules(source)
    graph = {
        name: [w for w, _ in imports(name, module, set(found)) if w in found]
        for name, module in found.items()
    }
    done: set[str] = set()

    def walk(name: str, path: tuple[str, ...]) -> list[str]:
        if name in path:
            return [" imports ".join((*path[path.index(name) :], name)) + ", a circle."]
        if name in done:
            return []
        for wanted in graph[name]:
            if faults := walk(wanted, (*path, name)):
                return faults
        done.add(name)
        return []

    return next(filter(None, (walk(name, ()) for name in graph)), [])


def floor_faults(source: Path) -> list[str]:
    """Return the longest chain of imports between folders, if it has too many floors."""
    found = modules(source)
    below: dict[str, set[str]] = defaultdict(set)
    for name, module in found.items():
        for wanted, _ in imports(name, module, set(found)):
            if wanted in found and folder_of(wanted) != folder_of(name):
                below[folder_of(name)].add(folder_of(wanted))

    @cache
    def chain(folder: str) -> tuple[str, ...]:
        longest = max((chain(other) for other in below[folder]), key=len, default=())
        return (folder, *longest)

    longest = max((chain(folder_of(name)) for name in found), key=len, default=())
    if len(longest) <= FLOORS:
        return []
    return [f"{len(longest)} floors, more than {FLOORS}: {' > '.join(longest)}."]


def private_faults(source: Path) -> list[str]:
    """Return private names taken from another folder."""
    found = modules(source)
    return [
        f"{name} takes {taken} from {wanted}, which is private to {folder_of(wanted)}."
        for name, module in found.items()
        for wanted, names in imports(name, module, set(found))
        for taken in names
        if taken.startswith("_")
        and not taken.startswith("__")
        and folder_of(wanted) != folder_of(name)
    ]


def name_faults(source: Path) -> list[str]:
    """Return module names, and names of public classes, that are taken twice."""
    found = modules(source)
    named: dict[str, list[str]] = defaultdict(list)
    classes: dict[str, list[str]] = defaultdict(list)
    for name, module in found.items():
        here = folder_of(name)
        if not here.startswith("kernels") and here != "cli/commands":
            named[name.rpartition(".")[2]].append(name)
        for node in module.body if here != "cli/commands" else ():
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                classes[node.name].append(name)
    return [
        f"{what} {each} is taken twice: {', '.join(places)}."
        for what, table in (("the module name", named), ("the public class", classes))
        for each, places in table.items()
        if len(places) > 1
    ]


def size_faults(source: Path) -> list[str]:
    """Return files that are too long, and folders with too many files."""
    lines = {
        path.relative_to(source).as_posix(): len(path.read_text(encoding="utf-8").splitlines())
        for path in sorted(source.rglob("*.py"))
    }
    files = Counter(
        folder_of(path.removesuffix(".py").replace("/", "."))
        for path in lines
        if not path.endswith("__init__.py")
    )
    return [
        *(
            f"{path} has {count} lines, more than {LONGEST}; split it."
            for path, count in lines.items()
            if count > LONGEST
        ),
        *(
            f"{folder} has {count} files, more than {FULLEST}; split it."
            for folder, count in files.items()
            if count > FULLEST and folder not in CROWDED
        ),
    ]


CHECKS = (
    layer_faults,
    circle_faults,
    floor_faults,
    private_faults,
    name_faults,
    size_faults,
)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_the_package_has_no_fault(check):
    assert check(SOURCE) == []


def test_every_folder_of_the_map_exists_and_says_what_it_is_for():
    for folder in ORDER:
        about = ast.get_docstring(ast.parse((SOURCE / folder / "__init__.py").read_text("utf-8")))
        assert about, folder


def test_the_page_has_the_same_map():
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| (\w+) \| (`[^|]*) \|", page, re.MULTILINE))
    drawn = {layer: tuple(re.findall(r"`([^`]+)`", rows.get(layer, ""))) for layer in LAYERS}
    assert drawn == LAYERS
    for path in re.findall(r"^\| \d \| `([^`]+)`", page, re.MULTILINE):
        assert (SOURCE / path).is_file(), path


def test_the_package_knows_nothing_of_research_beside_it():
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = (
                [alias.name for alias in node.names]
                if isinstance(node, ast.Import)
                else [str(node.module)]
                if isinstance(node, ast.ImportFrom)
                else []
            )
            assert not {name.split(".")[0] for name in names} & {"papers", "benchmarks", "tests"}


def test_no_test_is_too_long_and_none_imports_another():
    for folder in (ROOT / "tests", ROOT / "papers" / "tests"):
        for path in folder.rglob("*.py"):
            text = path.read_text(encoding="utf-8")
            assert len(text.splitlines()) <= LONGEST or path.parent.name == "support", path
            for node in ast.walk(ast.parse(text)):
                if isinstance(node, ast.ImportFrom):
                    assert "test_" not in str(node.module), path
                    assert not any(alias.name.startswith("test_") for alias in node.names), path


@pytest.fixture
def plant(tmp_path):
    """Return a function that makes a small sound package and puts one text into one file."""

    def planted(file: str, text: str) -> Path:
        root = tmp_path / "congenial"
        sound = {
            "__init__.py": "",
            "errors.py": "class CongenialError(Exception):\n    pass\n",
            "kernels/numerics/laws.py": "import numpy as np\n",
            "kernels/network/messages.py": "from congenial.kernels.numerics.laws import np\n",
            "domain/tree.py": "import congenial.errors\n\nclass Tree:\n    pass\n",
            "invariants/written.py": "from congenial.domain.tree import Tree\n",
            "imaging/update.py": "",
            "conditioning/choice.py": "from congenial.invariants import written\n",
            "cli/main.py": "import congenial.domain.tree\n",
        }
        for name, content in (sound | {file: text}).items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(content, encoding="utf-8")
        return root

    return planted


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_a_sound_package_has_no_fault(check, plant):
    assert check(plant("errors.py", "")) == []


@pytest.mark.parametrize(
    ("check", "file", "text", "said"),
    [
        (layer_faults, "domain/tree.py", "from congenial.invariants.written import x", "not below"),
        (layer_faults, "domain/tree.py", "import congenial.cli.main as c", "not below"),
        (layer_faults, "domain/tree.py", "def f():\n    import congenial.cli.main", "not below"),
        (layer_faults, "domain/tree.py", "from congenial import Additive", "no module"),
        (layer_faults, "domain/tree.py", "from .cli import main", "relative path"),
        (layer_faults, "stray.py", "", "lies at the top"),
        (layer_faults, "stray/file.py", "", "has no layer"),
        (layer_faults, "kernels/chains/a.py", "from congenial.errors import x", "nothing of ours"),
        (circle_faults, "errors.py", "import congenial.invariants.written", "circle"),
        (private_faults, "imaging/update.py", "from congenial.domain.tree import _x", "private"),
        (name_faults, "imaging/tree.py", "", "module name tree"),
        (name_faults, "imaging/update.py", "class Tree:\n    pass", "public class Tree"),
        (size_faults, "domain/tree.py", "x = 1\n" * (LONGEST + 1), "701 lines"),
    ],
)
def test_a_planted_fault_is_found(check, file, text, said, plant):
    assert any(said in fault for fault in check(plant(file, text)))


def test_a_tower_of_folders_is_found(plant):
    root = plant("errors.py", "")
    below = "errors"
    for folder in list(ORDER)[5:]:
        name = f"{folder}/floor_{ORDER[folder]}"
        (root / folder).mkdir(parents=True, exist_ok=True)
        (root / f"{name}.py").write_text(f"import congenial.{below}\n", encoding="utf-8")
        below = name.replace("/", ".")
    assert any("floors, more than" in fault for fault in floor_faults(root))


def test_a_full_folder_is_found(plant):
    root = plant("errors.py", "")
    for number in range(FULLEST + 1):
        (root / "imaging" / f"file_{number}.py").write_text("", encoding="utf-8")
    assert any("imaging has" in fault for fault in size_faults(root))
