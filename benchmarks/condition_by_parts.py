"""Draw nonnegative counts by conditioning, at once and by parts, and print time and memory.

Each way is a process of its own. By parts, the counts of a part are made anew each time they are
needed, so that memory holds one part. Usage: python -m benchmarks.condition_by_parts 10000000 50
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import click
import numpy as np

import congenial as cg
from benchmarks.ours import bounded_noise
from benchmarks.rows.pipeline import seconds_of, used_by
from congenial import sum_network
from congenial.sum_network import exact, joined
from congenial.types import IntArray, Values

SCALE = 2.0
BELOW = 1_000  # leaves below each node of the lowest inner level


@click.command(help="Draw LEAVES counts, all at least 0 with an exact total, in PARTS parts.")
@click.argument("leaves", type=click.IntRange(min=BELOW))
@click.argument("parts", type=click.IntRange(min=2))
@click.option("--way", type=click.Choice(["whole", "parts"]), help="Draw in this process.")
def main(leaves: int, parts: int, way: str | None) -> None:
    """Measure both ways, or draw in one."""
    if way is not None:
        inner = leaves // parts // BELOW
        (_at_once if way == "whole" else _by_parts)(parts, inner)
        return
    for each in ("whole", "parts"):
        command = [sys.executable, "-m", "benchmarks.condition_by_parts", str(leaves), str(parts)]
        used = used_by([*command, "--way", each])
        click.echo(
            f"{each}: {seconds_of(used):.1f} s of processor time, {used.ru_maxrss / 1000:,.0f} MB"
        )


def _part(inner: int) -> cg.Tree:
    above = np.zeros(inner, dtype=np.int64)
    return cg.Tree.from_parents(
        np.concatenate(([-1], above, 1 + np.arange(inner * BELOW) // BELOW))
    )


def _counts(number: int, leaves: int) -> IntArray:
    """Return made-up counts of a part's leaves, of which about half are 0."""
    words = cg.seeded(number).bits(leaves) >> np.uint64(11)
    return np.floor(-1.5 * np.log((words.astype(np.float64) + 1.0) * 2.0**-53)).astype(np.int64)


def _by_parts(parts: int, inner: int) -> None:
    part, top = _part(inner), cg.Tree.from_parents([-1, *[0] * parts])
    leaves = inner * BELOW

    def fetch(number: int) -> joined.PartSums:
        weights = bounded_noise(part, part.roll_up(_counts(number, leaves)), SCALE, exact=False)
        return joined.PartSums(sum_network.of_tree(part), weights, 1.0 / parts)

    def messages_of(outsides: Sequence[joined.Outside]) -> list[joined.PartMessage]:
        return [joined.message_of(fetch(k), outside) for k, outside in enumerate(outsides)]

    totals = top.roll_up([_counts(number, leaves).sum() for number in range(parts)])
    weights, rng = bounded_noise(top, totals, SCALE, exact=True), cg.seeded(1)
    roots = 1 + np.arange(parts)
    made = joined.join(sum_network.of_tree(top), weights, roots, messages_of)
    noise = exact.sample(made.tables, 1, rng, first=len(top))[0]
    for number, (sent, outside) in enumerate(zip(made.messages, made.outsides, strict=True)):
        root = noise[number + 1 : number + 2]
        accepted, drawn = joined.attempt_part(fetch(number), sent, outside, root, rng)
        if not accepted.all():
            raise click.ClickException("a part refused the draw, which is rare; give other numbers")
        _check(part, drawn[0] + part.roll_up(_counts(number, leaves)))
    click.echo(f"{sum(one.table.nbytes for one in made.messages)} bytes sent")


def _at_once(parts: int, inner: int) -> None:
    part, inside = _part(inner).parents[1:], np.arange(parts)[:, None] * (inner + inner * BELOW)
    roots = np.where(part == 0, 1 + np.arange(parts)[:, None], part + parts + inside)
    tree = cg.Tree.from_parents(np.concatenate(([-1], np.zeros(parts, dtype=int), roots.ravel())))
    counts = tree.roll_up(np.concatenate([_counts(k, inner * BELOW) for k in range(parts)]))
    weights = bounded_noise(tree, counts, SCALE, exact=True)
    made = sum_network.compile(sum_network.of_tree(tree), weights, whole=False)
    tables = exact.fill_envelopes(made)
    _check(tree, exact.sample(tables, 1, cg.seeded(1), first=len(tree))[0] + counts)


def _check(tree: cg.Tree, values: Values) -> None:
    if values.min() < 0 or not tree.is_consistent(values):
        raise click.ClickException("a draw breaks the invariant")


if __name__ == "__main__":
    main()
