"""The theorems of the two papers as claims that are decided on random finite laws, exactly."""

from papers.claims import (
    congenial_dp,
    noise,
    postprocessing,
    prior_posterior,
    revision,
    rules,
    update,
)
from papers.claims.claim import (
    Claim,
    Source,
    Verdict,
    decide,
)

CLAIMS: tuple[Claim, ...] = (
    *rules.CLAIMS,
    *postprocessing.CLAIMS,
    *revision.CLAIMS,
    *noise.CLAIMS,
    *update.CLAIMS,
    *congenial_dp.CLAIMS,
    *prior_posterior.CLAIMS,
)

__all__ = ["CLAIMS", "Claim", "Source", "Verdict", "decide"]
