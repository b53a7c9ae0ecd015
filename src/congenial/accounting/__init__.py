"""The privacy cost of a release: guarantees, composition, sensitivity, the worst pair.

Offered: sensitivities, composition, group privacy, Gaussian and zero-concentrated privacy.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from congenial.accounting.composition import compose, compose_parallel, group_privacy
    from congenial.accounting.loss.discrete_gaussian_loss import discrete_gaussian_delta
    from congenial.accounting.loss.gaussian_loss import (
        gaussian_delta,
        gaussian_epsilon,
        gaussian_sigma,
    )
    from congenial.accounting.loss.zero_concentrated import (
        pure_rho,
        zcdp_delta,
        zcdp_epsilon,
        zcdp_rho,
    )
    from congenial.accounting.sensitivities import Sensitivity, sensitivity

_HOME = {
    "Sensitivity": "accounting.sensitivities",
    "compose": "accounting.composition",
    "compose_parallel": "accounting.composition",
    "discrete_gaussian_delta": "accounting.loss.discrete_gaussian_loss",
    "gaussian_delta": "accounting.loss.gaussian_loss",
    "gaussian_epsilon": "accounting.loss.gaussian_loss",
    "gaussian_sigma": "accounting.loss.gaussian_loss",
    "group_privacy": "accounting.composition",
    "pure_rho": "accounting.loss.zero_concentrated",
    "sensitivity": "accounting.sensitivities",
    "zcdp_delta": "accounting.loss.zero_concentrated",
    "zcdp_epsilon": "accounting.loss.zero_concentrated",
    "zcdp_rho": "accounting.loss.zero_concentrated",
}

__all__ = [
    "Sensitivity",
    "compose",
    "compose_parallel",
    "discrete_gaussian_delta",
    "gaussian_delta",
    "gaussian_epsilon",
    "gaussian_sigma",
    "group_privacy",
    "pure_rho",
    "sensitivity",
    "zcdp_delta",
    "zcdp_epsilon",
    "zcdp_rho",
]


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"congenial.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return list(__all__)
