"""Draw Washington's blocks and cells by conditioning, at once and by counties.

Prints time and memory. Each way is a process of its own, which draws once.
Usage: python -m benchmarks.washington_by_parts 10
"""

from __future__ import annotations

import subprocess
import sys
from resource import RUSAGE_SELF, getrusage
from time import process_time

import click
import numpy as np

import congenial as cg
from benchmarks import worlds
from benchmarks.ours import tree_invariant
from congenial.conditioning import condition_by_parts

COUNTY = 1  # level of the counties, whose parts are drawn


@click.command(help="Draw the counts with noise of SCALE, all at least 0 with an exact total.")
@click.argument("scale", type=click.FloatRange(min=0.0, min_open=True))
@click.option("--races", is_flag=True, help="Have races and ages as levels of their own.")
@click.option("--way", type=click.Choice(["whole", "parts"]), help="Draw in this process.")
def main(scale: float, races: bool, way: str | None) -> None:
    """Measure both ways, or draw in one."""
    if way is not None:
        _draw(scale, races=races, by_parts=way == "parts")
        return
    for each in ("whole", "parts"):
        command = [sys.executable, "-m", "benchmarks.washington_by_parts", str(scale)]
        subprocess.run([*command, "--way", each, *["--races"] * races], check=True)


def _draw(scale: float, *, races: bool, by_parts: bool) -> None:
    for blocks in (2_000, None):  # the first draw loads kernels
        tree, x = worlds.washington_cells(blocks, races=races)
        noisy = cg.Additive(cg.DiscreteLaplace(scale), tree)
        invariant = tree_invariant(tree, pinned=True, bounded=True)
        begun = process_time()
        if by_parts:
            drawn = condition_by_parts(noisy, invariant, COUNTY).sample(x)
        else:
            drawn = cg.condition(noisy, invariant).sample(x).astype(np.int64)
        used = process_time() - begun
        if not (tree.is_consistent(drawn) and drawn.min() >= 0 and drawn[0] == x[0]):
            raise SystemExit("the draw does not obey its invariant.")
    memory = getrusage(RUSAGE_SELF).ru_maxrss / 1000
    way = "by parts" if by_parts else "at once"
    click.echo(f"{len(tree):,} counts {way}: {used:.1f} s of processor time, {memory:,.0f} MB")


if __name__ == "__main__":
    main()
