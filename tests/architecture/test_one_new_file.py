"""One new file adds a noise law, a sampler or a command: each is planted in a copy, and used."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import textwrap

import pytest

from support.city import make_city
from support.sources import SOURCE

# Weights fall like a Gaussian's near zero and by 1/scale a step beyond: a Huber loss.
HUBER = '''
    """Discrete Huber noise."""
    from dataclasses import dataclass, field
    from typing import ClassVar

    import numpy as np

    from congenial.kernels.numerics import laws
    from congenial.noise.law import checked_scale

    def table(scale):
        u = np.arange(-60 * int(scale + 1), 60 * int(scale + 1) + 1)
        a = np.abs(u) / scale
        weight = np.exp(-np.where(a < 1, 0.5 * a**2, a - 0.5))
        return u, weight / weight.sum()

    @dataclass(frozen=True, eq=False)
    class Huber:
        scale: object
        spread: object = field(init=False, repr=False)
        name = "discrete-huber"
        text = "discrete Huber"
        kind = laws.OTHER
        discrete = True
        granularity = 1.0
        measure: ClassVar = "pure"
        words_per_entry = 1

        def __post_init__(self):
            object.__setattr__(self, "spread", checked_scale("scale", self.scale))

        def in_units(self):
            return self

        def variances(self, scales):
            tables = [(1, 0) if np.isinf(s) else table(s) for s in scales]
            return np.array([np.inf if p is 0 else (u**2 * p).sum() for u, p in tables])

        def log_pmf(self, noise, scales):
            out = np.zeros(np.broadcast_shapes(np.shape(noise), np.shape(scales)))
            at = np.broadcast_to(noise, out.shape)
            of = np.broadcast_to(scales, out.shape)
            for s in np.unique(of[np.isfinite(of)]):
                u, p = table(s)
                weight = np.exp(-np.where(np.abs(u) < s, 0.5 * (u / s) ** 2, np.abs(u) / s - 0.5))
                a = np.abs(at[of == s]) / s
                out[of == s] = -np.where(a < 1, 0.5 * a**2, a - 0.5) - np.log(weight.sum())
            return out

        def draw(self, words, scales, more):
            out = np.zeros((words.shape[0], scales.size), dtype=np.int64)
            for k in np.flatnonzero(np.isfinite(scales)):
                u, p = table(scales[k])
                at = np.searchsorted(np.cumsum(p), words[:, k] * 2.0**-64)
                out[:, k] = u[np.minimum(at, u.size - 1)]
            return out

        def sampling_error(self, scales):
            return 1e-14 * scales.size

    LAW = Huber
'''
GEOMETRIC = '''
    """The double geometric law, under the papers' name."""
    from congenial.noise.discrete_laplace import DiscreteLaplace

    class DoubleGeometric(DiscreteLaplace):
        name = "double-geometric"
        text = "double geometric"

    LAW = DoubleGeometric
'''
SAMPLER = '''
    """Draws exactly, under another name."""
    from dataclasses import dataclass

    from congenial.conditioning.samplers.exact import where_affordable

    @dataclass(frozen=True)
    class Plain:
        name: str = "as-it-is"
        certified: bool = True

        def condition(self, mechanism, resolved):
            return where_affordable(mechanism, resolved)

    SAMPLER = Plain()
'''
COMMAND = '''
    """Say how many levels PLAN has."""
    from dataclasses import dataclass
    from pathlib import Path

    import click

    import congenial as cg
    from congenial.cli.answer import Answer, Command

    @dataclass(frozen=True)
    class Result:
        levels: int

    @click.command("count-levels", cls=Command)
    @click.argument("plan", type=click.Path(path_type=Path, exists=True))
    def command(plan: Path) -> Answer:
        """Say how many levels PLAN has."""
        levels = len(cg.read_plan(plan).level_names)
        return Answer(Result(levels), f"{levels} levels.")
'''
# One process runs all commands: each would load what they share anew.
WAY = """
import sys
from congenial.cli import command_line as cli
plan, out = sys.argv[1:]
ways = ["explain", plan], ["release", plan, "--out", out], ["verify", out], ["report", out]
for command in ways:
    code = cli.run(command)
    if code:
        sys.exit(code)
    print("=====")
"""


@pytest.fixture(scope="module")
def planted(tmp_path_factory):
    """Return a function that runs the copy, in which four files are planted."""
    place = tmp_path_factory.mktemp("planted")
    root = place / "congenial"
    shutil.copytree(SOURCE, root, copy_function=os.symlink)
    for file, text in {
        "noise/discrete_huber.py": HUBER,
        "noise/double_geometric.py": GEOMETRIC,
        "conditioning/samplers/as_it_is.py": SAMPLER,
        "cli/commands/count_levels.py": COMMAND,
    }.items():
        (root / file).write_text(textwrap.dedent(text).lstrip(), encoding="utf-8")

    def run(*arguments):
        done = subprocess.run(
            [sys.executable, *map(str, arguments)],
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
            env=os.environ | {"PYTHONPATH": str(place)},
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


@pytest.mark.parametrize(
    ("law", "method", "text"),
    [
        ("discrete-huber", "imaging", "discrete Huber"),
        ("double-geometric", "conditioning", "double geometric"),
    ],
)
def test_a_noise_law_is_released_verified_and_reported(law, method, text, planted, tmp_path):
    plan = make_city(
        tmp_path,
        privacy=f'neighbours = "substitute"\nepsilon = 1.0\nnoise = "{law}"\n',
        method=f'name = "{method}"\n',
        release='publish = ["table", "measurements"]\n' if method == "imaging" else "",
    )
    out = tmp_path / "out"
    told = planted("-c", WAY, plan, out).split("=====")
    assert "Epsilon is" in told[0]
    assert law in (out / "certificate.json").read_text(encoding="utf-8")
    assert "FAILED" not in told[2]
    assert any(text in page.read_text(encoding="utf-8") for page in out.glob("*.html"))
    if method == "imaging":
        program = "import sys, congenial as cg; m = cg.inference.read_measurements(sys.argv[1])"
        name = planted("-c", f"{program}; print(m.mechanism.noise.name)", out)
        assert name.strip() == law


def test_a_noise_law_and_a_sampler_serve_in_python(planted):
    found = planted(
        "-c",
        """
import congenial as cg
from congenial.noise import find_law
tree = cg.Tree.from_parents([-1, 0, 0])
C = cg.consistent(tree) & cg.exactly([0])
x = [9, 4, 5]
K = cg.condition(cg.Additive(find_law("double-geometric")(2.0), tree), C, sampler="as-it-is")
L = cg.condition(cg.Additive(cg.DiscreteLaplace(2.0), tree), C)
assert (K.sample(x, 9, cg.seeded(1)) == L.sample(x, 9, cg.seeded(1))).all()
M = cg.Additive(find_law("discrete-huber")(2.0), tree)
z = cg.image(M, C).sample(x, 9, cg.seeded(1))
assert (z[:, 0] == 9).all() and (abs(z[:, 1:].sum(1) - 9) < 1e-9).all()
for refused in (lambda: cg.condition(M, C), lambda: cg.condition(M, C, "gibbs"),
                lambda: cg.condition(M, C, "rejection"), lambda: cg.condition(M, C, "tree-mh"),
                lambda: cg.posterior(x, M, C)):
    try:
        refused()
    except cg.errors.UnsupportedError as error:
        assert "discrete-huber" in str(error)
    else:
        raise AssertionError("a law without kernels was conditioned")
print("done")
""",
    )
    assert found == "done\n"


def test_a_command_is_listed_and_runs(planted, tmp_path):
    plan = make_city(tmp_path)
    ours = ("-m", "congenial.cli")
    assert "  count-levels  Say how many levels PLAN has." in planted(*ours, "--help")
    assert planted(*ours, "count-levels", plan) == "3 levels.\n"
    told = json.loads(planted(*ours, "count-levels", plan, "--json"))
    assert (told["command"], told["result"]) == ("count-levels", {"levels": 3})
