"""Inference from a release about the true counts: posteriors, intervals, likelihoods.

Offered: priors, likelihoods, posteriors, error margins, intervals by inversion, measurements.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from congenial.inference.error_law import (
        error_margin_of_sum,
        error_margins,
        simultaneous_error_margins,
    )
    from congenial.inference.inversion import inverted_intervals
    from congenial.inference.likelihood import log_likelihood, log_likelihood_gradient
    from congenial.inference.posteriors import Estimate, Posterior
    from congenial.inference.priors import Prior
    from congenial.releases.measurements import Measurements, read_measurements

_HOME = {
    "Estimate": "inference.posteriors",
    "Measurements": "releases.measurements",
    "Posterior": "inference.posteriors",
    "Prior": "inference.priors",
    "error_margin_of_sum": "inference.error_law",
    "error_margins": "inference.error_law",
    "inverted_intervals": "inference.inversion",
    "log_likelihood": "inference.likelihood",
    "log_likelihood_gradient": "inference.likelihood",
    "read_measurements": "releases.measurements",
    "simultaneous_error_margins": "inference.error_law",
}

__all__ = [
    "Estimate",
    "Measurements",
    "Posterior",
    "Prior",
    "error_margin_of_sum",
    "error_margins",
    "inverted_intervals",
    "log_likelihood",
    "log_likelihood_gradient",
    "read_measurements",
    "simultaneous_error_margins",
]


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"congenial.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return list(__all__)
