"""The map of the package: layers, folders, floors, names, sizes.

`docs/architecture.md` explains the map. Each check reads a folder of sources and returns its faults
as sentences. It runs on the package, where it must find none, and on a small package with one
planted fault, which it must find.
"""

from __future__ import annotations

import ast
import re
from collections import Counter, defaultdict
from functools import cache
from pathlib import Path

import pytest

from support.sources import DOORS, ROOT, SOURCE, folder_of, imported, imports, modules, planted

# From the ground up: a folder imports from folders before it, in its own layer or below.
LAYERS = {
    "base": (".", "exhibits"),
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
        "sum_network/families",
        "sum_network/exact",
        "sum_network/joined",
        "sum_network/closing",
        "conditioning/laws",
        "conditioning",
        "conditioning/samplers",
        "imaging/solvers",
        "imaging",
        "belief",
    ),
    "readers": ("inference/splits", "inference", "auditing"),
    "releases": (
        "durability",
        "plan",
        "data",
        "ledger",
        "releases",
        "releases/making",
        "verification",
        "preview/comparison",
        "preview",
    ),
    "faces": ("report", "cli", "cli/commands"),
}
ORDER = {
    folder: place for place, folder in enumerate(f for layer in LAYERS.values() for f in layer)
}
# Modules at the top of the package, `__init__` apart: what every folder may use.
BASE = {"errors", "namespaces", "randomness", "types", "wording"}
FLOORS = 12
LONGEST = 700  # lines of a file
FULLEST = 16  # files of a folder
CROWDED = {"kernels/network"}  # one algorithm in many kernels
BESIDE = {"papers", "benchmarks", "examples", "tests", "support"}
MOST = 10  # arguments of a function
MOST_OF_KERNELS = 12


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
    """Return one circle of files and one of folders, if there are any."""
    found = modules(source)
    files = {
        name: [w for w, _ in imports(name, module, set(found)) if w in found]
        for name, module in found.items()
    }
    folders: dict[str, list[str]] = defaultdict(list)
    for name, wanted in files.items():
        folders[folder_of(name)] += [
            folder_of(w) for w in wanted if folder_of(w) != folder_of(name)
        ]
    return circle(files) + circle(folders)


def circle(graph: dict[str, list[str]]) -> list[str]:
    """Return one circle of a graph as a sentence, if there is one."""
    done: set[str] = set()

    def walk(name: str, path: tuple[str, ...]) -> list[str]:
        if name in path:
            return [" imports ".join((*path[path.index(name) :], name)) + ", a circle."]
        if name in done:
            return []
        for wanted in graph.get(name, ()):
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


def door_faults(source: Path) -> list[str]:
    """Return imports of what is inside a library, from outside of it."""
    found = modules(source)
    return [
        f"{name} imports {wanted}; take what {folder_of(wanted)}/__init__.py offers."
        for name, module in found.items()
        for wanted, _ in imports(name, module, set(found))
        if folder_of(wanted) in DOORS
        and not wanted.endswith(".__init__")
        and folder_of(name) not in DOORS
    ]


def name_faults(source: Path) -> list[str]:
    """Return module names, and names of public classes, that are taken twice."""
    found = modules(source)
    named: dict[str, list[str]] = defaultdict(list)
    classes: dict[str, list[str]] = defaultdict(list)
    for name, module in found.items():
        here = folder_of(name)
        if not here.startswith("kernels") and here != "cli/commands" and "__init__" not in name:
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


def research_faults(source: Path) -> list[str]:
    """Return imports of what lies beside the package."""
    return [
        f"{name} imports {full}, which lies beside the package."
        for name, module in modules(source, packages=True).items()
        for full, _ in imported(module)
        if full.split(".")[0] in BESIDE
    ]


def argument_faults(source: Path) -> list[str]:
    """Return functions with too many arguments."""
    counts: dict[str, int] = {}
    for name, module in modules(source, packages=True).items():
        for node in ast.walk(module):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                every = ast.walk(node.args)
                count = sum(isinstance(one, ast.arg) for one in every)
                most = MOST_OF_KERNELS if name.startswith("kernels.") else MOST
                if count > most:
                    counts[f"{name}.{node.name}"] = count
    return [f"{name} has {count} arguments; pass a record." for name, count in counts.items()]


CHECKS = (
    layer_faults,
    circle_faults,
    floor_faults,
    private_faults,
    door_faults,
    name_faults,
    size_faults,
    research_faults,
    argument_faults,
)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_the_package_has_no_fault(check):
    assert check(SOURCE) == []


def offer_faults(source: Path) -> list[str]:
    """Return folders that do not say what they are for, or offer names that they lack."""
    found = modules(source, packages=True)
    faults = []
    for folder in dict.fromkeys(path.parent for path in sorted(source.rglob("*.py"))):
        name = ".".join(folder.relative_to(source).parts)
        about = ast.get_docstring(found[name]) if name in found else None
        if about is None:
            faults.append(f"the folder {name or '.'} does not say what it is for.")
            continue
        for module, offered in re.findall(r"`(\w+)\.(\w+)`", about.partition("Offered:")[2]):
            body = found[f"{name}.{module}"].body if f"{name}.{module}" in found else []
            if offered not in {getattr(node, "name", "") for node in body}:
                faults.append(f"{name} offers {module}.{offered}, which is not there.")
    return faults


def test_every_folder_says_what_it_is_for_and_offers_what_is_there(tmp_path):
    assert offer_faults(SOURCE) == []
    assert set(ORDER) <= {
        path.parent.relative_to(SOURCE).as_posix() for path in SOURCE.rglob("__init__.py")
    }
    root = planted(tmp_path, "domain/__init__.py", '"""Trees.\n\nOffered: `tree.Bush`."""')
    assert "domain offers tree.Bush, which is not there." in offer_faults(root)
    assert "the folder imaging does not say what it is for." in offer_faults(root)


def test_the_page_has_the_same_map():
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| (\w+) \| (`[^|]*) \|", page, re.MULTILINE))
    drawn = {layer: tuple(re.findall(r"`([^`]+)`", rows.get(layer, ""))) for layer in LAYERS}
    assert drawn == LAYERS
    for path in re.findall(r"^\| \d \| `([^`]+)`", page, re.MULTILINE):
        assert (SOURCE / path).is_file(), path


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_a_sound_package_has_no_fault(check, tmp_path):
    assert check(planted(tmp_path, "errors.py", "")) == []


ELEVEN = "self, a, b, /, c, d, e, *f, g, h, i, **j"


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
        (
            circle_faults,
            "domain/table.py",
            "import congenial.invariants.written",
            "domain imports invariants imports domain",
        ),
        (private_faults, "imaging/update.py", "from congenial.domain.tree import _x", "private"),
        (door_faults, "imaging/update.py", "from congenial.sum_network import tables", "imports"),
        (door_faults, "imaging/update.py", "import congenial.sum_network.tables as t", "imports"),
        (circle_faults, "sum_network/tables.py", "from congenial import sum_network", "circle"),
        (name_faults, "imaging/tree.py", "", "module name tree"),
        (name_faults, "imaging/update.py", "class Tree:\n    pass", "public class Tree"),
        (size_faults, "domain/tree.py", "x = 1\n" * (LONGEST + 1), "701 lines"),
        (research_faults, "imaging/update.py", "def f():\n    import papers.studies", "beside"),
        (research_faults, "imaging/__init__.py", "from papers import studies", "beside"),
        (argument_faults, "imaging/update.py", f"def f({ELEVEN}):\n    pass", "11 arguments"),
        (argument_faults, "kernels/numerics/laws.py", f"def f(x, y, {ELEVEN}):\n    pass", "13"),
    ],
)
def test_a_planted_fault_is_found(check, file, text, said, tmp_path):
    assert any(said in fault for fault in check(planted(tmp_path, file, text)))


def test_a_tower_of_folders_is_found(tmp_path):
    root = planted(tmp_path, "errors.py", "")
    below = "errors"
    for folder in list(ORDER)[5:]:
        name = f"{folder}/floor_{ORDER[folder]}"
        (root / folder).mkdir(parents=True, exist_ok=True)
        (root / f"{name}.py").write_text(f"import congenial.{below}\n", encoding="utf-8")
        below = name.replace("/", ".")
    assert any("floors, more than" in fault for fault in floor_faults(root))


def test_a_full_folder_is_found(tmp_path):
    root = planted(tmp_path, "errors.py", "")
    for number in range(FULLEST + 1):
        (root / "imaging" / f"file_{number}.py").write_text("", encoding="utf-8")
    assert any("imaging has" in fault for fault in size_faults(root))
