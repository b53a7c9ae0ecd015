"""Sums of trees of bounded leaves under wide noise: one table for each family, and draws from them.

`conditioning.laws.draw_routes` chooses between these tables and those of all merges; `sample` draws
from these.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from congenial.namespaces import offer

if TYPE_CHECKING:
    from congenial.sum_network.families.family_draws import sample as sample
    from congenial.sum_network.families.family_messages import PartOfFamilies as PartOfFamilies
    from congenial.sum_network.families.family_messages import fill_sending as fill_sending
    from congenial.sum_network.families.family_records import FamilySums as FamilySums
    from congenial.sum_network.families.family_sums import fill_families as fill_families
    from congenial.sum_network.families.family_sums import matched_tilts as matched_tilts
    from congenial.sum_network.families.family_sums import settled as settled
    from congenial.sum_network.families.family_tilts import Settled as Settled
    from congenial.sum_network.families.some_draws import draws_of_some as draws_of_some
    from congenial.sum_network.families.wide_noise import are_worthwhile as are_worthwhile
    from congenial.sum_network.families.wide_noise import have_wide_noise as have_wide_noise

_HOME = {
    "sum_network.families.family_draws": "sample",
    "sum_network.families.family_messages": "PartOfFamilies fill_sending",
    "sum_network.families.family_records": "FamilySums",
    "sum_network.families.family_sums": "fill_families matched_tilts settled",
    "sum_network.families.family_tilts": "Settled",
    "sum_network.families.some_draws": "draws_of_some",
    "sum_network.families.wide_noise": "are_worthwhile have_wide_noise",
}

__all__, __getattr__, __dir__ = offer(__name__, _HOME)
