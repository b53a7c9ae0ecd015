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

# Sum of the noise scales of all nodes, in counts, up to which conditioning on bounds is simulated
# unasked: it took a second below, and minutes for skewed counts above.
MOST_NOISE = 400_000.0
# Number of counts up to which a best table is simulated unasked: one takes half a minute there.
_MOST_FITTED = 50_000
# The counts are those that `compare` makes up; the noise has other random words.
COUNTS_SEED, _SEED = 1, 20_220_201


@dataclass(frozen=True)
class Simulated:
    """Simulated releases of a plan, and of the default method where the plan has another."""

    # `own` and `beside`: None where nothing could be simulated, or where the plan has the default
    # method.
    own: Forecast | None
    beside: Forecast | None
    default: str  # The default method; empty where there is none beside.
    text: str  # The basis of the errors, in a sentence.
    # Why releases of these counts cannot be drawn; empty where they can, or were not tried.
    refused: str


def simulated(model: Model, mechanism: Mechanism, basis: Basis, *, asked: bool) -> Simulated:
    """Simulate releases of counts; slow ones only where these counts were asked for."""
    best = best_method(bounded=model.plan.invariants.bounded, crossing=model.plan.crossing)
    beside = _beside(model, best, basis)
    default = "" if beside is None else best.name
    unknown = ""
    own: Forecast | NotSimulated = NotSimulated("")
    if not asked and _is_slow(model):
        unknown = (
            f"Errors of {model.plan.method.name} are not known: simulating {len(model.domain):,} "
            "counts under bounds may take minutes; give `total` or `counts` to do it."
        )
    else:
        own = forecast(model, mechanism, basis.counts, seed=_SEED)
    if not isinstance(own, NotSimulated):
        return Simulated(own, beside, default, _basis(model, basis, "Errors", own.draws), "")
    refused = f"{_records(model, basis)}: {own.why}" if own.why else ""
    rest = ""
    if beside is not None:
        rest = _basis(model, basis, f"Errors of {default}", beside.draws)
    return Simulated(None, beside, default, f"{unknown} {rest}".strip(), refused)


def _records(model: Model, basis: Basis) -> str:
    return f"{int(basis.counts[model.domain.leaves].sum()):,} records"


def _is_slow(model: Model) -> bool:
    """Whether a simulation may take minutes, which depends on the counts and is not foreseen."""
    if model.plan.method.name == "posterior":
        return len(model.domain) > _MOST_FITTED or work_of_fit(model) > FITTED_WORK
    if model.plan.method.name != "conditioning" or not model.resolved.has_inequalities:
        return False
    scales = model.mechanism.scales
    return float(scales[np.isfinite(scales)].sum()) > MOST_NOISE


def _beside(model: Model, best: Method, basis: Basis) -> Forecast | None:
    """Simulate releases by the default method, unless the plan has it or it does not fit."""
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
        return f"{text}; under equalities alone they are the same for all counts."
    return f"{text}. Other counts have other errors: give `total` or `counts` for yours."
