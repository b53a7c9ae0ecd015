"""Check the files, numbers and claims of a release, from its directory alone."""

from __future__ import annotations

import errno
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from tempfile import gettempdir
from typing import Any, cast

import msgspec
import numpy as np

from congenial import __version__
from congenial.errors import CongenialError, ReleaseError
from congenial.inference.best_table import REFUSED, BestTable
from congenial.inference.splits.empirical_bayes import LevelSplits
from congenial.ledger.lookup import CLOCKS_DIFFER, beside, look_up
from congenial.plan.plan import Plan
from congenial.randomness import seeded
from congenial.releases import directory as files
from congenial.releases.accuracy import IN_PARTS, NO_MARGINS_OF_CROSSING, margins
from congenial.releases.certificate import (
    Certificate,
    check_debit,
    plan_digest,
    read_certificate,
    stated_plan,
)
from congenial.releases.file_table import FileTable
from congenial.releases.format_1 import FORMAT_1
from congenial.releases.intervals import intervals, state
from congenial.releases.model import claim
from congenial.releases.reading import Release, read_files
from congenial.releases.sentences import unprotected_texts
from congenial.releases.specification import (
    PARTS,
    PARTS_OF_GUARANTEE,
    Claim,
    Specification,
)
from congenial.types import IntArray
from congenial.verification.checks import TOLERANCE, Check, compare, judged
from congenial.verification.fitted import (
    PRIOR,
    judged_absence,
    judged_least,
    judged_prior,
    unfitted_prior,
)
from congenial.verification.parts import ReadInParts, read_in_parts
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
    good_intervals,
    measurements_in,
    plain,
    same_intervals,
    specified,
)
from congenial.wording import joined, rounded_up, show

# Errors of a disk, or a user's share of it, that has no room left.
_FULL = (errno.ENOSPC, errno.EDQUOT)


def verify(
    directory: str | Path,
    *,
    ledger: str | Path | None = None,
    parts: str | None = None,
    notify: Callable[[str], None] | None = None,
) -> tuple[Check, ...]:
    """Check the files, the numbers and the claims of a release, without its confidential rows.

    Parameters
    ----------
    directory : path
        As `congenial.release` or ``congenial release`` wrote it.
    ledger : path, optional
        The ledger of the release; by default the one that its plan names, if it is beside the
        release.
    parts : str, optional
        A level of the plan. What lies below each of its nodes is read and checked by itself, so
        that memory holds one such part at a time. By default, `verify` chooses a level if the
        release has more than 2 million counts, and parts are possible. The checks are the same.
    notify : callable, optional
        Called with the name of each check as it ends.

    Returns
    -------
    tuple of Check
        In order; if a file cannot be read, checks that need it are left out.

    Raises
    ------
    ReleaseError
        If there is no such directory, or a file in it cannot be read.
    PlanError
        If `parts` is no level at which the release could have been cut, as of `congenial.release`.

    Notes
    -----
    These checks find damage, mistakes and claims that do not follow from the plan. A certificate
    has no signature, so they do not find a forger who makes every file anew. They cannot check
    whether the confidential rows were counted correctly, which versions drew the release
    (`versions`), or a simulation's seed. The time of the release is compared with this machine's
    clock, and with the ledger if it is there. Of a certificate of format 1 the numbers and kinds
    are checked, but not the sentences.

    Examples
    --------
    >>> import congenial as cg
    >>> all(check.passed for check in cg.verify("release"))
    True
    """
    return read_and_check(directory, ledger, parts, notify)[0]


def read_and_check(
    directory: str | Path,
    ledger: str | Path | None = None,
    parts: str | None = None,
    notify: Callable[[str], None] | None = None,
) -> tuple[tuple[Check, ...], ReadInParts | ReadAtOnce | None]:
    """Check a release as `verify` does; return what was read, too, None if nothing was."""
    place = files.release_directory(directory)
    found: list[Check] = []
    try:
        checks = _checks(place, ledger, parts)
        while True:
            try:
                found.append(next(checks))
            except StopIteration as end:
                return tuple(found), end.value
            if notify is not None:
                notify(f"checked: {found[-1].name}")
    except OSError as error:
        if error.errno in _FULL:
            raise ReleaseError(
                f"the directory of temporary files, {gettempdir()}, is full; free space there, or "
                "set TMPDIR to a directory on another disk."
            ) from error
        raise ReleaseError(
            f"{error.filename or place} cannot be read "
            f"({(error.strerror or 'unreadable').lower()}); make all files of a release readable."
        ) from error


def _checks(
    place: Path, ledger: str | Path | None, parts: str | None
) -> Generator[Check, None, ReadInParts | ReadAtOnce | None]:
    missing = [n for n in files.ALWAYS if not (place / n).is_file()]
    strange = files.strangers(place)
    text = "the certificate, CSV and Parquet files are there, and nothing else but a report"
    if missing or strange:
        text = f"{missing[0]} is missing" if missing else f"{strange[0]!r} is no part of a release"
    yield Check("files", not (missing or strange), text)
    if missing:
        return None
    try:
        certificate = read_certificate(place / files.CERTIFICATE)
    except ReleaseError as error:
        yield Check("certificate", False, str(error))
        return None
    yield _certificate(certificate)
    yield _hashes(place, certificate)
    yield _plan_hash(certificate)
    try:
        plan = stated_plan(certificate)
    except ReleaseError as error:
        yield Check("plan", False, str(error))
        return None
    yield Check("plan", True, "the plan in the certificate is complete and free of contradictions")
    try:
        read = read_in_parts(place, certificate, plan, parts) or _read_at_once(
            place, certificate, plan
        )
    except ReleaseError as error:
        yield Check("table", False, str(error))
        return None
    found = read.plain
    yield Check("table", True, _listed(plan, found))
    differ = "the two files have different rows, or a value that is not an integer"
    yield judged("CSV and Parquet", read.csv.same, "both files have the same rows", differ)
    yield _leaves(found)
    others = f"{read.csv.not_integers} values of the CSV file are not integers"
    yield judged("integers", not read.csv.not_integers, "every value is an integer", others)
    yield _additive(plan, found)
    yield _bounds(plan, found)
    yield _measurement_files(place, plan)
    try:
        least, claims = read.specified()
    except CongenialError as error:
        yield Check("guarantee", False, f"none follows from the plan: {error}")
        return None
    yield from _claims(certificate, claims)
    yield _budget(plan, claims.guarantee)
    within = f"{certificate.guarantee.numerical_error:.1e}"
    yield judged(
        "numerical error",
        least * (1.0 - TOLERANCE) <= certificate.guarantee.numerical_error,
        f"in a draw, the probability of any event is off by at most {within}"
        if certificate.guarantee.numerical_error > 0.0
        else "the certificate states that a draw has no numerical error, as the method implies",
        f"the certificate states {within}, but the proved bound is {least:.1e}",
    )
    if certificate.ledger is not None or plan.privacy.ledger is not None:
        yield _debit(certificate, plan, ledger or beside(place, plan.privacy.ledger))
    yield from _keyed(certificate)
    yield from read.by_model()
    return read


def _listed(plan: Plan, found: Plain) -> str:
    """Say what a release counts, whose rows were compared when it was read."""
    if not plan.counted_tables:
        return f"{found.counts} nodes, each listed once and under its parent"
    return f"{found.counts} counts, each listed once: the plan's tables at its places"


def _certificate(certificate: Certificate) -> Check:
    text = f"format {certificate.format}, made {certificate.made}"
    early = datetime.fromisoformat(certificate.made) > datetime.now(UTC) + CLOCKS_DIFFER
    if early:
        text += ", which is in the future by this machine's clock; correct the clock if it is slow"
    first = certificate.format == FORMAT_1
    text += "; its numbers and kinds are checked, not its sentences" * first
    return Check("certificate", not early, text, comparable=not first)


def _hashes(place: Path, certificate: Certificate) -> Check:
    expected = {files.CSV, files.PARQUET}
    if certificate.simulation is not None:
        expected.add(files.MARKER)
    if any((place / name).exists() for name in files.MEASUREMENTS):
        expected.update(files.MEASUREMENTS)
    if set(certificate.files) != expected:
        return Check(
            "hashes", False, f"the certificate does not list exactly {joined(sorted(expected))}"
        )
    wrong = [
        name
        for name, digest in certificate.files.items()
        if not (place / name).is_file() or files.sha256(place / name) != digest
    ]
    changed = f"{', '.join(wrong)} changed since the release was made"
    good = "every file has the SHA-256 in the certificate"
    return judged("hashes", not wrong, good, changed)


def _plan_hash(certificate: Certificate) -> Check:
    same = plan_digest(certificate.plan) == certificate.plan_sha256
    text = "the plan has the SHA-256 in the certificate"
    return judged("plan hash", same, text, "the plan changed since the release")


def _leaves(found: Plain) -> Check:
    missing = f"{found.short} branches end before the deepest level, so rows are missing"
    return judged("levels", not found.short, "every branch reaches the deepest level", missing)


def _additive(plan: Plan, found: Plain) -> Check:
    kind, parts = ("margins", "parts") if plan.counted_tables else ("inner nodes", "children")
    return judged(
        "additivity",
        not found.sums.number,
        f"all {found.totals} {kind} are the sums of their {parts}",
        f"{found.sums.path} is not the sum of its {parts}",
    )


def _bounds(plan: Plan, found: Plain) -> Check:
    """Compare the counts with the plan's bounds, and with each other where it compares tables."""
    given = plan.invariants
    if not given.bounded:
        return Check("bounds", True, "the plan asks for none")
    if found.unfit:
        return Check("bounds", False, found.unfit)
    for wrong, what in (
        (found.negative, "values are negative"),
        (found.outside, "values break a bound of the plan"),
        (found.smaller, "values are below those of another table"),
    ):
        if wrong.number:
            return Check("bounds", False, f"{wrong.number} {what}, the first at {wrong.path}")
    kept = [
        *["no value is negative"] * given.nonnegative,
        *["every value is within the plan's bounds"] * bool(given.at_least or given.at_most),
        *["no count is below the count of another table that it must reach"] * bool(given.as_many),
    ]
    return Check("bounds", True, joined(kept))


def _claims(certificate: Certificate, found: Specification) -> Iterator[Check]:
    """Compare a certificate, part by part, with the specification that follows from its plan."""
    stated = certificate.guarantee
    apart = {part: getattr(found.guarantee, part) for part in PARTS_OF_GUARANTEE}
    for part, (name, what) in PARTS.items():
        theirs = getattr(certificate, part)
        if part == "guarantee":
            theirs = msgspec.structs.replace(stated, **apart)
        yield compare(name, what, getattr(found, part), theirs)
    for part, (name, what) in PARTS_OF_GUARANTEE.items():
        if part == "unprotected" and certificate.format == FORMAT_1:
            yield _unprotected_in_words(name, what, found.guarantee, stated)
        else:
            yield compare(name, what, apart[part], getattr(stated, part))


def _unprotected_in_words(name: str, what: str, found: Claim, stated: Claim) -> Check:
    """Compare the sentences of format 1 with ours; different sentences are not a failure."""
    ours, theirs = unprotected_texts(found), unprotected_texts(stated)
    if ours == theirs:
        return Check(name, True, f"{what}: as the plan implies")
    if len(ours) != len(theirs):
        return Check(name, False, f"{what}: the certificate does not list as many facts")
    text = f"{what}: as many facts as the plan implies; their words are not compared"
    return Check(name, True, text, comparable=False)


def _budget(plan: Plan, found: Claim) -> Check:
    kept = found.epsilon <= plan.privacy.epsilon * (1.0 + TOLERANCE)
    text = (
        f"epsilon is {rounded_up(found.epsilon, 6)}, and the plan allows {plan.privacy.epsilon:.6g}"
    )
    if plan.privacy.delta is not None:
        kept = kept and found.delta <= plan.privacy.delta
        text += (
            f"; delta is {rounded_up(found.delta, 6)}, and the plan allows {plan.privacy.delta:.6g}"
        )
    return Check("budget", kept, text)


def _debit(certificate: Certificate, plan: Plan, ledger: str | Path | None) -> Check:
    kept, text = check_debit(certificate)
    if kept and certificate.ledger is not None:
        neighbours, entry = plan.privacy.neighbours, msgspec.structs.asdict(certificate.ledger)
        kept, found = look_up(ledger, neighbours=neighbours, made=certificate.made, **entry)
        text = f"{text}; {found}"
    return Check("ledger", kept, text)


def _measurement_files(place: Path, plan: Plan) -> Check:
    """Check that the directory has measurements if, and only if, the plan publishes them."""
    wanted = plan.release.measurements
    if any((place / name).exists() != wanted for name in files.MEASUREMENTS):
        text = "are missing" if wanted else "are there, but the plan publishes none"
        return Check("measurement files", False, f"measurements {text}")
    text = "the files that the plan publishes are there, and no others"
    return Check("measurement files", True, text)


@dataclass(frozen=True, eq=False)
class ReadAtOnce:
    """A release of which memory holds all rows."""

    release: Release
    csv: files.CsvRows
    measured_csv: files.CsvRows | None

    @property
    def certificate(self) -> Certificate:
        """The certificate of the release."""
        return self.release.certificate

    @cached_property
    def plain(self) -> Plain:
        """Facts about the counts that need no model of their noise."""
        return plain(_piece(self.release))

    def specified(self) -> tuple[float, Specification]:
        """Return the least numerical error of a draw, and what follows from the plan.

        Raises CongenialError if nothing does.
        """
        release = self.release
        stated = release.certificate.guarantee.numerical_error
        least = release.mechanism.error_bound
        in_parts = release.certificate.accuracy.basis == IN_PARTS
        return least, specified(release.model, claim(release.model, stated), in_parts=in_parts)

    def by_model(self) -> Iterator[Check]:
        """Yield the checks that need the model of the noise."""
        release = self.release
        yield from _measurements(release, self.measured_csv)
        yield check_intervals(release)
        simulation, pinned = release.certificate.simulation, np.zeros(1, dtype=np.bool_)
        if simulation is not None and simulation.with_truth:
            pinned = release.model.resolved.pinned
        yield check_stamp(release.directory, release.certificate, pinned, _piece(release))


def _read_at_once(place: Path, certificate: Certificate, plan: Plan) -> ReadAtOnce:
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
    except (CongenialError, MemoryError) as error:
        return Check(FOLLOWS, False, f"no table follows from the measurements: {_why(error)}")
    return judged_least(follow=follow)


def _prior(release: Release, y: IntArray | None = None) -> Check:
    """Check that the stated prior is the one that the measurements `y` give, if published."""
    certificate = release.certificate
    try:
        mechanism = cast(BestTable, release.under_prior)
        if y is None:
            return unfitted_prior(certificate)
        if certificate.prior is None:
            return judged_absence(refused=_is_refused(cast(BestTable, release.mechanism), y))
        found = mechanism.fitted(y).splits
    except (CongenialError, MemoryError) as error:
        return Check(PRIOR, False, f"no prior follows from the measurements: {_why(error)}")
    return judged_prior(certificate, cast(LevelSplits, mechanism.splits), cast(LevelSplits, found))


def _why(error: CongenialError | MemoryError) -> str:
    """Say why nothing follows: a number that was tampered with may need any amount of memory."""
    if isinstance(error, MemoryError):
        return "their posterior needs more memory than there is; get a fresh copy of the release."
    return str(error)


def _is_refused(mechanism: BestTable, y: IntArray) -> bool:
    """Whether the posterior of measurements cannot be computed."""
    try:
        mechanism.move(y, seeded(SEED))
    except REFUSED:
        return True
    return False


def check_intervals(release: Release) -> Check:
    """Check the intervals of all counts and sums, and the certificate's statement about them."""
    name, certificate, model = INTERVALS, release.certificate, release.model
    try:
        stated = certificate.accuracy.basis
        known = margins(
            model,
            release.mechanism,
            in_parts=stated == IN_PARTS,
            without_crossing=stated == NO_MARGINS_OF_CROSSING,
        )
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
    return Check(name, True, good_intervals(source))


def _keyed(certificate: Certificate) -> Iterator[Check]:
    """Check the number of keys, if any, and say that nothing else about them can be checked."""
    if certificate.keyed is None:
        return
    parts = certificate.keyed.parts
    named = [level.name for level in certificate.domain.levels[1:-1] if level.nodes == parts]
    yield judged(
        "keys",
        bool(named),
        f"the certificate states a secret key for each {' or '.join(named)}, which no file proves",
        f"the certificate states {parts} keys, which is the number of nodes of no inner level",
    )
