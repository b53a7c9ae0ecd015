"""Draws from a forest of sums that have exactly the stated law, from envelopes of its messages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from congenial.namespaces import offer

if TYPE_CHECKING:
    from congenial.sum_network.exact.envelopes import Envelopes as Envelopes
    from congenial.sum_network.exact.envelopes import fill_envelopes as fill_envelopes
    from congenial.sum_network.exact.exact_draws import attempt as attempt
    from congenial.sum_network.exact.exact_draws import sample as sample
    from congenial.sum_network.exact.masses import mass as mass
    from congenial.sum_network.exact.masses import without_noise as without_noise

_HOME = {
    "sum_network.exact.envelopes": "Envelopes fill_envelopes",
    "sum_network.exact.exact_draws": "attempt sample",
    "sum_network.exact.masses": "mass without_noise",
}

__all__, __getattr__, __dir__ = offer(__name__, _HOME)
