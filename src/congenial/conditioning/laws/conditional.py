"""A conditional mechanism: draws, states a guarantee, and answers questions about its law."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy.typing as npt

from congenial.accounting.mechanism import Certified
from congenial.types import FloatArray


class ConditionalMechanism(Certified, Protocol):
    """A mechanism conditioned on an invariant.

    The methods about the law raise `UnsupportedError` if it is unknown, as for chains.
    """

    def log_normalizer(self, x: npt.ArrayLike) -> float:
        """Log probability of the invariant."""

    def log_prob(self, z: npt.ArrayLike, x: npt.ArrayLike) -> float | FloatArray:
        """Log probability of releases, shape (n,) or (size, n)."""

    def marginal(self, node: int | str, x: npt.ArrayLike) -> tuple[Any, Any]:
        """Law of one released value."""

    def joint(self, nodes: Sequence[int | str], x: npt.ArrayLike) -> tuple[Any, Any]:
        """Joint law of several released values."""

    def interval(self, node: int | str, alpha: float = 0.1) -> tuple[Any, Any]:
        """Interval of the noise at a node, with probability at least 1 - alpha."""


class AnswersByLaw:
    """Questions that another mechanism of the same law answers, see `Conditioned`.

    Each raises UnsupportedError if there is none.
    """

    def log_normalizer(self, x: npt.ArrayLike) -> float:
        """Log probability of the invariant."""
        return self._law("log_normalizer").log_normalizer(x)

    def log_prob(self, z: npt.ArrayLike, x: npt.ArrayLike) -> float | FloatArray:
        """Log probability of releases."""
        return self._law("log_prob").log_prob(z, x)

    def marginal(self, node: int | str, x: npt.ArrayLike) -> tuple[Any, Any]:
        """Law of one released value."""
        return self._law("marginal").marginal(node, x)

    def joint(self, nodes: Sequence[int | str], x: npt.ArrayLike) -> tuple[Any, Any]:
        """Joint law of released values."""
        return self._law("joint").joint(nodes, x)

    def interval(self, node: int | str, alpha: float = 0.1) -> tuple[Any, Any]:
        """Interval of the noise at a node."""
        return self._law("interval").interval(node, alpha)

    def _law(self, question: str) -> ConditionalMechanism:
        raise NotImplementedError
