"""TopDown of crossing margins by a general solver: one quadratic programme a family (PIQP)."""

from __future__ import annotations

import numpy as np

from benchmarks.peers.quadratic import AIM
from congenial.kernels.projection.crossing import Areas
from congenial.types import FloatArray


def topdown(areas: Areas, x: FloatArray) -> FloatArray:
    """Return the cells of all nodes, each family fitted under its parent's cells in `x`.

    Parameters
    ----------
    areas : Areas
        Cells at least 0, no other bounds.
    x : ndarray of float64, shape (N, K)
        Cells of all nodes; those of roots are kept.
    """
    import piqp
    from scipy import sparse

    out = x.copy()
    cells = areas.of.shape[0]
    sums = np.zeros((areas.low.shape[1], cells))
    for margin in areas.of.T:
        sums[margin, np.arange(cells)] = 1.0
    for f, head in enumerate(areas.head):
        if head < 0:
            continue
        at = areas.members[areas.first[f] : areas.first[f + 1]]
        # relative to the parent's cells shared out, so that numbers have the size of the noise
        start = np.rint(np.tile(x[head] / at.size, (at.size, 1)))
        weight = areas.weight[at] / areas.weight[at].max()
        short = areas.target[at] - start @ sums.T
        solver = piqp.SparseSolver()
        solver.settings.eps_abs, solver.settings.eps_rel = AIM, 0.0
        solver.settings.eps_duality_gap_abs, solver.settings.eps_duality_gap_rel = AIM, AIM
        solver.setup(
            sparse.csc_matrix(sparse.block_diag([sums.T @ (w[:, None] * sums) for w in weight])),
            -((weight * short) @ sums).ravel(),
            sparse.csc_matrix(sparse.hstack([sparse.eye_array(cells)] * at.size)),
            x[head] - start.sum(axis=0),
            None,
            None,
            None,
            -start.ravel(),
            None,
        )
        solver.solve()
        out[at] = start + np.asarray(solver.result.x).reshape(at.size, cells)
    return out
