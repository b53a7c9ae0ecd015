"""Draw from the posterior of Washington's blocks with 16 cells each, under a flat prior.

Prints the times of one draw of all counts and of the interval of a sum of some, and the memory.
Usage: python -m benchmarks.washington_posterior 10
"""

from __future__ import annotations

from resource import RUSAGE_SELF, getrusage
from time import process_time

import click

import congenial as cg
from benchmarks import worlds
from benchmarks.ours import tree_invariant

SEED, CELLS, APART = 1, 40, 16


@click.command(help="Measure every count with noise of SCALE, all at least 0 with an exact total.")
@click.argument("scale", type=click.FloatRange(min=0.0, min_open=True))
@click.option("--quick", is_flag=True, help="2,000 blocks, to see that everything runs.")
def main(scale: float, quick: bool) -> None:
    """Draw once, and ask for one interval, each from a posterior of its own."""
    for blocks in (2_000, None)[: 1 if quick else 2]:  # the first ones load kernels
        tree, x = worlds.washington_cells(blocks)
        noisy = cg.Additive(cg.DiscreteLaplace(scale), tree)
        invariant = tree_invariant(tree, pinned=True, bounded=True)
        y = noisy.sample(x, rng=cg.seeded(SEED))
        y[0] = x[0]
        begun = process_time()
        drawn = cg.posterior(y, noisy, invariant, prior="flat").sample(rng=cg.seeded(SEED))
        draw = process_time() - begun
        if not (tree.is_consistent(drawn) and drawn.min() >= 0 and drawn[0] == x[0]):
            raise SystemExit("the draw does not obey its invariant.")
        some = tree.leaves[: CELLS * APART : APART].tolist()
        begun = process_time()
        law = cg.posterior(y, noisy, invariant, prior="flat")
        ends = law.interval_of_sum(some, rng=cg.seeded(SEED))
        asked = process_time() - begun
        if ends[0] > ends[1]:
            raise SystemExit("an interval has no values.")
    memory = getrusage(RUSAGE_SELF).ru_maxrss / 1000
    click.echo(
        f"{len(tree):,} counts: a draw takes {draw:.1f} s of processor time, the interval of a sum "
        f"of {CELLS} counts {asked:.1f} s; {memory:,.0f} MB"
    )


if __name__ == "__main__":
    main()
