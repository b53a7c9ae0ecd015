"""Hash of the facts that all datasets which a release compares share; the ledger compares hashes.

Epsilons add up for neighbouring datasets that every release compares. If one release publishes
exactly all that the others do, its neighbours are such datasets (proofs/composition.md).
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import msgspec
import numpy as np

from congenial.domain.tree import Tree
from congenial.plan.plan import Plan
from congenial.releases.directory import sha256
from congenial.releases.model import Model
from congenial.types import BoolArray


def _exact(model: Model) -> tuple[Tree, BoolArray, list[tuple[str, ...]]]:
    """Places, those whose count of all records is exact, and the paths of other exact counts."""
    domain, pinned = model.domain, model.resolved.pinned.copy()
    if isinstance(domain, Tree):
        return domain, pinned, []
    tree, several = domain.tables[0].geography, len(domain.tables) > 1
    if tree is None:
        raise AssertionError("a plan's table has a geography")
    places = np.zeros(len(tree), dtype=np.bool_)
    for block in domain.blocks:
        if not block.margin and not several:
            places[block.table.nodes(block.level)] = pinned[block.entries]
            pinned[block.entries] = False
    return tree, places, sorted(domain.path(int(v)) for v in np.flatnonzero(pinned))


def _bounds(plan: Plan) -> list[object]:
    """Return bounds that all datasets satisfy which a plan compares; counts are at least 0 anyway.

    With conditioning, rows that break a bound are refused. Other methods take them.
    """
    of = plan.invariants
    if plan.method.name != "conditioning" or not (of.at_least or of.at_most or of.as_many):
        return []
    return [sorted(of.at_least.items()), sorted(of.at_most.items()), sorted(of.as_many)]


def hash_of_shared_facts(model: Model, base: Path) -> str:
    """Hash everything that is the same in all datasets which a release compares.

    A lookup is hashed by its content, because it decides which rows belong to a count.

    Returns "" if only the number of records is shared, and a row is one record. Equal hashes mean
    the same facts. Unequal hashes may mean the same facts too, if two hierarchies have the same
    places.
    """
    plan = model.plan
    tree, pinned, cells = _exact(model)
    if model.neighbours == "substitute" and plan.data.where is None:
        pinned[tree.parents < 0] = False  # no substitution changes the number of records
    by_rows = plan.hierarchy.domain == "data"
    weight, bounds = plan.data.weight, _bounds(plan)
    if not (pinned.any() or cells or by_rows or weight is not None or bounds):
        return ""
    kept = pinned.copy()
    for depth in range(tree.depth - 1, 0, -1):
        nodes = np.flatnonzero(kept & (tree.level == depth))
        kept[tree.parents[nodes]] = True
    place = np.cumsum(kept) - 1
    nodes = np.flatnonzero(kept)
    above = np.where(tree.parents[nodes] < 0, -1, place[tree.parents[nodes]])
    deepest = int(tree.level[nodes].max(initial=0))
    lookup = plan.data.lookup
    facts: dict[str, object] = {
        "occurring": plan.hierarchy.levels if by_rows else None,
        "columns": plan.hierarchy.levels[:deepest],
        "table": plan.data.table,
        "where": plan.data.where,
        "types": sorted((plan.data.types or {}).items()),
        "lookup": lookup and [sha256(base / lookup.source), lookup.key, lookup.on],
        "nodes": [tree.names[v] for v in nodes],
        "parents": above.tolist(),
        "exact": pinned[nodes].tolist(),
    }
    if cells or bounds:
        facts["columns"] = plan.hierarchy.levels
    if plan.table is not None and cells:
        readings = plan.table.attributes, plan.table.groups
        facts["table"] = [cells, *map(msgspec.to_builtins, readings)]
        if plan.data.table is not None:
            facts["rows"] = plan.data.table
    if plan.tables:
        facts["tables"] = [cells, msgspec.to_builtins(plan.tables)]
    if bounds:
        facts["bounds"] = bounds
    if weight is not None:  # otherwise the hash is that of older versions
        facts["weight"] = weight
    text = json.dumps(facts, sort_keys=True).encode("ascii")
    return hashlib.blake2b(text, digest_size=16, person=b"fixed").hexdigest()
