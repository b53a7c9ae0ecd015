"""Sums with cycles, of which a few variables are left out and follow from the others."""

from __future__ import annotations

from typing import TYPE_CHECKING

from congenial.namespaces import offer

if TYPE_CHECKING:
    from congenial.sum_network.closing.closers import Closing as Closing
    from congenial.sum_network.closing.closers import find_closings as find_closings
    from congenial.sum_network.closing.closers import forest_of as forest_of
    from congenial.sum_network.closing.closing_draws import ClosingDraws as ClosingDraws
    from congenial.sum_network.closing.closing_draws import attempt as attempt
    from congenial.sum_network.closing.closing_draws import mass as mass
    from congenial.sum_network.closing.closing_draws import prepare as prepare
    from congenial.sum_network.closing.closing_draws import sample as sample
    from congenial.sum_network.closing.closing_draws import share_accepted as share_accepted

_HOME = {
    "sum_network.closing.closers": "Closing find_closings forest_of",
    "sum_network.closing.closing_draws": (
        "ClosingDraws attempt mass prepare sample share_accepted"
    ),
}

__all__, __getattr__, __dir__ = offer(__name__, _HOME)
