"""Checks of what is published beside the counts: intervals and measurements."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import cast

import numpy as np

from congenial import __version__
from congenial.errors import CongenialError, ReleaseError
from congenial.imaging.following import follows
from congenial.imaging.top_down import TopDown
from congenial.imaging.update import Imaged
from congenial.inference.best_table import BestTable
from congenial.randomness import seeded
from congenial.releases import directory as files
from congenial.releases.accuracy import margins
from congenial.releases.intervals import Intervals, intervals, state
from congenial.releases.measurements import measurement_rows
from congenial.releases.model import Model
from congenial.releases.reading import Release
from congenial.releases.specification import under_prior
from congenial.releases.table_posterior import as_likely
from congenial.types import IntArray
from congenial.verification.checks import Check, close, compare, judged
from congenial.wording import show

# Seed for the ties that `verify` breaks when it repeats imaging.
_SEED = 0


def check_published(place: Path, release: Release) -> Check:
    """Check that the directory has measurements if, and only if, the plan publishes them."""
    wanted = release.plan.release.measurements
    if any((place / name).exists() != wanted for name in files.MEASUREMENTS):
        text = "are missing" if wanted else "are there, and the plan publishes none"
        return Check("measurement files", False, f"measurements {text}")
    text = "what the plan publishes is there, and nothing else"
    return Check("measurement files", True, text)


def check_measurements(release: Release) -> Iterator[Check]:
    """Check the measurements, and that the table follows from them."""
    if release.measured_rows is None:
        return
    name = "measurements"
    csv, parquet = release.measured_rows
    if not files.same_rows(csv, parquet):
        yield Check(name, False, "the CSV and the Parquet file have different rows")
        return
    try:
        model = release.model
    except CongenialError as error:
        yield Check(name, False, f"none follow from the plan: {error}")
        return
    y, pinned = _measured(release), model.resolved.pinned
    rows = measurement_rows(model.mechanism, pinned, y)
    stated = tuple(parquet.column(c) for c in ("measurement", "noise", "scale"))
    if not close([list(column) for column in rows], [list(column) for column in stated]):
        text = "a measurement is missing, or its noise does not follow from the plan"
        yield Check(name, False, text)
        return
    if not (y[pinned] == release.values[pinned]).all():
        yield Check(name, False, "a count published exactly differs from the table")
        return
    yield Check(name, True, "every measurement has the noise that follows from the plan")
    yield _follows(release, y)


def _follows(release: Release, y: IntArray) -> Check:
    name, value = "table from measurements", release.values
    try:
        mechanism = under_prior(release.mechanism, release.certificate.prior)
        if isinstance(mechanism, BestTable):
            follow = mechanism.follows(y, value, seeded(_SEED))
        else:
            follow = follows(cast("Imaged | TopDown", mechanism), y, value, seeded(_SEED))
    except CongenialError as error:
        return Check(name, False, f"no table follows from the measurements: {error}")
    text = "the method makes this table from them, apart from ties broken at random"
    return judged(name, follow, text, "the method makes another table from them")


def check_intervals(release: Release) -> Check:
    """Check the intervals of all counts and sums, and the certificate's statement about them."""
    name, certificate = "intervals", release.certificate
    try:
        model = release.model
        mechanism = release.mechanism
        known = margins(model, mechanism)
    except CongenialError as error:
        return Check(name, False, f"none follow from the plan: {error}")
    measured = None if release.measured_rows is None else _measured(release)
    found = intervals(model, mechanism, known, release.values, measured)
    kept = _same(model, found, release)
    same = compare(name, "", state(model, known, found), certificate.accuracy).passed
    if not kept:
        text = "an interval does not follow from the published numbers"
        if certificate.author != __version__ and found.source in (
            "inversion",
            "posterior",
            "simulation",
        ):
            made = show(certificate.author)
            text += f", unless congenial {made}, which made it, computes it differently"
        return Check(name, False, text)
    if not same:
        return Check(name, False, "the certificate states other intervals")
    return Check(name, True, f"every interval follows from the published numbers ({found.source})")


def _same(model: Model, found: Intervals, release: Release) -> bool:
    """Whether a table has the intervals found, except for ties of a posterior."""
    stated = {column: release.parquet.column(column) for column in found.columns}
    off = {
        column: {
            v for v, (one, own) in enumerate(zip(stated[column], ends, strict=True)) if one != own
        }
        for column, ends in found.columns.items()
    }
    differ = sorted(off.pop("lower") | off.pop("upper"))
    if any(off.values()):
        return False
    if not differ or found.source != "posterior":
        return not differ
    at, free = np.array(differ, dtype=np.int64), model.domain.is_leaf & ~model.determined
    made = [[stated[end][v] for v in differ] for end in ("lower", "upper")]
    if not free[at].all() or not all(isinstance(end, int) for end in (*made[0], *made[1])):
        return False
    low, high = np.array(made, dtype=np.int64)
    return as_likely(model, release.values, at, (low, high), (found.lower[at], found.upper[at]))


def _measured(release: Release) -> IntArray:
    """Measurements of all nodes, 0 for nodes without one."""
    if release.measured_rows is None:
        raise ReleaseError("the release has no measurements; publish them.")
    column = release.measured_rows[1].column("measurement")
    return np.array([v if isinstance(v, int) else 0 for v in column], dtype=np.int64)
