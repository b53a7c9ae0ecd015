"""The ways to make a release of one plan, each calibrated to the plan's final budget."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import msgspec
import numpy as np
import numpy.typing as npt

from congenial.accounting.guarantee import Guarantee
from congenial.accounting.mechanism import Mechanism
from congenial.domain.tree import Tree
from congenial.domain.workload import Workload
from congenial.noise.additive import checked_size
from congenial.noise.law import find_law
from congenial.plan.fields import fit
from congenial.plan.plan import Plan
from congenial.plan.sections import GAUSSIAN, LAPLACE, Method, Publication
from congenial.preview.comparison.outcome import Contender
from congenial.randomness import Randomness, resolve
from congenial.releases.model import Model, build_model, choose_method, claim
from congenial.types import IntArray

# Name in tables, method and norm. Noise alone satisfies no invariant; it is a reference.
WAYS = (
    ("exact conditioning", "conditioning", "l2"),
    ("imaging L2", "imaging", "l2"),
    ("imaging L1", "imaging", "l1"),
    ("topdown", "topdown", "l2"),
    ("posterior", "posterior", "l2"),
    ("noise alone", "noise", "l2"),
)


def contenders(plan: Plan, *, delta: float | None = None) -> Iterator[Contender]:
    """Yield every method with every noise that the plan's guarantee allows."""
    gaussian = plan.privacy.delta is not None or delta is not None
    laws = (LAPLACE, GAUSSIAN) if gaussian else (LAPLACE,)
    for noise in dict.fromkeys((*laws, plan.privacy.noise)):
        for name, method, norm in WAYS:
            if method == "posterior" and plan.crossing:
                continue  # a plan whose margins cross has none
            yield Contender(name, method, noise, norm)


def variant(plan: Plan, contender: Contender, *, delta: float | None = None) -> Plan:
    """Return the plan with a contender's method and noise, and without a ledger."""
    sampler = plan.method.sampler if contender.method == "conditioning" else "auto"
    method = "imaging" if contender.method == "noise" else contender.method
    asked = plan.privacy.delta if delta is None else delta
    privacy = msgspec.structs.replace(
        plan.privacy,
        noise=contender.noise,
        delta=asked if find_law(contender.noise).measure == "zcdp" else None,
        ledger=None,
    )
    # nothing is written, and not every method has measurements to publish
    return msgspec.structs.replace(
        plan,
        privacy=privacy,
        method=fit({"name": method, "sampler": sampler, "norm": contender.norm}, Method),
        release=Publication(),
    )


def build(
    plan: Plan, tree: Tree | Workload, contender: Contender, *, delta: float | None = None
) -> tuple[Model, Guarantee, Mechanism | Unconstrained]:
    """Build the mechanism of a contender, calibrated to the plan's budget."""
    model = build_model(variant(plan, contender, delta=delta), tree)
    mechanism = choose_method(model)
    guarantee = claim(model, mechanism.error_bound)
    return model, guarantee, Unconstrained(model) if contender.method == "noise" else mechanism


@dataclass(frozen=True, eq=False)
class Unconstrained:
    """Noisy counts as they are, which need not add up and may be negative."""

    model: Model

    def sample(
        self, x: npt.ArrayLike, size: int | None = None, rng: Randomness | None = None
    ) -> IntArray:
        """Draw noisy counts, shape (n,) or (size, n); unmeasured ones are sums of those below."""
        mechanism, sums = self.model.mechanism, self.model.domain.sums
        counts = np.asarray(mechanism.counts(x), dtype=np.int64)
        drawn = mechanism.sample(counts, checked_size(size), resolve(rng)).astype(np.int64)
        pinned = self.model.resolved.pinned
        drawn[:, pinned] = counts[pinned]
        unmeasured = np.flatnonzero(~np.isfinite(mechanism.scales) & ~pinned)
        # the deepest first, as the others are sums of these
        for node in unmeasured[np.argsort(-self.model.domain.level[unmeasured], kind="stable")]:
            at = int(np.searchsorted(sums.totals, node))
            parts = sums.parts[sums.starts[at] : sums.starts[at + 1]]
            drawn[:, node] = drawn[:, parts].sum(axis=1)
        return drawn[0] if size is None else drawn
