"""The theorems of the two papers as claims that are decided on random finite laws, exactly."""

from congenial.belief.checks import congenial_dp, noise, prior_posterior, revision, rules, update
from congenial.belief.checks.claim import Claim, Verdict, decide

CLAIMS: tuple[Claim, ...] = (
    *rules.CLAIMS,
    *revision.CLAIMS,
    *noise.CLAIMS,
    *update.CLAIMS,
    *congenial_dp.CLAIMS,
    *prior_posterior.CLAIMS,
)

__all__ = ["CLAIMS", "Claim", "Verdict", "decide"]
