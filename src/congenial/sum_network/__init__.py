"""Sums without a cycle as integer tables: draws, marginal laws and summaries, with bounded errors.

Five calls: `compile` a forest of sums and its weights, `fill` the tables, then `sample` draws, ask
for the `marginal` of one variable, or for the `summaries` of all. They are functions of frozen
records. The rest that is offered makes these records, or answers without tables. Sums with a few
cycles are in `cutset`, which has a door of its own.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from congenial.sum_network.ceiling import dense_rows, forest_rows, least_ceiling, log_ceiling
    from congenial.sum_network.cost import bytes_text, forest_cost, time_text
    from congenial.sum_network.count_tables import PriorWeights, share_priors
    from congenial.sum_network.draws import sample
    from congenial.sum_network.extremes import LEAST_TAIL, extreme_tails
    from congenial.sum_network.filling import Compiled, compile, fill  # noqa: A004 -- reached as an attribute
    from congenial.sum_network.forest import SumForest, of_tree
    from congenial.sum_network.marginals import (
        Summaries,
        interval_and_reach,
        marginal,
        reaches,
        summaries,
    )
    from congenial.sum_network.tables import ERROR_LIMIT, Tables, error_limit
    from congenial.sum_network.weights import SharedUnary, Unary, share_noise
    from congenial.sum_network.windows import IMPROPER, check_proper, is_proper

_HOME = {
    "Compiled": "sum_network.filling",
    "ERROR_LIMIT": "sum_network.tables",
    "IMPROPER": "sum_network.windows",
    "LEAST_TAIL": "sum_network.extremes",
    "PriorWeights": "sum_network.count_tables",
    "SharedUnary": "sum_network.weights",
    "SumForest": "sum_network.forest",
    "Summaries": "sum_network.marginals",
    "Tables": "sum_network.tables",
    "Unary": "sum_network.weights",
    "bytes_text": "sum_network.cost",
    "check_proper": "sum_network.windows",
    "compile": "sum_network.filling",
    "dense_rows": "sum_network.ceiling",
    "error_limit": "sum_network.tables",
    "extreme_tails": "sum_network.extremes",
    "fill": "sum_network.filling",
    "forest_cost": "sum_network.cost",
    "forest_rows": "sum_network.ceiling",
    "interval_and_reach": "sum_network.marginals",
    "is_proper": "sum_network.windows",
    "least_ceiling": "sum_network.ceiling",
    "log_ceiling": "sum_network.ceiling",
    "marginal": "sum_network.marginals",
    "of_tree": "sum_network.forest",
    "reaches": "sum_network.marginals",
    "sample": "sum_network.draws",
    "share_noise": "sum_network.weights",
    "share_priors": "sum_network.count_tables",
    "summaries": "sum_network.marginals",
    "time_text": "sum_network.cost",
}

__all__ = [
    "ERROR_LIMIT",
    "IMPROPER",
    "LEAST_TAIL",
    "Compiled",
    "PriorWeights",
    "SharedUnary",
    "SumForest",
    "Summaries",
    "Tables",
    "Unary",
    "bytes_text",
    "check_proper",
    "compile",
    "dense_rows",
    "error_limit",
    "extreme_tails",
    "fill",
    "forest_cost",
    "forest_rows",
    "interval_and_reach",
    "is_proper",
    "least_ceiling",
    "log_ceiling",
    "marginal",
    "of_tree",
    "reaches",
    "sample",
    "share_noise",
    "share_priors",
    "summaries",
    "time_text",
]


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"congenial.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return list(__all__)
