"""Differentially private counts that obey invariants exactly.

The names below are the public interface, and so are those that the namespaces `accounting`,
`belief`, `conditioning`, `imaging` and `inference` list, and the kinds of errors in `errors`. Each
is loaded when first used, so that importing the package costs nothing.
"""

from __future__ import annotations

import warnings
from importlib import import_module
from typing import TYPE_CHECKING

from congenial.namespaces import offer

if TYPE_CHECKING:
    from congenial import accounting as accounting
    from congenial import belief as belief
    from congenial import conditioning as conditioning
    from congenial import errors as errors
    from congenial import imaging as imaging
    from congenial import inference as inference
    from congenial.accounting.calibration.scales import calibrate as calibrate
    from congenial.accounting.guarantee import Guarantee as Guarantee
    from congenial.auditing.trial import audit as audit
    from congenial.conditioning.choice import condition as condition
    from congenial.conditioning.mixtures import mixture as mixture
    from congenial.domain.table import Table as Table
    from congenial.domain.tree import Tree as Tree
    from congenial.domain.workload import Workload as Workload
    from congenial.errors import CongenialError as CongenialError
    from congenial.imaging.closest import project as project
    from congenial.imaging.top_down import topdown as topdown
    from congenial.imaging.update import image as image
    from congenial.inference.best_table import best_table as best_table
    from congenial.inference.posteriors import posterior as posterior
    from congenial.invariants.written import at_least as at_least
    from congenial.invariants.written import at_least_as_many as at_least_as_many
    from congenial.invariants.written import bounds as bounds
    from congenial.invariants.written import consistent as consistent
    from congenial.invariants.written import exactly as exactly
    from congenial.invariants.written import linear as linear
    from congenial.invariants.written import nonnegative as nonnegative
    from congenial.noise.additive import Additive as Additive
    from congenial.noise.discrete_gaussian import DiscreteGaussian as DiscreteGaussian
    from congenial.noise.discrete_laplace import DiscreteLaplace as DiscreteLaplace
    from congenial.noise.gaussian import Gaussian as Gaussian
    from congenial.noise.laplace import Laplace as Laplace
    from congenial.plan.plan import parse_plan as parse_plan
    from congenial.plan.plan import read_plan as read_plan
    from congenial.preview.comparison.comparing import compare as compare
    from congenial.preview.explanation import explain as explain
    from congenial.preview.plan_audit import audit_plan as audit_plan
    from congenial.randomness import secure as secure
    from congenial.randomness import seeded as seeded
    from congenial.releases.making.make_release import release as release
    from congenial.releases.reading import Release as Release
    from congenial.releases.reading import read_release as read_release
    from congenial.verification.verdict import verify as verify

__version__ = "0.1.0"

_NAMESPACES = ("accounting", "belief", "conditioning", "errors", "imaging", "inference")
_HOME = {
    "accounting.calibration.scales": "calibrate",
    "accounting.guarantee": "Guarantee",
    "auditing.trial": "audit",
    "conditioning.choice": "condition",
    "conditioning.mixtures": "mixture",
    "domain.table": "Table",
    "domain.tree": "Tree",
    "domain.workload": "Workload",
    "errors": "CongenialError",
    "imaging.closest": "project",
    "imaging.top_down": "topdown",
    "imaging.update": "image",
    "inference.best_table": "best_table",
    "inference.posteriors": "posterior",
    "invariants.written": "at_least at_least_as_many bounds consistent exactly linear nonnegative",
    "noise.additive": "Additive",
    "noise.discrete_gaussian": "DiscreteGaussian",
    "noise.discrete_laplace": "DiscreteLaplace",
    "noise.gaussian": "Gaussian",
    "noise.laplace": "Laplace",
    "plan.plan": "parse_plan read_plan",
    "preview.comparison.comparing": "compare",
    "preview.explanation": "explain",
    "preview.plan_audit": "audit_plan",
    "randomness": "secure seeded",
    "releases.making.make_release": "release",
    "releases.reading": "Release read_release",
    "verification.verdict": "verify",
}

# Moved names, by the namespace that offers them now; they go with version 0.2.
_MOVED = {
    name: namespace
    for namespace, names in {
        "accounting": "Sensitivity compose compose_parallel discrete_gaussian_delta gaussian_delta "
        "gaussian_epsilon gaussian_sigma group_privacy sensitivity",
        "conditioning": "Proposal",
        "imaging": "round_unbiased topdown_image",
        "inference": "Prior error_margin_of_sum error_margins inverted_intervals log_likelihood "
        "log_likelihood_gradient read_measurements simultaneous_error_margins",
    }.items()
    for name in names.split()
}

# Names that another call replaces; they go with version 0.2.
_FOLDED = {
    "bounds_margins": "bounds(lo, hi, margin=...)",
    "exactly_margins": "exactly(margins=...)",
}

__all__, _load, _ = offer(__name__, _HOME)


def __getattr__(name: str) -> object:
    if name in _NAMESPACES:
        return import_module(f"congenial.{name}")
    if name in _MOVED:
        _warn(name, f"{_MOVED[name]}.{name}")
        return getattr(import_module(f"congenial.{_MOVED[name]}"), name)
    if name in _FOLDED:
        _warn(name, _FOLDED[name])
        return getattr(import_module("congenial.invariants.written"), name)
    return _load(name)


def _warn(old: str, new: str) -> None:
    """Warn that a name has moved; the warning points at the line that used it."""
    warnings.warn(
        f"congenial.{old} is now congenial.{new}; the old name goes with version 0.2.",
        DeprecationWarning,
        stacklevel=3,
    )


def __dir__() -> list[str]:
    return [*__all__, *_NAMESPACES, "__version__"]
