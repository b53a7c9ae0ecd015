"""Types of arrays, as annotations name them. A docstring gives the shape."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

BoolArray = npt.NDArray[np.bool_]
FloatArray = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int32]
IntArray = npt.NDArray[np.int64]
Values = npt.NDArray[np.int64 | np.float64]
Words = npt.NDArray[np.uint64]
