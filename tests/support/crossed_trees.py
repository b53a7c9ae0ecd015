"""Two trees over the same leaves."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

import congenial as cg
from support.conditioning_cases import INF, LAWS, forests


@st.composite
def crossed_trees(draw):
    """Trees with one or two further sums over any of their nodes."""
    parents = draw(forests(6))
    tree, kind = cg.Tree.from_parents(parents), draw(st.sampled_from(sorted(LAWS)))
    n = len(parents)
    widths = (0.1, 0.2, 0.3) if kind == "laplace" else (0.3, 0.6, 0.9)
    scales = np.array([draw(st.sampled_from(widths)) for _ in range(n)])
    rows = [
        [draw(st.sampled_from((0, 0, 1, -1))) for _ in range(n)]
        for _ in range(draw(st.integers(1, 2)))
    ]
    x = tree.roll_up(np.array([draw(st.integers(-2, 4)) for _ in tree.leaves]))
    slack = st.sampled_from((0, 1, INF, INF))
    lo = x - np.array([draw(slack) for _ in range(n)]) if draw(st.booleans()) else -INF
    return tree, kind, scales, np.array(rows), x, lo
