"""The walks of the architecture page, and the hops from a command to its kernels.

A hop is a change of module on Python's stack. The tests run commands. At every call of a compiled
kernel, they record the package's modules on the stack, from the command on. These are the modules
that a reader passes who follows the calls. Kernels called by other kernels are not recorded.
"""

from __future__ import annotations

import re
import sys
from types import ModuleType

import numba
import pytest

from congenial.cli import command_line as cli
from support.city import make_city
from support.sources import ROOT

# Most hops from a command to the nearest kernel that it calls, and of a release to its draw.
HOPS = 5
# Hops to the farthest kernel from its command; the number may only shrink.
FARTHEST = 11  # explain shows the default method's best table, which starts from a projection


class Recorder:
    """Records the walk to every kernel that is called."""

    def __init__(self) -> None:
        self.walks: set[tuple[str, ...]] = set()

    def watched(self, called):
        """Return a function in the place of a kernel."""
        kernel = called.py_func.__module__.removeprefix("congenial.")

        def call(*args):
            frame, names = sys._getframe(1), [kernel]
            while frame is not None:
                name = str(frame.f_globals.get("__name__"))
                if name.startswith("congenial.") and name != f"congenial.{names[-1]}":
                    names.append(name.removeprefix("congenial."))
                if name.startswith("congenial.cli.commands."):
                    self.walks.add(tuple(reversed(names)))
                    break
                frame = frame.f_back
            return called(*args)

        return call


class Watched:
    """A module of kernels whose calls are recorded."""

    def __init__(self, module: ModuleType, recorder: Recorder) -> None:
        self._module, self._recorder = module, recorder

    def __getattr__(self, name: str):
        value = getattr(self._module, name)
        return self._recorder.watched(value) if is_kernel(value) else value


def is_kernel(value: object) -> bool:
    """Whether a value is one of our compiled functions."""
    return isinstance(value, numba.core.dispatcher.Dispatcher)


@pytest.fixture
def recorder(monkeypatch):
    """Return a recorder that sees every kernel which a module outside `kernels` calls."""
    found = Recorder()
    for name, module in list(sys.modules.items()):
        if not name.startswith("congenial.") or name.startswith("congenial.kernels"):
            continue
        for key, value in list(vars(module).items()):
            if isinstance(value, ModuleType) and value.__name__.startswith("congenial.kernels."):
                monkeypatch.setattr(module, key, Watched(value, found))
            elif is_kernel(value) and value.py_func.__module__.startswith("congenial.kernels."):
                monkeypatch.setattr(module, key, found.watched(value))
    return found


def load_all(tmp_path) -> None:
    """Run every command once, so that all that it imports is there."""
    for method in ("conditioning", "imaging"):
        place = tmp_path / method
        place.mkdir()
        plan = make_city(place, method=f'name = "{method}"\n')
        assert cli.run(["release", str(plan), "--out", str(place / "out"), "--quiet"]) == 0
        for command in ("verify", "report"):
            assert cli.run([command, str(place / "out")]) == 0
        assert cli.run(["explain", str(plan)]) == 0


@pytest.fixture
def walks(tmp_path, capsys, request):
    """Return the walks of each command."""
    (tmp_path / "first").mkdir()
    load_all(tmp_path / "first")
    recorder = request.getfixturevalue("recorder")
    load_all(tmp_path)
    capsys.readouterr()
    return recorder.walks


def hops(walks, choose):
    """Return the hops of one walk of each command, chosen by its length."""
    commands = {walk[0] for walk in walks}
    return {
        command.rpartition(".")[2]: choose(len(w) - 1 for w in walks if w[0] == command)
        for command in commands
    }


def test_a_kernel_is_few_hops_from_its_command(walks):
    nearest = hops(walks, min)
    assert nearest.keys() == {"explain", "release", "report", "verify"}
    assert max(nearest.values()) <= HOPS
    assert max(hops(walks, max).values()) <= FARTHEST
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    stops = re.findall(r"^\| \d \| `([^`]+)\.py`", page, re.MULTILINE)
    draw = min((w for w in walks if (w[0], w[-1]) == (named(stops[0]), named(stops[-1]))), key=len)
    # the stops, of which a call may have returned before the draw
    assert [name for name in map(named, stops) if name in draw] == list(draw)
    assert len(draw) - 1 <= HOPS


def named(path):
    """Return the module at a path."""
    return path.replace("/", ".")


def test_a_long_walk_is_found():
    long = ("cli.commands.a", *"bcdefg", "kernels.x")
    assert hops({long, (long[0], "kernels.x")}, max) == {"a": 7}
    assert hops({long, (long[0], "kernels.x")}, min) == {"a": 1}
