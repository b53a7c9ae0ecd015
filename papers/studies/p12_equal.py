"""Sex by age at equal final epsilon: the question that both papers raise and do not answer.

Conditioning pays for bounds and imaging does not, so the same final guarantee gives imaging the
narrower noise where counts may not be negative.
"""

from __future__ import annotations

from math import exp, log
from typing import TYPE_CHECKING

import numpy as np

from congenial.conditioning.choice import condition
from congenial.errors import ArgumentError
from congenial.exhibits.exhibit import Cell, Exhibit
from congenial.exhibits.files import as_rows
from congenial.imaging.update import image
from congenial.invariants.written import nonnegative
from congenial.randomness import Randomness
from congenial.types import IntArray
from papers.studies.looks import ERRORS, epsilon_axis, frame, level_line, line
from papers.studies.p12_methods import mechanism, totals_of
from papers.studies.pages import with_errors
from papers.studies.study import DIGITS

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

FINALS = (0.5, 1.0, 2.0, 4.0)
# Records are substituted, and each is counted in one cell: two cells change by one.
CHANGED = 2.0


def scale_of(epsilon: float, *, bounded: bool) -> float:
    """Scale of the noise at which conditioning has a final epsilon.

    Notes
    -----
    Under the totals alone, the loss is that of the noise, E = 2/scale. With no negative cells it is
    at most ln(2 exp(E) - 1) (proofs/inequalities.md), of which this is the inverse.
    """
    return CHANGED / (log((exp(epsilon) + 1.0) / 2.0) if bounded else epsilon)


def cost_of_bounds(epsilon: float) -> float:
    """Bound on the final epsilon over that of the noise, for noise of scale 1/epsilon a cell."""
    loss = CHANGED * epsilon
    return log(2.0 * exp(loss) - 1.0) / loss


def at_equal_epsilon(simulated: IntArray, count: int, source: Randomness) -> Exhibit:
    """Mean L1 distance of integer releases from their tables, at equal final epsilon."""
    rows: list[tuple[Cell, ...]] = []
    for bounded in (False, True):
        for epsilon in FINALS:
            scale = scale_of(epsilon, bounded=bounded)
            conditioned, fine = mechanism(scale), mechanism(CHANGED / epsilon)
            l1: list[list[float]] = []
            for table in simulated:
                invariant = totals_of(table) & nonnegative() if bounded else totals_of(table)
                ours = condition(conditioned, invariant)
                claimed = ours.guarantee("substitute").epsilon
                if abs(claimed - epsilon) > 1e-6:
                    raise ArgumentError(
                        f"conditioning claims {claimed:.9g} at scale {scale:.9g}; give the scale "
                        f"of a final epsilon of {epsilon:g}."
                    )
                theirs = image(fine, invariant, integer=True)
                drawn = [np.asarray(m.sample(table, count, source)) for m in (ours, theirs)]
                l1.append([float(np.abs(z - table).sum(axis=1).mean()) for z in drawn])
            found = np.array(l1)
            apart = found[:, 0] - found[:, 1]
            rows.append(
                (
                    "totals, no negative cell" if bounded else "totals",
                    epsilon,
                    scale,
                    CHANGED / epsilon,
                    *(float(v) for v in found.mean(axis=0)),
                    float(apart.mean()),
                    float(apart.std(ddof=1) / np.sqrt(apart.size)),
                )
            )
    columns = (
        *("exact", "final ε", "scale, conditioned", "scale, imaged"),
        *("conditioned", "imaged", "difference", "its standard error"),
    )
    return Exhibit(
        "equal",
        "Mean L1 distance at equal final ε",
        columns,
        tuple(rows),
        (
            f"There are {len(simulated)} simulated tables, with {count} releases of integers each. "
            "Imaging is in L2, then rounded. A record is replaced by another, so that two cells "
            "change. A difference compares both methods on the same tables.",
        ),
    )


def equal_figure(canvas: Canvas, equal: Exhibit) -> None:
    """Draw the distance under conditioning over that under imaging, by final epsilon."""
    axes = canvas.subplots()
    for place, (which, label) in enumerate(
        (("totals", "only totals are exact"), ("totals, no negative cell", "no cell below 0, too"))
    ):
        rows = [[float(str(cell)) for cell in row[1:]] for row in equal.rows if row[0] == which]
        ratio = [row[3] / row[4] for row in rows]
        error = [ERRORS * row[6] / row[4] for row in rows]
        at = [row[0] for row in rows]
        axes.errorbar(at, ratio, yerr=error, capsize=3, label=label, **line(place))
    level_line(axes, 1.0)
    epsilon_axis(axes, FINALS, "final ε")
    frame(axes)
    axes.set_ylabel("error of conditioning over imaging\n(below 1, conditioning is better)")
    axes.legend(frameon=False, loc="lower left")


def findings(equal: Exhibit) -> tuple[str, ...]:
    """State which method serves better at equal privacy."""
    shown = as_rows(with_errors(equal), DIGITS)
    return (
        "**Which method has smaller errors at equal privacy?** The three totals are females, "
        "males, and people of 18 and over. If only these are exact, conditioning adds nothing to "
        "ε. If also no cell may be negative, conditioning needs wider noise for the same final ε. "
        "These are mean L1 distances of a release from its confidential table, ± one standard "
        f"error:\n\n{shown}",
    )
