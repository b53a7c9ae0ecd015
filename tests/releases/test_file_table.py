"""Columns of files as arrays: they come back as objects and as cells, and are compared."""

from __future__ import annotations

import numpy as np
import pytest

from congenial.releases.file_table import (
    ABSENT,
    FileTable,
    Numbers,
    Texts,
    different,
    every,
    repeated,
    texts_of,
)
from support.seeds import for_each_seed


def drawn(rng, size):
    """Texts and numbers of which some are missing."""
    texts = [[None, "", "a", "b", "a b"][k] for k in rng.integers(0, 5, size)]
    numbers = [None if k < 0 else int(k) for k in rng.integers(-3, 4, size)]
    return texts, numbers


def numbers_of(numbers):
    known = np.array([v is not None for v in numbers], dtype=bool)
    return Numbers(np.array([v or 0 for v in numbers], dtype=np.int64), known)


@for_each_seed(20)
def test_columns_come_back_and_differ_where_their_objects_do(seed):
    rng = np.random.default_rng(seed)
    (texts, numbers), (other_texts, other_numbers) = drawn(rng, 30), drawn(rng, 30)
    columns = texts_of(texts), numbers_of(numbers)
    others = texts_of(other_texts), numbers_of(other_numbers)
    for column, given, other, theirs in zip(
        columns, (texts, numbers), others, (other_texts, other_numbers), strict=True
    ):
        assert column.objects() == given
        assert column.cells() == ["" if v is None else str(v) for v in given]
        expected = [one != two for one, two in zip(given, theirs, strict=True)]
        assert different(column, other).tolist() == expected
        at = rng.permutation(30)[:7]
        assert column.take(at).objects() == [given[v] for v in at]
        assert len(column) == len(given)


def test_real_numbers_differ_beyond_rounding_alone():
    one = Numbers(np.array([0.1 + 0.2, 1.0, 5.0]), np.array([True, True, False]))
    two = Numbers(np.array([0.3, 1.0 + 1e-9, 7.0]), np.array([True, True, False]))
    assert different(one, two).tolist() == [False, True, False]
    with pytest.raises(TypeError):
        different(one, texts_of(["a"]))


def test_a_table_has_its_columns_by_name():
    names = Texts(np.array([0, -1], dtype=np.int32), ("x",))
    table = FileTable((("n", "BIGINT"), ("t", "VARCHAR")), (every(np.array([1, 2])), names))
    assert len(table) == 2
    assert table.column("n") == [1, 2] and table.column("t") == ["x", None]
    assert table.numbers("t").objects() == [None, None] == table.texts("n").objects()
    assert names.code(["x", None, "y"]).tolist() == [0, -1, ABSENT]
    assert repeated(("a", "b"), [1, 0]).objects() == ["b", "a"]
