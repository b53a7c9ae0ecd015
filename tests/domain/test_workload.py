"""Answers to margins of tables, against sums over the cells."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import congenial as cg
from congenial.errors import ArgumentError
from support.notebook import HOSTILE, texts
from support.seeds import for_each_seed


def random_table(rng):
    axes = {name: tuple(f"{name}{i}" for i in range(int(rng.integers(1, 4)))) for name in "abc"}
    names = list(axes)[: int(rng.integers(1, 4))]
    return cg.Table({name: axes[name] for name in names})


@for_each_seed(150)
def test_answers_are_sums_over_the_other_axes(seed):
    rng = np.random.default_rng(seed)
    table = random_table(rng)
    axes = tuple(table.axes)
    every = [m for k in range(len(axes) + 1) for m in itertools.combinations(axes, k)]
    chosen = [every[i] for i in rng.choice(len(every), int(rng.integers(0, len(every) + 1)), False)]
    workload = cg.Workload.of(table, chosen)
    counts = rng.integers(0, 9, [len(table.axes[a]) for a in axes])
    answers = np.asarray(workload.answers(counts))
    assert answers.size == len(workload)
    for margin in {*chosen, axes}:
        gone = tuple(i for i, a in enumerate(axes) if a not in margin)
        got = workload.array(answers, margin)
        assert np.asarray(got).ravel().tolist() == counts.sum(axis=gone).ravel().tolist()
    # a record counts once in each block
    chain = workload.chain
    assert chain.shape == (len(workload.blocks), counts.size)
    for row, block in zip(chain, workload.blocks, strict=True):
        assert ((row >= block.start) & (row < block.stop)).all()
    one = np.zeros(counts.size, dtype=int)
    cell = int(rng.integers(counts.size))
    one[cell] = 1
    counted = np.flatnonzero(workload.answers(one.reshape(counts.shape)))
    assert sorted(counted) == sorted(chain[:, cell])


def test_tables_are_joined_and_their_names_differ():
    one = cg.Workload.of(cg.Table({"a": ("x", "y")}, name="one"), [()])
    two = cg.Workload.of(cg.Table({"b": ("x", "y", "z")}, name="two"))
    joined = one + two
    assert len(joined) == len(one) + len(two) == 6
    assert joined.answers([1, 2], [4, 5, 6]).tolist() == [3, 1, 2, 4, 5, 6]
    with pytest.raises(ArgumentError, match="two tables are named 'one'"):
        one + one
    with pytest.raises(ArgumentError, match="two tables are named 'two'"):
        joined + two


def test_a_workload_is_shown_by_its_blocks():
    table = cg.Table({"sex": ("F", "M"), "age": ("0", "1", "2")}, name=HOSTILE)
    workload = cg.Workload.of(table, [(), "sex"])
    assert repr(workload) == f"Workload(9 queries of {HOSTILE})"
    assert texts(workload._repr_html_()) == [
        "Workload of 9 queries",
        *("table", "level", "margin", "queries"),
        *(HOSTILE, "whole", "total", "1"),
        *(HOSTILE, "whole", "sex", "2"),
        *(HOSTILE, "whole", "sex by age", "6"),
    ]
