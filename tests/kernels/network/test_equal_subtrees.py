"""One of equal subtrees below a sum stands for all, as canonical forms tell."""

from __future__ import annotations

import numpy as np
import pytest

from congenial.kernels.network import equal_subtrees as kernels
from congenial.kernels.network import families as grouping

pytestmark = pytest.mark.kernels


def random_forest(source):
    """Return (above, owner, weights) of a random forest of sums with few weights."""
    n = int(source.integers(1, 60))
    parents = np.array([-1, *(int(source.integers(-1, v)) for v in range(1, n))])
    owner = np.unique(parents[parents >= 0])
    number = np.full(n + 1, -1)
    number[owner] = np.arange(owner.size)
    above, owner = number[parents], owner.astype(np.int32)
    if source.random() < 0.3 and owner.size:  # a sum that is fixed, without an owner
        roots = np.flatnonzero((parents < 0) & (number[:n] < 0))
        above[roots], owner = owner.size, np.append(owner, np.int32(-1))
        if not roots.size:
            owner = owner[:-1]
    return above.astype(np.int32), owner, source.integers(0, 2, n).astype(np.int32)


def merged(above, owner, code, source):
    n, m = above.size, owner.size
    depth = np.zeros(m, dtype=np.int32)
    for f in range(m):
        v = owner[f]
        while v >= 0 and above[v] >= 0:
            depth[f], v = depth[f] + 1, owner[above[v]]
    start, member = np.empty(m + 1, dtype=np.int32), np.empty(n, dtype=np.int32)
    bottom_up = np.empty(m, dtype=np.int32)
    begin = grouping.families(above, owner, depth, start, member, bottom_up)
    member = member[: start[-1]]
    if begin >= 0:
        member = np.arange(begin, begin + start[-1], dtype=np.int32)
    below = np.full(n, -1, dtype=np.int32)
    below[owner[owner >= 0]] = np.flatnonzero(owner >= 0)
    alone = [(below[member[start[f] : start[f + 1]]] < 0).all() for f in range(m)]
    apart = np.array(alone, dtype=np.bool_) & (source.random() < 0.5)
    class_of, ordered = code.copy(), np.empty_like(member)
    top = np.where(owner >= 0, code[owner], -1).astype(np.int32)
    seen = np.full(1 << int(2 * m).bit_length(), -1, dtype=np.int32)
    kernels.classify(bottom_up, start, member, owner, top, 2, class_of, ordered, seen)
    roots = np.array([owner[f] < 0 or above[owner[f]] < 0 for f in range(m)], dtype=np.bool_)
    family_of = np.where(roots, np.arange(m), -1).astype(np.int32)
    variable_of, times = np.full(n, -1, dtype=np.int32), np.zeros(n, dtype=np.int32)
    laid = start, ordered, owner, apart, below, class_of
    kernels.merge(bottom_up[::-1], *laid, family_of, variable_of, times)
    return (start, member, below, apart), family_of, variable_of, times


def test_one_member_stands_for_all_with_its_canonical_form():
    source, fewer = np.random.default_rng(1), 0
    for _ in range(3000):
        above, owner, code = random_forest(source)
        (start, member, below, apart), family_of, variable_of, times = merged(
            above, owner, code, source
        )

        def members(f, start=start, member=member):
            return member[start[f] : start[f + 1]].tolist()

        def form(v, code=code, below=below, members=members):
            inside = sorted(map(form, members(below[v]))) if below[v] >= 0 else []
            return repr((int(code[v]), inside))

        for f, g in enumerate(family_of.tolist()):
            assert sorted(map(form, members(f))) == sorted(map(form, members(g)))
            assert family_of[g] == g
            kept = [v for v in members(g) if variable_of[v] == v]
            if apart[f]:
                assert kept == members(g) and (times[kept] == 1).all()
                continue
            forms = [form(v) for v in members(g)]
            # one member for each form, and as many times as the form occurs
            assert sorted(map(form, kept)) == sorted(set(forms))
            assert all(times[v] == forms.count(form(v)) for v in kept)
            for v in members(f):
                u = variable_of[v]
                assert u in kept and form(u) == form(v)
                if below[v] >= 0:
                    assert family_of[below[v]] == below[u]
            fewer += len(members(f)) - len({variable_of[v] for v in members(f)})
        assert (variable_of[times > 0] == np.flatnonzero(times)).all()
    assert fewer > 5000
