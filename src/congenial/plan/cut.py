"""The level at which a release is cut into parts, and the plans that have one."""

from __future__ import annotations

from dataclasses import dataclass

from congenial.domain.tree import Tree
from congenial.plan.fields import refuse
from congenial.plan.plan import Plan
from congenial.plan.sections import Hierarchy, Privacy
from congenial.wording import nearest, one_of

# Name of the argument in messages.
PARTS = "parts"
# Keys of invariants that name levels or nodes.
_KEYS = ("publish_exactly", "at_least", "at_most")
# Samplers that draw the counts of one part after another.
_SAMPLERS = ("auto", "exact")
# Most parts: each takes some hundredths of a second beside its counts.
_MOST = 10_000


@dataclass(frozen=True)
class Cut:
    """A plan, and the level below each of whose nodes one part is drawn."""

    plan: Plan
    depth: int  # Of the level; the root has 0.

    @property
    def level(self) -> str:
        """Name of the level."""
        return self.plan.place_names[self.depth]

    def top_plan(self, depth: int) -> Plan:
        """Return a plan that counts the levels down to a depth, for counting only."""
        plan, given = self.plan, self.plan.hierarchy
        levels = Hierarchy(given.root, given.levels[:depth], given.domain, given.names_repeat)
        return Plan(plan.data, levels, Privacy(plan.privacy.neighbours, plan.privacy.epsilon))


def cut_at(plan: Plan, level: str) -> Cut:
    """Return a plan cut at a level; refuse what a release in parts does not cover.

    Raises PlanError.
    """
    inner = plan.hierarchy.levels[:-1]
    if plan.counted_tables:
        refuse(PARTS, f"is {level!r} for a plan of tables", "leave parts out")
    if level not in inner:
        if not inner:
            refuse(PARTS, "is given for a plan of one level", "leave parts out")
        among = "a level between the root and the deepest one"
        refuse(PARTS, f"is {level!r}", f"give {one_of(inner)}, {among}{nearest(level, inner)}")
    cut = Cut(plan, plan.place_names.index(level))
    _check_method(plan)
    if not plan.invariants.nonnegative:
        refuse(
            "invariants.nonnegative",
            "is false, and the error margins then need simulated releases of all counts at once",
            "give true, or leave parts out",
        )
    if level in plan.unmeasured_levels:
        refuse(
            f"privacy.split.{level}",
            f"is 0, and a release in parts needs measurements of {level!r}",
            f"give {level!r} a share, or cut at another level",
        )
    for key, given in (("sums", plan.accuracy.sums), ("simultaneous", plan.accuracy.simultaneous)):
        if given:
            refuse(
                f"accuracy.{key}", "is given for a release in parts", f"leave {key} or parts out"
            )
    deeper = set(plan.place_names[cut.depth + 1 :])
    for key in _KEYS:
        for name in deeper.intersection(getattr(plan.invariants, key)):
            refuse(
                f"invariants.{key}",
                f"holds {name!r}, a level below {level!r}",
                f"name counts of {level!r} or above, or leave parts out",
            )
    return cut


def _check_method(plan: Plan) -> None:
    """Refuse a norm or a sampler for which all counts are needed at once."""
    if plan.method.norm != "l2":
        refuse(
            "method.norm",
            f"is {plan.method.norm!r}, which moves all counts at once",
            "leave method.norm or parts out",
        )
    if plan.method.sampler not in _SAMPLERS:
        refuse(
            "method.sampler",
            f"is {plan.method.sampler!r}, which draws all counts at once",
            "leave method.sampler or parts out",
        )


def check_number(cut: Cut, top: Tree) -> None:
    """Refuse too many parts."""
    parts = int((top.level == cut.depth).sum())
    if parts > _MOST:
        text = f"is {cut.level!r}, which makes {parts:,} parts, and the limit is {_MOST:,}"
        refuse(PARTS, text, "cut at a coarser level")


def check_single(cut: Cut, top: Tree) -> None:
    """Refuse invariants of single nodes that are not named by their paths.

    A shorter name may belong to a node below the cut, too, which is not known yet. A path with as
    many slashes as the cut has levels may be the path of such a node.
    """
    entries = [(key, name) for key in _KEYS for name in getattr(cut.plan.invariants, key)]
    single = [entry for entry in entries if entry[1] not in cut.plan.place_names]
    paths = {"/".join(top.path(v)[1:]) for v in range(1, len(top))} if single else set()
    for key, name in single:
        if name not in paths or name.count("/") >= cut.depth:
            refuse(
                f"invariants.{key}",
                f"names {name!r}, which is no path from below the root down to {cut.level!r}",
                "give such a path, or leave parts out",
            )
