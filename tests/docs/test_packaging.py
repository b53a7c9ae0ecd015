"""The shipped files: version, public names, locks, citation, and no paths of a machine."""

from __future__ import annotations

import re
import subprocess
import sys
import zipfile
from importlib import metadata
from pathlib import Path

import pytest
import yaml

import congenial as cg
from support.locks import PROJECT, ROOT, lock_faults, needed, pins

LOCKS = ("run", "dev")
# Addresses of package indexes, and absolute paths of one machine.
MACHINE = re.compile(r"(?<![\w.~*}/])/(?:home|root|work|tmp|Users)/\w|(?<![\w/])shared/\w|pypi\.")


def tracked() -> list[Path]:
    """Return the files that the repository holds."""
    done = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=False)
    if done.returncode:
        pytest.skip("not a repository")
    paths = [ROOT / name for name in done.stdout.decode().split("\0") if name]
    return [path for path in paths if path.is_file()]


def machine_faults(paths: list[Path]) -> list[str]:
    """Return lines that name a place on one machine."""
    faults = []
    for path in paths:
        data = path.read_bytes()
        if b"\0" in data:
            continue
        faults += [
            f"{path.name}, line {number}: {line.strip()}"
            for number, line in enumerate(data.decode("utf-8").splitlines(), start=1)
            if MACHINE.search(line)
        ]
    return faults


def test_version_is_the_same_everywhere():
    assert re.fullmatch(r"\d+\.\d+\.\d+", cg.__version__)
    assert metadata.version("congenial") == cg.__version__
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert str(citation["version"]) == cg.__version__
    log = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.search(r"^## (\S+),", log, re.MULTILINE).group(1) == cg.__version__


def test_citation_names_the_project_and_both_papers():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert {"cff-version", "message", "title", "authors"} <= citation.keys()
    assert citation["license"] == PROJECT["license"] == "Apache-2.0"
    assert [
        (len(paper["authors"]), paper["authors"][0]["family-names"], paper["year"])
        for paper in citation["references"]
    ] == [(2, "Gong", 2020), (4, "Liu", 2023)]


def test_licence_is_the_whole_text():
    text = (ROOT / "LICENSE").read_text(encoding="utf-8")
    assert "Version 2.0, January 2004" in text
    assert "END OF TERMS AND CONDITIONS" in text


def test_every_public_name_is_there():
    for name in cg.__all__:
        assert callable(getattr(cg, name)), name
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = cg.no_such_name


def test_no_public_name_is_hidden_by_a_module():
    # importing congenial.x, wherever that happens, puts the module into the package as x
    modules = {path.stem for path in (ROOT / "src" / "congenial").iterdir()}
    assert not modules & set(cg.__all__)


def test_the_script_is_the_command_line():
    (script,) = metadata.entry_points(group="console_scripts", name="congenial")
    assert script.value == "congenial.cli:main"
    assert callable(script.load())


@pytest.mark.parametrize("name", LOCKS)
def test_lock_has_hashes_and_no_address(name):
    text = (ROOT / "requirements" / f"{name}.lock").read_text(encoding="utf-8")
    assert lock_faults(text) == []
    assert len(pins(name)) > len(PROJECT["dependencies"])


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("numpy==2.4.6 \\\n", "no hash"),
        (f"a==1 \\\nb==2 \\\n    --hash=sha256:{'0' * 64}\n", "no hash: a==1"),
        ("numpy>=2 \\\n", "not understood"),
        (f"numpy==2 \\\n    --hash=md5:{'0' * 32}\n", "not understood"),
        ("--index-url https:" + "//example.org/simple\n", "address"),
        (f"a @ file:{'//'}wheels/a.whl\n", "address"),
    ],
)
def test_a_bad_lock_is_found(text, told):
    assert any(told in fault for fault in lock_faults(text))


def test_locks_hold_what_the_project_needs():
    extras = PROJECT["optional-dependencies"]
    run = {package for package, _, _ in pins("run")}
    dev = {package for package, _, _ in pins("dev")}
    assert needed(PROJECT["dependencies"]) | {"hatchling"} <= run
    assert needed(extras["dev"] + extras["imaging"]) - {"congenial"} <= dev
    assert not needed(extras["dev"]) & run


def test_development_has_the_versions_of_a_run():
    # a package of both may have a wider marker in the larger set, but never another version
    run, dev = ({(package, version) for package, version, _ in pins(name)} for name in LOCKS)
    assert run <= dev


def test_the_wheel_has_the_code_the_types_and_no_compiled_kernel(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    code = {
        path.relative_to(ROOT / "src").as_posix()
        for path in (ROOT / "src" / "congenial").rglob("*.py")
    }
    code |= {f"congenial/report/page.{kind}" for kind in ("css", "html", "js")}
    code |= {"congenial/plan/draft.toml"}
    shipped = {name for name in names if name.startswith("congenial/")}
    assert shipped == code | {"congenial/py.typed"}
    assert any(name.endswith("licenses/LICENSE") for name in names)


def test_no_file_names_a_place_on_one_machine():
    assert machine_faults(tracked()) == []


@pytest.mark.parametrize(
    "line", ["see /" + "home/me/x", "cp '/" + "work/a' b", "shared" + "/data.csv", "=/" + "tmp/x"]
)
def test_a_place_on_one_machine_is_found(line, tmp_path):
    path = tmp_path / "a.md"
    path.write_text(f"fine: shared work, root/Borough, a/tmp/b\n{line}\n", encoding="utf-8")
    assert machine_faults([path]) == [f"a.md, line 2: {line}"]


def test_make_clean_removes_what_other_targets_write():
    told = subprocess.run(
        ["make", "--dry-run", "clean"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split()
    for written in ("examples/taxi/trips.parquet", "examples/taxi/release", "benchmarks/out"):
        assert written in told, written
    found = [p.relative_to(ROOT).parts[0] for p in ROOT.glob("*/**/__pycache__")]
    assert {p for p in found if not p.startswith(".")} <= set(told)
