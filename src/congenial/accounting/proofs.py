"""The proofs that a guarantee rests on, as files of the repository."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from congenial.accounting.guarantee import POST_PROCESSED, TWO_BINS, Guarantee
from congenial.accounting.loss.inequalities import NONE, PROVED, TRIVIAL, WHOLE

# Proofs of draws that follow their law up to an error, and exactly: conditioned, or noise alone.
_APPROXIMATE, _CONDITIONED, _ALONE = (
    f"proofs/{name}.md" for name in ("samplers", "forest-draws", "exact-draws")
)
# Proof for each source of gamma, besides those for the noise and the sampler.
PROOFS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        NONE: ("proofs/equalities.md",),
        PROVED: ("proofs/equalities.md", "proofs/inequalities.md"),
        WHOLE: ("proofs/equalities.md", "proofs/gaussian-bounds.md"),
        TRIVIAL: ("proofs/inequalities.md", "proofs/disjoint-unions.md"),
        POST_PROCESSED: ("proofs/imaging.md",),
        TWO_BINS: ("proofs/imaging.md", "proofs/l1-two-bins.md"),
    }
)


def proofs_of(guarantee: Guarantee) -> tuple[str, ...]:
    """Name the proofs that a guarantee rests on, as paths in the repository."""
    sources = guarantee.gamma_source.split("; ")
    exact = guarantee.sampler_error == 0.0 and not guarantee.ideal_only
    alone = POST_PROCESSED in sources or TWO_BINS in sources
    drawn = (_ALONE if alone else _CONDITIONED) if exact else _APPROXIMATE
    found = ["proofs/noise.md", drawn, *(file for source in sources for file in PROOFS[source])]
    group = guarantee.records > 1 and not guarantee.at_once
    if len(sources) > 1 or group or guarantee.rho is not None:
        found.append("proofs/composition.md")
    return tuple(dict.fromkeys(found))
