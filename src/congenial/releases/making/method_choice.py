"""The modules of the methods by which a release in parts is drawn."""

from __future__ import annotations

from congenial.plan.plan import Plan
from congenial.releases.making.part_method import PartMethod


def method_of(plan: Plan) -> PartMethod:
    """Return the method of a plan that is released in parts; only that one is loaded."""
    if plan.method.name == "conditioning":
        from congenial.releases.making import conditioned_parts

        return conditioned_parts
    if plan.method.name == "imaging":
        from congenial.releases.making import imaged_parts

        return imaged_parts
    from congenial.releases.making import topdown_parts

    return topdown_parts
