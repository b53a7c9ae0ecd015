"""Choice between the two kinds of tables from which draws have exactly their law."""

from __future__ import annotations

from dataclasses import replace

from congenial.errors import NumericalError, UnsupportedError
from congenial.sum_network import Compiled
from congenial.sum_network.exact import Envelopes, fill_envelopes
from congenial.sum_network.families import FamilySums, are_worthwhile, fill_families


def fill_draws(compiled: Compiled) -> Envelopes | FamilySums:
    """Fill tables for draws, of the kind that is likely to take less time.

    For the errors raised see `fill_envelopes`. Where it raises UnsupportedError or NumericalError,
    tables of families are tried too.
    """
    forest, weights = compiled.forest, compiled.weights
    wide = are_worthwhile(forest, weights)
    found = fill_families(forest, weights) if wide else None
    if found is None:
        try:
            return fill_envelopes(compiled)
        except (NumericalError, UnsupportedError):
            found = None if wide else fill_families(forest, weights)
            if found is None:
                raise
    return replace(found, freed=compiled.freed)
