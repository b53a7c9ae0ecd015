"""A certificate, the released counts and their margins become the record of a page."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from congenial.certificate import Certificate
from congenial.contents import Contents
from congenial.model import Level
from congenial.report import words
from congenial.report.margins import SHARE, UNKNOWN, Margins, expected_errors, margins
from congenial.report.record import Fact, LevelRow, Page, Row
from congenial.requirements import determined
from congenial.sections import GAUSSIAN, LAPLACE
from congenial.verify import Check

# What the laws of the noise are called.
NOISE = {LAPLACE: "discrete Laplace", GAUSSIAN: "discrete Gaussian"}
FloatArray = npt.NDArray[np.float64]


def compose(contents: Contents, checks: Sequence[Check]) -> Page:
    """Work out everything that a page about a release says.

    Parameters
    ----------
    contents : Contents
    checks : sequence of Check
        What `verify` found.

    Raises
    ------
    PlanError, PrivacyError, InvariantError
        If the plan in the certificate does not fit the released nodes.
    """
    certificate, tree = contents.certificate, contents.tree
    model = contents.model()
    settled = determined(model.need)
    found = margins(model)
    errors = expected_errors(model, contents.value)
    kind = "private" if certificate.simulation is None else "simulated"
    title = f"{certificate.plan['hierarchy']['root']}: {kind} counts"
    exact = found.kind == "exact"
    return Page(
        title=title,
        stamp=certificate.stamp,
        lead=words.lead(certificate, len(tree), int(settled.sum())),
        protected=words.protected(certificate),
        unprotected=words.unprotected(certificate),
        sentence=certificate.sentence,
        details=words.details(certificate),
        accuracy=words.accuracy(certificate, found, len(tree)),
        levels=tuple(
            _level_row(level, certificate, settled, found, errors, tree.level == level.depth)
            for level in model.levels
        ),
        margin_label=f"Margin of {'error' if exact else 'noise'}, {SHARE:.0%}",
        need_label=f"As accurate as needed{'' if exact else ', by the noise alone'}",
        rows=_rows(contents, found, settled),
        cite=words.cite(certificate, title),
        reuse=words.reuse(certificate),
        checks=tuple(Fact(check.name, (check.detail,)) for check in checks),
    )


def _level_row(
    level: Level,
    certificate: Certificate,
    settled: npt.NDArray[np.bool_],
    found: Margins,
    errors: FloatArray,
    here: npt.NDArray[np.bool_],
) -> LevelRow:
    noise = NOISE[certificate.levels[level.depth].noise]
    if settled[here].all():
        told = "none, exact"
    else:
        told = "none of its own" if level.scale is None else f"{noise}, scale {level.scale:.4g}"
    known = found.margin[here & ~settled]
    known = known[known != UNKNOWN]
    return LevelRow(
        level.name,
        level.nodes,
        int(settled[here].sum()),
        told,
        float(errors[here].mean()),
        (int(known.min()), int(known.max())) if known.size else None,
    )


def _rows(contents: Contents, found: Margins, settled: npt.NDArray[np.bool_]) -> tuple[Row, ...]:
    tree = contents.tree
    order = np.argsort(tree.level, kind="stable")
    rank = np.empty(len(tree), dtype=np.int64)
    rank[order] = np.arange(len(tree))
    out = []
    for v in map(int, order):
        parent, margin = int(tree.parents[v]), int(found.margin[v])
        out.append(
            Row(
                level=int(tree.level[v]),
                parent=-1 if parent < 0 else int(rank[parent]),
                name=tree.names[v],
                value=int(contents.value[v]),
                margin=None if margin == UNKNOWN else margin,
                exact=bool(settled[v]),
            )
        )
    return tuple(out)
