"""Checks of a release by the posterior: its fitted prior, and that no table has a smaller error."""

from __future__ import annotations

import numpy as np

from congenial import __version__
from congenial.inference.best_table import GAP
from congenial.inference.splits.empirical_bayes import LevelSplits
from congenial.releases.certificate import Certificate
from congenial.verification.checks import Check, judged
from congenial.verification.pieces import FOLLOWS
from congenial.wording import show

# Name of the check of a prior.
PRIOR = "prior"
# Largest relative difference between a stated prior and the fitted one. Rounding on another machine
# changes a fit by less than 1e-7.
_SAME = 1e-3


def judged_prior(certificate: Certificate, stated: LevelSplits, found: LevelSplits) -> Check:
    """Compare the prior that a certificate states with the one fitted to the measurements."""
    same = all(
        np.allclose(own[1:], theirs[1:], rtol=_SAME, atol=0.0)
        for own, theirs in ((found.alpha, stated.alpha), (found.spread, stated.spread))
    )
    other = "the measurements give another prior"
    if certificate.author != __version__:
        made = show(certificate.author)
        other += f", unless congenial {made}, which made it, fits it differently"
    return judged(PRIOR, same, "the prior is the one fitted to the measurements", other)


def unfitted_prior(certificate: Certificate) -> Check:
    """Say what can be checked of a prior if the measurements are not published."""
    if certificate.prior is None:
        text = "none, so the closest table is released; without measurements, nobody can check why"
    else:
        text = "every level has a positive alpha; without measurements, no fit can be checked"
    return Check(PRIOR, True, text)


def judged_absence(*, refused: bool) -> Check:
    """Check that a posterior could not be computed, where the closest table is released instead."""
    return judged(
        PRIOR,
        refused,
        "none: the posterior of these measurements cannot be computed",
        "the certificate states none, but the posterior can be computed, so the table of least "
        "expected error was due, unless the computer that made the release had too little memory "
        "or another version of congenial",
    )


def judged_least(*, follow: bool) -> Check:
    """Say whether no table has a smaller expected error than the released one."""
    good = (
        f"no table has a smaller expected error (tolerance for an error e: {GAP:.0e} times (1 + e))"
    )
    false = "the method makes another table with a smaller expected error"
    return judged(FOLLOWS, follow, good, false)
