"""Fill tables of merges and of families for several trees and scales, and print the times of both.

The thresholds of `sum_network.families.wide_noise` follow from these. Takes some two minutes.
Usage: python -m benchmarks.family_tables
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from time import process_time

import click

import congenial as cg
from benchmarks import worlds
from benchmarks.ours import bounded_noise
from benchmarks.rows.everywhere import FANS, QUICK_FANS
from congenial import sum_network
from congenial.errors import NumericalError, UnsupportedError
from congenial.sum_network import families
from congenial.sum_network.exact.envelopes import fill_envelopes
from congenial.types import IntArray

SCALES = (0.5, 1.0, 2.0, 4.0, 10.0)


def _poisson(fans: Sequence[int]) -> tuple[cg.Tree, IntArray]:
    tree = worlds.grown(fans)
    return tree, worlds.poisson(tree)


WORLDS: dict[str, Callable[[bool], tuple[cg.Tree, IntArray]]] = {
    "Poisson(3) leaves": lambda small: _poisson(QUICK_FANS if small else FANS),
    "a binary tree": lambda small: _poisson((2,) * (4 if small else 16)),
    "Washington's blocks": lambda small: worlds.washington(1_000 if small else None),
    "25,000 blocks and cells": lambda small: worlds.washington_cells(1_000 if small else 25_000),
}


@click.command(help="Fill tables of merges and of families, all counts at least 0, an exact total.")
@click.option("--quick", is_flag=True, help="Tiny sizes, to see that everything runs.")
def main(quick: bool) -> None:
    """Print a line for each tree and scale."""
    for name, make in WORLDS.items():
        for small in (True, False)[: 1 if quick else 2]:  # the first ones load kernels
            tree, x = make(small)
            for scale in SCALES[:1] if small and not quick else SCALES:
                sums = sum_network.of_tree(tree), bounded_noise(tree, x, scale, exact=True)
                compiled = sum_network.compile(*sums, tilts_of=families.matched_tilts)
                merges = _seconds(partial(fill_envelopes, compiled))
                own = _seconds(partial(families.fill_families, *sums))
                used = families.are_worthwhile(*sums)
                if quick or not small:
                    taken = "families" if used else "merges"
                    click.echo(
                        f"{name}, scale {scale:g}: by merges {merges}, by families {own}; "
                        f"{taken} are used"
                    )


def _seconds(fill: Callable[[], object]) -> str:
    begun = process_time()
    try:
        found = fill()
    except (NumericalError, UnsupportedError):
        found = None
    return "refused" if found is None else f"{process_time() - begun:.2f} s"


if __name__ == "__main__":
    main()
