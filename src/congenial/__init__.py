"""Differentially private counts that obey mandates exactly.

The names below are the public interface; each is loaded when first used, so that importing the
package costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from congenial.accounting.calibration import calibrate
    from congenial.accounting.composition import compose, compose_parallel, group_privacy
    from congenial.accounting.discrete_gaussian_delta import discrete_gaussian_delta
    from congenial.accounting.gaussian_calibration import (
        gaussian_delta,
        gaussian_epsilon,
        gaussian_sigma,
    )
    from congenial.accounting.guarantee import Guarantee
    from congenial.accounting.sensitivity import Sensitivity, sensitivity
    from congenial.auditing.audit import audit
    from congenial.conditioning.condition import condition
    from congenial.conditioning.proposal import Proposal
    from congenial.errors import CongenialError
    from congenial.imaging.image import image
    from congenial.imaging.project import project
    from congenial.imaging.topdown import topdown, topdown_image
    from congenial.imaging.unbiased import round_unbiased
    from congenial.inference.intervals import (
        error_margin_of_sum,
        error_margins,
        simultaneous_error_margins,
    )
    from congenial.inference.inversion import inverted_intervals
    from congenial.inference.likelihood import log_likelihood, log_likelihood_gradient
    from congenial.inference.posterior import posterior
    from congenial.inference.priors import Prior
    from congenial.invariants import at_least, bounds, consistent, exactly, linear, nonnegative
    from congenial.mandates import at_least_as_many, bounds_margins, exactly_margins
    from congenial.measurements import read_measurements
    from congenial.mechanisms.additive import Additive
    from congenial.mechanisms.discrete_gaussian import DiscreteGaussian
    from congenial.mechanisms.discrete_laplace import DiscreteLaplace
    from congenial.mechanisms.gaussian import Gaussian
    from congenial.mechanisms.laplace import Laplace
    from congenial.mixtures import mixture
    from congenial.randomness import secure, seeded
    from congenial.reading import read_release
    from congenial.table import Table
    from congenial.tree import Tree
    from congenial.workload import Workload

__version__ = "0.1.0"

_HOME = {
    "Additive": "mechanisms.additive",
    "CongenialError": "errors",
    "DiscreteGaussian": "mechanisms.discrete_gaussian",
    "DiscreteLaplace": "mechanisms.discrete_laplace",
    "Gaussian": "mechanisms.gaussian",
    "Guarantee": "accounting.guarantee",
    "Laplace": "mechanisms.laplace",
    "Prior": "inference.priors",
    "Proposal": "conditioning.proposal",
    "Sensitivity": "accounting.sensitivity",
    "Table": "table",
    "Tree": "tree",
    "Workload": "workload",
    "at_least": "invariants",
    "at_least_as_many": "mandates",
    "audit": "auditing.audit",
    "bounds": "invariants",
    "bounds_margins": "mandates",
    "calibrate": "accounting.calibration",
    "compose": "accounting.composition",
    "compose_parallel": "accounting.composition",
    "condition": "conditioning.condition",
    "consistent": "invariants",
    "discrete_gaussian_delta": "accounting.discrete_gaussian_delta",
    "error_margin_of_sum": "inference.intervals",
    "error_margins": "inference.intervals",
    "exactly": "invariants",
    "exactly_margins": "mandates",
    "gaussian_delta": "accounting.gaussian_calibration",
    "gaussian_epsilon": "accounting.gaussian_calibration",
    "gaussian_sigma": "accounting.gaussian_calibration",
    "group_privacy": "accounting.composition",
    "image": "imaging.image",
    "inverted_intervals": "inference.inversion",
    "linear": "invariants",
    "log_likelihood": "inference.likelihood",
    "log_likelihood_gradient": "inference.likelihood",
    "mixture": "mixtures",
    "nonnegative": "invariants",
    "posterior": "inference.posterior",
    "project": "imaging.project",
    "read_measurements": "measurements",
    "read_release": "reading",
    "round_unbiased": "imaging.unbiased",
    "secure": "randomness",
    "seeded": "randomness",
    "sensitivity": "accounting.sensitivity",
    "simultaneous_error_margins": "inference.intervals",
    "topdown": "imaging.topdown",
    "topdown_image": "imaging.topdown",
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
