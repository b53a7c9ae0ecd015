"""The privacy cost of a release: guarantees, composition, sensitivity, the worst pair.

Offered: sensitivities, composition, group privacy, Gaussian and zero-concentrated privacy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from congenial.namespaces import offer

if TYPE_CHECKING:
    from congenial.accounting.composition import compose as compose
    from congenial.accounting.composition import compose_parallel as compose_parallel
    from congenial.accounting.composition import group_privacy as group_privacy
    from congenial.accounting.loss.discrete_gaussian_loss import (
        discrete_gaussian_delta as discrete_gaussian_delta,
    )
    from congenial.accounting.loss.gaussian_loss import gaussian_delta as gaussian_delta
    from congenial.accounting.loss.gaussian_loss import gaussian_epsilon as gaussian_epsilon
    from congenial.accounting.loss.gaussian_loss import gaussian_sigma as gaussian_sigma
    from congenial.accounting.loss.zero_concentrated import pure_rho as pure_rho
    from congenial.accounting.loss.zero_concentrated import zcdp_delta as zcdp_delta
    from congenial.accounting.loss.zero_concentrated import zcdp_epsilon as zcdp_epsilon
    from congenial.accounting.loss.zero_concentrated import zcdp_rho as zcdp_rho
    from congenial.accounting.sensitivities import Sensitivity as Sensitivity
    from congenial.accounting.sensitivities import sensitivity as sensitivity

_HOME = {
    "accounting.composition": "compose compose_parallel group_privacy",
    "accounting.loss.discrete_gaussian_loss": "discrete_gaussian_delta",
    "accounting.loss.gaussian_loss": "gaussian_delta gaussian_epsilon gaussian_sigma",
    "accounting.loss.zero_concentrated": "pure_rho zcdp_delta zcdp_epsilon zcdp_rho",
    "accounting.sensitivities": "Sensitivity sensitivity",
}

__all__, __getattr__, __dir__ = offer(__name__, _HOME)
