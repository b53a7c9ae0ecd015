"""A release that is read and checked as a whole."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, cast

import numpy as np

from congenial import __version__
from congenial.errors import CongenialError
from congenial.inference.best_table import GAP, REFUSED, BestTable
from congenial.inference.splits.empirical_bayes import LevelSplits
from congenial.plan.plan import Plan
from congenial.randomness import seeded
from congenial.releases import directory as files
from congenial.releases.accuracy import margins
from congenial.releases.certificate import Certificate
from congenial.releases.file_table import FileTable
from congenial.releases.intervals import intervals, state
from congenial.releases.model import claim
from congenial.releases.reading import Release, read_files
from congenial.releases.specification import Specification, specify
from congenial.types import IntArray
from congenial.verification.checks import Check, compare, judged
from congenial.verification.pieces import (
    FOLLOWS,
    INTERVALS,
    MEASURED,
    SEED,
    Piece,
    Plain,
    check_image,
    check_noise,
    check_stamp,
    measurements_in,
    plain,
    same_intervals,
)
from congenial.wording import show

# Largest relative difference between a stated prior and the fitted one. Rounding on another machine
# changes a fit by less than 1e-7.
_PRIOR = 1e-3


@dataclass(frozen=True, eq=False)
class ReadAtOnce:
    """A release of which memory holds all rows."""

    release: Release
    csv: files.CsvRows
    measured_csv: files.CsvRows | None

    @cached_property
    def plain(self) -> Plain:
        """What the counts show without the model of their noise."""
        return plain(_piece(self.release))

    def specified(self) -> tuple[float, Specification]:
        """Return the least numerical error of a draw, and what follows from the plan.

        Raises CongenialError if nothing does.
        """
        release = self.release
        stated = release.certificate.guarantee.numerical_error
        least = release.mechanism.error_bound
        return least, specify(release.model, claim(release.model, stated))

    def by_model(self) -> Iterator[Check]:
        """Yield the checks that need the model of the noise."""
        release = self.release
        yield from _measurements(release, self.measured_csv)
        yield check_intervals(release)
        simulation, pinned = release.certificate.simulation, np.zeros(1, dtype=np.bool_)
        if simulation is not None and simulation.with_truth:
            pinned = release.model.resolved.pinned
        yield check_stamp(release.directory, release.certificate, pinned, _piece(release))


def read_at_once(place: Path, certificate: Certificate, plan: Plan) -> ReadAtOnce:
    """Read all tables of a release, and compare each CSV file with its Parquet file.

    Raises ReleaseError if one cannot be read.
    """
    release = read_files(place, certificate, plan)
    rows = _compared(release, release.rows, files.CSV)
    if release.measured is None:
        return ReadAtOnce(release, rows, None)
    return ReadAtOnce(release, rows, _compared(release, release.measured, files.MEASUREMENTS_CSV))


def _compared(release: Release, table: FileTable, name: str) -> files.CsvRows:
    plan = release.plan
    names, readings = plan.place_names, plan.reading_columns
    return files.compare_csv(
        release.directory / name, table, names, release.domain, readings=readings
    )


def _piece(release: Release) -> Piece:
    """Return all counts of a release."""
    plan, every = release.plan, np.ones(len(release.domain), dtype=np.bool_)
    numbers, deepest = np.arange(every.size), len(plan.level_names) - 1
    return Piece(
        plan, release.domain, release.rows, release.measured, numbers, every, deepest, bounded=True
    )


def _measurements(release: Release, rows: files.CsvRows | None) -> Iterator[Check]:
    """Check the measurements, and that the table follows from them."""
    fitted = release.certificate.prior is not None or isinstance(release.mechanism, BestTable)
    if release.measured is None or rows is None:
        if fitted:
            yield _prior(release)
        return
    if not rows.same:
        yield Check(MEASURED, False, "the CSV and the Parquet file have different rows")
        return
    check = check_noise(release.model, _piece(release))
    yield check
    if not check.passed:
        return
    y = measurements_in(release.measured)
    if fitted:
        yield _prior(release, y)
    yield _follows(release, y)


def _follows(release: Release, y: IntArray) -> Check:
    try:
        mechanism = release.under_prior
        if not isinstance(mechanism, BestTable):
            return check_image(cast(Any, mechanism), y, release.values)
        follow = mechanism.follows(y, release.values, seeded(SEED))
    except CongenialError as error:
        return Check(FOLLOWS, False, f"no table follows from the measurements: {error}")
    good = f"no table has a smaller expected error e (tolerance: {GAP:.0e} times (1 + e))"
    false = "the method makes another table with a smaller expected error"
    return judged(FOLLOWS, follow, good, false)


def _prior(release: Release, y: IntArray | None = None) -> Check:
    """Check that the stated prior is the one that the measurements `y` give, if published."""
    name, certificate = "prior", release.certificate
    if certificate.prior is None:
        return _no_prior(release, y)
    try:
        mechanism = release.under_prior
        if y is None:
            text = "every level has a positive alpha; without measurements, no fit can be checked"
            return Check(name, True, text)
        splits = cast(BestTable, mechanism).fitted(y).splits
    except CongenialError as error:
        return Check(name, False, f"no prior follows from the measurements: {error}")
    found, stated = cast(LevelSplits, splits), cast(BestTable, mechanism).splits
    same = stated is not None and all(
        np.allclose(own[1:], theirs[1:], rtol=_PRIOR, atol=0.0)
        for own, theirs in ((found.alpha, stated.alpha), (found.spread, stated.spread))
    )
    other = "the measurements give another prior"
    if certificate.author != __version__:
        made = show(certificate.author)
        other += f", unless congenial {made}, which made it, fits it differently"
    return judged(name, same, "the prior is the one fitted to the measurements", other)


def _no_prior(release: Release, y: IntArray | None) -> Check:
    """Check that no posterior can be computed, where the closest table is released instead."""
    name = "prior"
    if y is None:
        text = "none, so the closest table is released; without measurements, nobody can check why"
        return Check(name, True, text)
    try:
        cast(BestTable, release.mechanism).move(y, seeded(SEED))
    except REFUSED:
        text = "none: the posterior of these measurements cannot be computed"
        return Check(name, True, text)
    return Check(
        name,
        False,
        "the certificate states none, but the posterior can be computed, so the table of least "
        "expected error was due, unless the computer that made the release had too little memory "
        "or another version of congenial",
    )


def check_intervals(release: Release) -> Check:
    """Check the intervals of all counts and sums, and the certificate's statement about them."""
    name, certificate, model = INTERVALS, release.certificate, release.model
    try:
        known = margins(model, release.mechanism)
    except CongenialError as error:
        return Check(name, False, f"none follow from the plan: {error}")
    measured = None if release.measured is None else measurements_in(release.measured)
    found = intervals(model, release.mechanism, known, release.values, measured)
    source = found.basis.source
    if not same_intervals(model, found, _piece(release)):
        text = "an interval does not follow from the published numbers"
        other = certificate.author != __version__
        if other and source in ("inversion", "posterior", "simulation"):
            made = show(certificate.author)
            text += f", unless congenial {made}, which made it, computes it differently"
        return Check(name, False, text)
    if not compare(name, "", state(model, known, found), certificate.accuracy).passed:
        return Check(name, False, "the certificate describes other intervals")
    return Check(name, True, f"every interval follows from the published numbers ({source})")
