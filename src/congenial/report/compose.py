"""Compose the page about a release from its certificate, counts and intervals."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from congenial.inference.noise_intervals import noise_margin
from congenial.preview.comparison.expected import NotSimulated, draws_for, work_of_fit
from congenial.releases import sentences
from congenial.releases.model import Level, Model
from congenial.releases.reading import Release
from congenial.report.page import Counts, Fact, LevelRow, Page
from congenial.types import FloatArray
from congenial.verification.checks import Check


def compose(release: Release, checks: Sequence[Check], errors: FloatArray | NotSimulated) -> Page:
    """Return the content of the page; `errors` has the expected error of each node."""
    certificate, tree = release.certificate, release.tree
    model = release.model
    settled = model.determined
    kind = "private" if certificate.simulation is None else "simulated"
    title = f"{certificate.plan['hierarchy']['root']}: {kind} counts"
    return Page(
        title=title,
        stamp=certificate.stamp,
        lead=sentences.lead(certificate, len(tree), int(settled.sum())),
        protected=sentences.protected(certificate),
        unprotected=sentences.unprotected(certificate),
        sentence=certificate.sentence,
        details=tuple(Fact(*one) for one in sentences.details(certificate)),
        accuracy=sentences.accuracy(certificate, _expected(errors, release)),
        levels=tuple(_level_row(level, release, model, settled, errors) for level in model.levels),
        margin_label=sentences.margin_label(certificate),
        bent=sentences.bent(certificate),
        counts=_counts(release, settled),
        cite=sentences.cite(certificate, title),
        reuse=sentences.reuse(certificate),
        checks=tuple(Fact(check.name, (check.text,)) for check in checks),
    )


def _level_row(
    level: Level,
    release: Release,
    model: Model,
    settled: npt.NDArray[np.bool_],
    errors: FloatArray | NotSimulated,
) -> LevelRow:
    certificate, here = release.certificate, release.tree.level == level.depth
    stated = certificate.accuracy.levels[level.depth]
    noise = model.mechanism.noise
    if settled[here].all():
        text = "none, exact"
    elif level.scale is None:
        text = "none of its own"
    else:
        text = f"{noise.text}, scale {level.scale:.4g}"
        if not sentences.bent(certificate):
            within = noise_margin(noise, level.scale, release.plan.accuracy.alpha)
            text += (
                f", within ±{within:,} in {sentences.confidence(certificate.accuracy.confidence)}"
            )
    reach = _reach(release)[here & ~settled]
    return LevelRow(
        level.name,
        level.nodes,
        int(settled[here].sum()),
        text,
        None if isinstance(errors, NotSimulated) else float(errors[here].mean()),
        sentences.level_margin(certificate, stated.margin, reach),
        stated.required,
        stated.met,
    )


def _expected(errors: FloatArray | NotSimulated, release: Release) -> str:
    """Say how expected errors were computed, or why there are none."""
    if isinstance(errors, NotSimulated):
        return f"Expected errors are not known, as no release could be simulated: {errors.why}."
    draws = draws_for(len(release.tree), work_of_fit(release.model))
    return (
        f"Expected errors are means over {draws:,} simulated release{'s' * (draws != 1)} in which "
        "the true counts are taken to be the released ones; no confidential count was used."
    )


def _reach(release: Release) -> FloatArray:
    """Distance from each released count to the farther end of its interval; inf without one."""
    ends = [
        np.array([np.inf if v is None else v for v in release.parquet.column(name)], dtype=float)
        for name in ("lower", "upper")
    ]
    return np.asarray(
        np.maximum(np.abs(release.values - ends[0]), np.abs(ends[1] - release.values))
    )


def _counts(release: Release, settled: npt.NDArray[np.bool_]) -> Counts:
    tree = release.tree
    order = np.argsort(tree.level, kind="stable")
    rank = np.empty(len(tree), dtype=np.int64)
    rank[order] = np.arange(len(tree))
    above = tree.parents[order]
    ends = [release.parquet.column(name) for name in ("lower", "upper")]
    lower, upper = (
        tuple(end if isinstance(end, int) else None for end in (column[v] for v in order))
        for column in ends
    )
    return Counts(
        tuple(tree.level[order].tolist()),
        tuple(np.where(above < 0, -1, rank[above]).tolist()),
        tuple(tree.names[v] for v in order),
        tuple(release.values[order].tolist()),
        lower,
        upper,
        tuple(settled[order].tolist()),
        _measured(release, order),
    )


def _measured(release: Release, order: npt.NDArray[np.intp]) -> tuple[int | None, ...] | None:
    """Measurements of the counts, in the page's order."""
    if release.measurements is None:
        return None
    return tuple(None if np.isnan(y) else int(y) for y in release.measurements.y[order])
