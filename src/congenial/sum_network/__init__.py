"""Sums without a cycle as integer tables: draws, marginal laws and summaries, with bounded errors.

Five calls: `compile` a forest of sums and its weights, `fill` the tables, then `sample` draws, ask
for the `marginal` of one variable, or for the `summaries` of all. They are functions of frozen
records. The other names offered make these records, or give answers without tables. Sums with a few
cycles are in `cutset`, which lists its own names.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from congenial.namespaces import offer

if TYPE_CHECKING:
    from congenial.sum_network.ceiling import forest_rows as forest_rows
    from congenial.sum_network.ceiling import least_ceiling as least_ceiling
    from congenial.sum_network.ceiling import log_ceiling as log_ceiling
    from congenial.sum_network.ceiling import sum_rows as sum_rows
    from congenial.sum_network.cost import bytes_text as bytes_text
    from congenial.sum_network.cost import forest_cost as forest_cost
    from congenial.sum_network.cost import time_text as time_text
    from congenial.sum_network.cost import work_at as work_at
    from congenial.sum_network.count_tables import PriorWeights as PriorWeights
    from congenial.sum_network.count_tables import check_zeros as check_zeros
    from congenial.sum_network.count_tables import share_priors as share_priors
    from congenial.sum_network.draws import draws_of_some as draws_of_some
    from congenial.sum_network.draws import sample as sample
    from congenial.sum_network.extremes import LEAST_TAIL as LEAST_TAIL
    from congenial.sum_network.extremes import extreme_tails as extreme_tails
    from congenial.sum_network.filling import Compiled as Compiled
    from congenial.sum_network.filling import compile as compile  # noqa: A004 -- reached as an attribute
    from congenial.sum_network.filling import fill as fill
    from congenial.sum_network.forest import SumForest as SumForest
    from congenial.sum_network.forest import of_tree as of_tree
    from congenial.sum_network.fourier import convolve_directly as convolve_directly
    from congenial.sum_network.freed import Freed as Freed
    from congenial.sum_network.marginals import Summaries as Summaries
    from congenial.sum_network.marginals import interval_and_reach as interval_and_reach
    from congenial.sum_network.marginals import marginal as marginal
    from congenial.sum_network.marginals import reaches as reaches
    from congenial.sum_network.marginals import summaries as summaries
    from congenial.sum_network.tables import ERROR_LIMIT as ERROR_LIMIT
    from congenial.sum_network.tables import Tables as Tables
    from congenial.sum_network.tables import error_limit as error_limit
    from congenial.sum_network.weights import SharedUnary as SharedUnary
    from congenial.sum_network.weights import Unary as Unary
    from congenial.sum_network.weights import alike as alike
    from congenial.sum_network.weights import share_noise as share_noise
    from congenial.sum_network.weights import share_unary as share_unary
    from congenial.sum_network.weights import side_by_side as side_by_side
    from congenial.sum_network.windows import IMPROPER as IMPROPER
    from congenial.sum_network.windows import check_proper as check_proper
    from congenial.sum_network.windows import is_proper as is_proper

_HOME = {
    "sum_network.ceiling": "forest_rows least_ceiling log_ceiling sum_rows",
    "sum_network.cost": "bytes_text forest_cost time_text work_at",
    "sum_network.count_tables": "PriorWeights check_zeros share_priors",
    "sum_network.draws": "draws_of_some sample",
    "sum_network.extremes": "LEAST_TAIL extreme_tails",
    "sum_network.filling": "Compiled compile fill",
    "sum_network.forest": "SumForest of_tree",
    "sum_network.fourier": "convolve_directly",
    "sum_network.freed": "Freed",
    "sum_network.marginals": "Summaries interval_and_reach marginal reaches summaries",
    "sum_network.tables": "ERROR_LIMIT Tables error_limit",
    "sum_network.weights": "SharedUnary Unary alike share_noise share_unary side_by_side",
    "sum_network.windows": "IMPROPER check_proper is_proper",
}

__all__, __getattr__, __dir__ = offer(__name__, _HOME)
