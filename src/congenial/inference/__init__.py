"""Inference from a release about the true counts: posteriors, intervals, likelihoods.

Offered: priors, likelihoods, posteriors, error margins, intervals by inversion, measurements.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from congenial.namespaces import offer

if TYPE_CHECKING:
    from congenial.inference.error_law import error_margin_of_sum as error_margin_of_sum
    from congenial.inference.error_law import error_margins as error_margins
    from congenial.inference.error_law import (
        simultaneous_error_margins as simultaneous_error_margins,
    )
    from congenial.inference.inversion import inverted_intervals as inverted_intervals
    from congenial.inference.likelihood import log_likelihood as log_likelihood
    from congenial.inference.likelihood import log_likelihood_gradient as log_likelihood_gradient
    from congenial.inference.parted_posterior import posterior_by_parts as posterior_by_parts
    from congenial.inference.posteriors import Estimate as Estimate
    from congenial.inference.posteriors import Posterior as Posterior
    from congenial.inference.priors import Prior as Prior
    from congenial.inference.splits.dirichlet_tree import DirichletTree as DirichletTree
    from congenial.releases.measurements import Measurements as Measurements
    from congenial.releases.measurements import read_measurements as read_measurements

_HOME = {
    "inference.splits.dirichlet_tree": "DirichletTree",
    "inference.error_law": "error_margin_of_sum error_margins simultaneous_error_margins",
    "inference.inversion": "inverted_intervals",
    "inference.likelihood": "log_likelihood log_likelihood_gradient",
    "inference.parted_posterior": "posterior_by_parts",
    "inference.posteriors": "Estimate Posterior",
    "inference.priors": "Prior",
    "releases.measurements": "Measurements read_measurements",
}

__all__, __getattr__, __dir__ = offer(__name__, _HOME)
