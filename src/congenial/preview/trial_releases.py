"""Simulated releases of a plan, beside those of the default method."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from congenial.accounting.mechanism import Mechanism
from congenial.errors import PrivacyError, UnsupportedError
from congenial.plan.sections import Method, best_method
from congenial.preview.comparison.expected import (
    FITTED_WORK,
    Forecast,
    NotSimulated,
    forecast,
    work_of_fit,
)
from congenial.preview.comparison.methods import build
from congenial.preview.comparison.outcome import Contender
from congenial.preview.comparison.trial_counts import Basis
from congenial.releases.model import Model

# Largest sum of the noise scales of all nodes, in counts, at which conditioning on bounds is
# simulated unasked: below it, a simulation took a second; above it, minutes for skewed counts.
MOST_NOISE = 400_000.0
# Most counts of a best table that is simulated unasked: such a table takes half a minute.
_MOST_FITTED = 50_000
# Seeds: the first gives the made-up counts of `compare`; the noise has random words of its own.
COUNTS_SEED, _SEED = 1, 20_220_201


@dataclass(frozen=True)
class Simulated:
    """Simulated releases of a plan, and of the default method where the plan has another."""

    own: Forecast | None  # None if nothing could be simulated.
    beside: Forecast | None  # Also None if the plan uses the default method.
    default: str  # The default method; empty if `beside` is None.
    text: str  # The basis of the errors, in a sentence.
    # Why releases of these counts cannot be drawn; empty if they can, or were not tried.
    refused: str


def simulated(model: Model, mechanism: Mechanism, basis: Basis, *, asked: bool) -> Simulated:
    """Simulate releases of counts; if `asked`, also releases that may take minutes."""
    best = best_method(bounded=model.plan.invariants.bounded, crossing=model.plan.crossing)
    beside = _beside(model, best, basis)
    default = "" if beside is None else best.name
    text = refused = ""
    if not asked and _is_slow(model):
        text = (
            f"Errors of {model.plan.method.name} are not known: simulating {len(model.domain):,} "
            "counts under bounds may take minutes; give `total` or `counts` to do it."
        )
    else:
        own = forecast(model, mechanism, basis.counts, seed=_SEED)
        if not isinstance(own, NotSimulated):
            return Simulated(own, beside, default, _basis(model, basis, "Errors", own.draws), "")
        refused = f"{int(basis.counts[model.domain.leaves].sum()):,} records: {own.why}"
    if beside is not None:
        rest = _basis(model, basis, f"Errors of {default}", beside.draws)
        text = f"{text} {rest}".strip()
    return Simulated(None, beside, default, text, refused)


def _is_slow(model: Model) -> bool:
    """Whether a simulation may take minutes, depending on the counts."""
    if model.plan.method.name == "posterior":
        return len(model.domain) > _MOST_FITTED or work_of_fit(model) > FITTED_WORK
    if model.plan.method.name != "conditioning" or not model.resolved.has_inequalities:
        return False
    scales = model.mechanism.scales
    return float(scales[np.isfinite(scales)].sum()) > MOST_NOISE


def _beside(model: Model, best: Method, basis: Basis) -> Forecast | None:
    """Simulate releases by the default method, unless the plan uses it or it does not fit."""
    own = model.plan.method
    if (best.name, best.norm) == (own.name, own.norm):
        return None
    contender = Contender(best.name, best.name, model.plan.privacy.noise, best.norm)
    try:
        other, _, mechanism = build(model.plan, model.domain, contender)
    except (PrivacyError, UnsupportedError):
        return None
    if _is_slow(other):
        return None
    found = forecast(other, mechanism, basis.counts, seed=_SEED)
    return None if isinstance(found, NotSimulated) else found


def _basis(model: Model, basis: Basis, errors: str, draws: int) -> str:
    text = f"{errors} are means over {draws} simulated release{'s' * (draws != 1)} of {basis.text}"
    if model.plan.method.name == "conditioning" and not model.resolved.has_inequalities:
        return f"{text}. Without bounds, errors are the same for all counts."
    return f"{text}. Errors depend on the counts. For counts like yours, give `total` or `counts`."
