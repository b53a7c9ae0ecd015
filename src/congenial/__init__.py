"""Differentially private counts that obey mandates exactly.

The names below are the public interface; each is loaded when first used, so that importing the
package costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from congenial._version import __version__ as __version__

if TYPE_CHECKING:
    from congenial.accounting.calibration.scales import calibrate
    from congenial.accounting.composition import compose, compose_parallel, group_privacy
    from congenial.accounting.guarantee import Guarantee
    from congenial.accounting.loss.discrete_gaussian_loss import discrete_gaussian_delta
    from congenial.accounting.loss.gaussian_loss import (
        gaussian_delta,
        gaussian_epsilon,
        gaussian_sigma,
    )
    from congenial.accounting.sensitivities import Sensitivity, sensitivity
    from congenial.auditing.trial import audit
    from congenial.conditioning.choice import condition
    from congenial.conditioning.mixtures import mixture
    from congenial.conditioning.samplers.proposal import Proposal
    from congenial.domain.table import Table
    from congenial.domain.tree import Tree
    from congenial.domain.workload import Workload
    from congenial.errors import CongenialError
    from congenial.imaging.closest import project
    from congenial.imaging.top_down import topdown, topdown_image
    from congenial.imaging.unbiased import round_unbiased
    from congenial.imaging.update import image
    from congenial.inference.error_law import (
        error_margin_of_sum,
        error_margins,
        simultaneous_error_margins,
    )
    from congenial.inference.inversion import inverted_intervals
    from congenial.inference.likelihood import log_likelihood, log_likelihood_gradient
    from congenial.inference.posteriors import posterior
    from congenial.inference.priors import Prior
    from congenial.invariants.of_margins import at_least_as_many, bounds_margins, exactly_margins
    from congenial.invariants.written import (
        at_least,
        bounds,
        consistent,
        exactly,
        linear,
        nonnegative,
    )
    from congenial.noise.additive import Additive
    from congenial.noise.discrete_gaussian import DiscreteGaussian
    from congenial.noise.discrete_laplace import DiscreteLaplace
    from congenial.noise.gaussian import Gaussian
    from congenial.noise.laplace import Laplace
    from congenial.randomness import secure, seeded
    from congenial.releases.measurements import read_measurements
    from congenial.releases.reading import read_release

_HOME = {
    "Additive": "noise.additive",
    "CongenialError": "errors",
    "DiscreteGaussian": "noise.discrete_gaussian",
    "DiscreteLaplace": "noise.discrete_laplace",
    "Gaussian": "noise.gaussian",
    "Guarantee": "accounting.guarantee",
    "Laplace": "noise.laplace",
    "Prior": "inference.priors",
    "Proposal": "conditioning.samplers.proposal",
    "Sensitivity": "accounting.sensitivities",
    "Table": "domain.table",
    "Tree": "domain.tree",
    "Workload": "domain.workload",
    "at_least": "invariants.written",
    "at_least_as_many": "invariants.of_margins",
    "audit": "auditing.trial",
    "bounds": "invariants.written",
    "bounds_margins": "invariants.of_margins",
    "calibrate": "accounting.calibration.scales",
    "compose": "accounting.composition",
    "compose_parallel": "accounting.composition",
    "condition": "conditioning.choice",
    "consistent": "invariants.written",
    "discrete_gaussian_delta": "accounting.loss.discrete_gaussian_loss",
    "error_margin_of_sum": "inference.error_law",
    "error_margins": "inference.error_law",
    "exactly": "invariants.written",
    "exactly_margins": "invariants.of_margins",
    "gaussian_delta": "accounting.loss.gaussian_loss",
    "gaussian_epsilon": "accounting.loss.gaussian_loss",
    "gaussian_sigma": "accounting.loss.gaussian_loss",
    "group_privacy": "accounting.composition",
    "image": "imaging.update",
    "inverted_intervals": "inference.inversion",
    "linear": "invariants.written",
    "log_likelihood": "inference.likelihood",
    "log_likelihood_gradient": "inference.likelihood",
    "mixture": "conditioning.mixtures",
    "nonnegative": "invariants.written",
    "posterior": "inference.posteriors",
    "project": "imaging.closest",
    "read_measurements": "releases.measurements",
    "read_release": "releases.reading",
    "round_unbiased": "imaging.unbiased",
    "secure": "randomness",
    "seeded": "randomness",
    "sensitivity": "accounting.sensitivities",
    "simultaneous_error_margins": "inference.error_law",
    "topdown": "imaging.top_down",
    "topdown_image": "imaging.top_down",
}

__all__ = [
    "Additive",
    "CongenialError",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "Gaussian",
    "Guarantee",
    "Laplace",
    "Prior",
    "Proposal",
    "Sensitivity",
    "Table",
    "Tree",
    "Workload",
    "at_least",
    "at_least_as_many",
    "audit",
    "bounds",
    "bounds_margins",
    "calibrate",
    "compose",
    "compose_parallel",
    "condition",
    "consistent",
    "discrete_gaussian_delta",
    "error_margin_of_sum",
    "error_margins",
    "exactly",
    "exactly_margins",
    "gaussian_delta",
    "gaussian_epsilon",
    "gaussian_sigma",
    "group_privacy",
    "image",
    "inverted_intervals",
    "linear",
    "log_likelihood",
    "log_likelihood_gradient",
    "mixture",
    "nonnegative",
    "posterior",
    "project",
    "read_measurements",
    "read_release",
    "round_unbiased",
    "secure",
    "seeded",
    "sensitivity",
    "simultaneous_error_margins",
    "topdown",
    "topdown_image",
]


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'congenial' has no attribute {name!r}")
    value = getattr(import_module(f"congenial.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
