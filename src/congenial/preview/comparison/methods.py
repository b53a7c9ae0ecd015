"""The ways to make a release of one plan, each calibrated to the plan's final budget."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import msgspec
import numpy as np
import numpy.typing as npt

from congenial.accounting.guarantee import Guarantee, Neighbours
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

# Name in tables, method and norm; "noise" satisfies no invariant and is only a reference.
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
    # not every method has measurements to publish, and none is written here
    return msgspec.structs.replace(
        plan,
        privacy=privacy,
        method=fit({"name": method, "sampler": sampler, "norm": contender.norm}, Method),
        release=Publication(),
    )


def build(
    plan: Plan, tree: Tree | Workload, contender: Contender, *, delta: float | None = None
) -> tuple[Model, Guarantee, Mechanism]:
    """Build the mechanism of a contender, calibrated to the plan's budget."""
    model = build_model(variant(plan, contender, delta=delta), tree)
    mechanism = choose_method(model)
    guarantee = claim(model, mechanism.error_bound)
    drawing = Unconstrained(model, mechanism) if contender.method == "noise" else mechanism
    return model, guarantee, drawing


@dataclass(frozen=True, eq=False)
class Unconstrained:
    """Noisy counts as they are, which need not add up and may be negative."""

    model: Model
    image: Mechanism  # An image of the same noise, which costs the same.

    def sample(
        self, x: npt.ArrayLike, size: int | None = None, rng: Randomness | None = None
    ) -> IntArray:
        """Draw noisy counts, shape (n,) or (size, n); unmeasured ones are sums of those below."""
        mechanism, sums = self.model.mechanism, self.model.domain.sums
        counts = np.asarray(mechanism.counts(x), dtype=np.int64)
        drawn = mechanism.sample(counts, checked_size(size), resolve(rng)).astype(np.int64)
        pinned = self.model.resolved.pinned
        drawn[:, pinned] = counts[pinned]
        for node in self._unmeasured:
            at = int(np.searchsorted(sums.totals, node))
            parts = sums.parts[sums.starts[at] : sums.starts[at + 1]]
            drawn[:, node] = drawn[:, parts].sum(axis=1)
        return drawn[0] if size is None else drawn

    @property
    def _unmeasured(self) -> list[int]:
        """Nodes without noise that are not published exactly, the deepest first."""
        open_ = ~np.isfinite(self.model.mechanism.scales) & ~self.model.resolved.pinned
        nodes = np.flatnonzero(open_)
        deepest = np.argsort(-self.model.domain.level[nodes], kind="stable")
        return [int(v) for v in nodes[deepest]]

    def guarantee(self, neighbours: Neighbours) -> Guarantee:
        """Privacy guarantee of one draw, that of an image of it."""
        return self.image.guarantee(neighbours)

    def explain(self) -> str:
        """Say how a release is drawn."""
        return "noise alone: neither adds up nor keeps bounds; for comparison only."
