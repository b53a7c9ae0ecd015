"""A conditional mechanism: draws, states a guarantee, and answers questions about its law."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from congenial import sum_network
from congenial.accounting.mechanism import Certified
from congenial.exhibits.plots import axes_or_new, draw_law, draw_normal
from congenial.noise.additive import checked_alpha
from congenial.types import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class Normal(NamedTuple):
    """A normal law."""

    mean: float
    sd: float


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


class PlotsMarginals:
    """The plot of a law whose `marginal` is known."""

    def marginal(self, node: int | str, x: npt.ArrayLike) -> tuple[Any, Any]:
        """Law of one released value."""
        raise NotImplementedError

    def plot(
        self, node: int | str, x: npt.ArrayLike, *, alpha: float = 0.1, ax: Axes | None = None
    ) -> Axes:
        """Plot the law of one released value, see `marginal`.

        The plot shows `x`: it is as confidential as `x` is.

        Parameters
        ----------
        node : int or str
        x : array_like of int, shape (n,)
            Values of all queries, which satisfy the invariant.
        alpha : float
            Values that a release has with probability at least 1 - alpha are darker.
        ax : matplotlib.axes.Axes, optional
            A new figure's by default.

        Returns
        -------
        matplotlib.axes.Axes

        Raises
        ------
        ArgumentError, InvariantError
            As `marginal` does.
        UnsupportedError
            If the law is not known, or Matplotlib is not installed.
        """
        checked_alpha(alpha)
        ax, law = axes_or_new(ax), self.marginal(node, x)
        text = f"probability at least {1.0 - alpha:g}"
        title = f"Law of the released value at {node}"
        if isinstance(law, Normal):
            reach = -NormalDist().inv_cdf(0.5 * float(alpha)) * law.sd
            return draw_normal(ax, law.mean, law.sd, title, reach, text)
        values, probabilities = law
        places = np.arange(len(values))
        low, high, _ = sum_network.interval_and_reach(places, probabilities, alpha)
        ends = (values[low], values[high])
        return draw_law(ax, values, probabilities, title, ends, text, "released value")


class AnswersByLaw(PlotsMarginals):
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
