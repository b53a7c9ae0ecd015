"""Fixed sums in integers, so that contributions of records are compared exactly."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from congenial.errors import PrivacyError
from congenial.types import FloatArray, IntArray

# Integers: as doubles if all are exact, else as Python's integers.
WholeArray = npt.NDArray[Any]

# Doubles hold every integer up to this.
EXACT = 2.0**53
# Relative difference below which two decimal sums may have been meant as equal.
CLOSE = Fraction(1, 2**30)


def whole_sums(
    rows: FloatArray,
    on_cells: Callable[[WholeArray], WholeArray],
    sizes: Callable[[WholeArray], WholeArray] | None = None,
) -> WholeArray:
    """Contribution of a record in each cell to each sum, multiplied until it is whole.

    A multiple of a sum is kept by the same moves of records as the sum.
    """
    whole = (rows == np.rint(rows)).all(axis=1)
    small = (sizes or on_cells)(np.abs(rows)) < EXACT
    direct = whole & small.all(axis=1)
    if direct.all():
        return on_cells(rows)
    multiplied = np.zeros(rows.shape, dtype=np.object_)
    for row, out in zip(rows, multiplied, strict=True):
        terms = [(int(j), _exact(float(row[j]))) for j in np.flatnonzero(row)]
        common = math.lcm(*(value.denominator for _, value in terms))
        for j, value in terms:
            out[j] = value.numerator * (common // value.denominator)
    found = on_cells(multiplied)
    for sums in found[~whole]:
        _refuse_doubt(sums.tolist())
    if (np.abs(found) < EXACT).all():
        return np.asarray(found, dtype=np.float64)
    return found


def _exact(value: float) -> Fraction:
    return Fraction(value) if value.is_integer() else Fraction(repr(value))


def _refuse_doubt(sums: list[int]) -> None:
    order = sorted(range(len(sums)), key=sums.__getitem__)
    limit = CLOSE * max(map(abs, sums))
    for one, other in itertools.pairwise(order):
        if 0 < sums[other] - sums[one] <= limit:
            raise PrivacyError(
                f"records of cells {one} and {other} add nearly the same to a fixed sum, whose "
                "decimals leave it in doubt whether one may replace the other; multiply the sum "
                "until its coefficients are whole numbers."
            )


def alike_columns(rows: WholeArray) -> IntArray:
    """Number the columns; equal columns get one number."""
    labels = np.zeros(rows.shape, dtype=np.int64)
    for at, row in enumerate(rows):
        labels[at] = np.unique(row, return_inverse=True)[1]
    _, group = np.unique(labels, axis=1, return_inverse=True)
    return np.asarray(group, dtype=np.int64).ravel()
