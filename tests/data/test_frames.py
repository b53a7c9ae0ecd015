"""Frames in memory are registered with DuckDB; the errors of an engine are known."""

from __future__ import annotations

import sqlite3

import duckdb
import narwhals as nw
import numpy as np
import pandas as pd
import pytest

from congenial.data.frames import failures, register, with_text
from congenial.errors import DataError


def test_objects_of_pandas_are_text_and_whole_numbers_have_no_point():
    frame = nw.from_native(pd.DataFrame({"k": pd.Series([1.0, 2.5, None, "x"], dtype=object)}))
    found = with_text(frame, ["k"])["k"].to_list()
    assert [*found[:2], found[3]] == ["1", "2.5", "x"] and pd.isna(found[2])


def test_the_errors_of_loaded_engines_are_known():
    found = failures()
    assert {sqlite3.Error, duckdb.Error, nw.exceptions.NarwhalsError} <= set(found)
    assert Exception not in found


def test_a_column_that_duckdb_cannot_read_is_refused_without_its_cells():
    frame = pd.DataFrame({"k": pd.Series(np.array([1 + 2j, 3]))})
    with duckdb.connect() as connection, pytest.raises(DataError) as caught:
        register(connection, nw.from_native(frame, eager_only=True), ["k"], "the frame")
    assert "1+2j" not in str(caught.value) and caught.value.__context__ is None
