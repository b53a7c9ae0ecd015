"""Differentially private counts that obey invariants exactly.

The names below are the public interface, and so are those that the namespaces `accounting`,
`belief`, `conditioning`, `imaging` and `inference` list, and the kinds of errors in `errors`. Each
is loaded when first used, so that importing the package costs nothing.
"""

from __future__ import annotations

import warnings
from importlib import import_module
from typing import TYPE_CHECKING

from congenial._version import __version__ as __version__

if TYPE_CHECKING:
    from congenial import accounting as accounting
    from congenial import belief as belief
    from congenial import conditioning as conditioning
    from congenial import errors as errors
    from congenial import imaging as imaging
    from congenial import inference as inference
    from congenial.accounting.calibration.scales import calibrate
    from congenial.accounting.guarantee import Guarantee
    from congenial.auditing.trial import audit
    from congenial.conditioning.choice import condition
    from congenial.conditioning.mixtures import mixture
    from congenial.domain.table import Table
    from congenial.domain.tree import Tree
    from congenial.domain.workload import Workload
    from congenial.errors import CongenialError
    from congenial.imaging.closest import project
    from congenial.imaging.top_down import topdown
    from congenial.imaging.update import image
    from congenial.inference.posteriors import posterior
    from congenial.invariants.written import (
        at_least,
        at_least_as_many,
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
    from congenial.plan.plan import parse_plan, read_plan
    from congenial.preview.comparison.comparing import compare
    from congenial.preview.explanation import explain
    from congenial.preview.plan_audit import audit_plan
    from congenial.randomness import secure, seeded
    from congenial.releases.making import release
    from congenial.releases.reading import Release, read_release
    from congenial.verification.verdict import verify

_NAMESPACES = ("accounting", "belief", "conditioning", "errors", "imaging", "inference")
_HOME = {
    "Additive": "noise.additive",
    "CongenialError": "errors",
    "DiscreteGaussian": "noise.discrete_gaussian",
    "DiscreteLaplace": "noise.discrete_laplace",
    "Gaussian": "noise.gaussian",
    "Guarantee": "accounting.guarantee",
    "Laplace": "noise.laplace",
    "Release": "releases.reading",
    "Table": "domain.table",
    "Tree": "domain.tree",
    "Workload": "domain.workload",
    "at_least": "invariants.written",
    "at_least_as_many": "invariants.written",
    "audit": "auditing.trial",
    "audit_plan": "preview.plan_audit",
    "bounds": "invariants.written",
    "calibrate": "accounting.calibration.scales",
    "compare": "preview.comparison.comparing",
    "condition": "conditioning.choice",
    "consistent": "invariants.written",
    "exactly": "invariants.written",
    "explain": "preview.explanation",
    "image": "imaging.update",
    "linear": "invariants.written",
    "mixture": "conditioning.mixtures",
    "nonnegative": "invariants.written",
    "parse_plan": "plan.plan",
    "posterior": "inference.posteriors",
    "project": "imaging.closest",
    "read_plan": "plan.plan",
    "read_release": "releases.reading",
    "release": "releases.making",
    "secure": "randomness",
    "seeded": "randomness",
    "topdown": "imaging.top_down",
    "verify": "verification.verdict",
}

# Moved names, by the namespace that offers them now; they go with version 0.2.
_MOVED = {
    "Prior": "inference",
    "Proposal": "conditioning",
    "Sensitivity": "accounting",
    "compose": "accounting",
    "compose_parallel": "accounting",
    "discrete_gaussian_delta": "accounting",
    "error_margin_of_sum": "inference",
    "error_margins": "inference",
    "gaussian_delta": "accounting",
    "gaussian_epsilon": "accounting",
    "gaussian_sigma": "accounting",
    "group_privacy": "accounting",
    "inverted_intervals": "inference",
    "log_likelihood": "inference",
    "log_likelihood_gradient": "inference",
    "read_measurements": "inference",
    "round_unbiased": "imaging",
    "sensitivity": "accounting",
    "simultaneous_error_margins": "inference",
    "topdown_image": "imaging",
}

# Names that another call has taken the place of; they go with version 0.2.
_FOLDED = {
    "bounds_margins": "bounds(lo, hi, margin=...)",
    "exactly_margins": "exactly(margins=...)",
}

__all__ = [
    "Additive",
    "CongenialError",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "Gaussian",
    "Guarantee",
    "Laplace",
    "Release",
    "Table",
    "Tree",
    "Workload",
    "at_least",
    "at_least_as_many",
    "audit",
    "audit_plan",
    "bounds",
    "calibrate",
    "compare",
    "condition",
    "consistent",
    "exactly",
    "explain",
    "image",
    "linear",
    "mixture",
    "nonnegative",
    "parse_plan",
    "posterior",
    "project",
    "read_plan",
    "read_release",
    "release",
    "secure",
    "seeded",
    "topdown",
    "verify",
]


def __getattr__(name: str) -> object:
    if name in _NAMESPACES:
        return import_module(f"congenial.{name}")
    if name in _MOVED:
        _warn(name, f"{_MOVED[name]}.{name}")
        return getattr(import_module(f"congenial.{_MOVED[name]}"), name)
    if name in _FOLDED:
        _warn(name, _FOLDED[name])
        return getattr(import_module("congenial.invariants.written"), name)
    if name not in _HOME:
        raise AttributeError(f"module 'congenial' has no attribute {name!r}")
    value = getattr(import_module(f"congenial.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def _warn(old: str, new: str) -> None:
    """Say where a name is now, as a warning of the line that used it."""
    warnings.warn(
        f"congenial.{old} is now congenial.{new}; the old name goes with version 0.2.",
        DeprecationWarning,
        stacklevel=3,
    )


def __dir__() -> list[str]:
    return [*__all__, *_NAMESPACES, "__version__"]
