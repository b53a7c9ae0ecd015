"""Check the files, numbers and claims of a release, from its directory alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import numpy as np

from congenial.domain.workload import Workload
from congenial.errors import CongenialError, PlanError, ReleaseError
from congenial.ledger.lookup import CLOCKS_DIFFER, beside, look_up
from congenial.plan.plan import Plan, bounds_by_node
from congenial.releases import directory as files
from congenial.releases.certificate import Certificate, check_debit, plan_digest, read_certificate
from congenial.releases.directory import STAMP
from congenial.releases.format_1 import FORMAT_1
from congenial.releases.model import claim
from congenial.releases.reading import Release, read_files
from congenial.releases.sentences import unprotected_texts
from congenial.releases.specification import PARTS, PARTS_OF_GUARANTEE, Claim, specify
from congenial.verification.checks import TOLERANCE, Check, compare, judged
from congenial.verification.published import check_intervals, check_measurements, check_published
from congenial.wording import reason_of


def verify(directory: str | Path, *, ledger: str | Path | None = None) -> tuple[Check, ...]:
    """Check the files, the numbers and the claims of a release, without its confidential rows.

    Parameters
    ----------
    directory : path
        As `congenial.release` or ``congenial release`` wrote it.
    ledger : path, optional
        The ledger of the release; by default the one that its plan names, if it is beside the
        release.

    Returns
    -------
    tuple of Check
        In order; if a file cannot be read, checks that need it are left out.

    Raises
    ------
    ReleaseError
        If there is no such directory, or a file in it cannot be read.

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
    place = files.release_directory(directory)
    try:
        return tuple(_checks(place, ledger))
    except OSError as error:
        raise ReleaseError(
            f"{place} cannot be read ({(error.strerror or 'unreadable').lower()}); make its files "
            "readable."
        ) from error


def _checks(place: Path, ledger: str | Path | None) -> Iterator[Check]:
    missing = [n for n in files.ALWAYS if not (place / n).is_file()]
    strange = sorted(entry.name for entry in place.iterdir() if entry.name not in files.ALL)
    text = "certificate, CSV and Parquet are there, and no other file"
    if missing or strange:
        text = f"{missing[0]} is missing" if missing else f"{strange[0]!r} is no part of a release"
    yield Check("files", not (missing or strange), text)
    if missing:
        return
    try:
        certificate = read_certificate(place / files.CERTIFICATE)
    except ReleaseError as error:
        yield Check("certificate", False, str(error))
        return
    yield _certificate(certificate)
    yield _hashes(place, certificate)
    yield _plan_hash(certificate)
    try:
        plan = msgspec.convert(certificate.plan, Plan)
    except (CongenialError, msgspec.ValidationError) as error:
        yield Check("plan", False, f"the plan in the certificate is not one: {reason_of(error)}")
        return
    yield Check("plan", True, "the plan in the certificate is complete and free of contradictions")
    try:
        release = read_files(place, certificate, plan)
    except ReleaseError as error:
        yield Check("table", False, str(error))
        return
    yield Check("table", True, _listed(release))
    for check in _OF_TABLE:
        yield check(release)
    yield from _claims(release, ledger or beside(place, plan.privacy.ledger))
    yield check_published(place, release)
    yield from check_measurements(release)
    yield check_intervals(release)
    yield _simulation(place, release)


def _listed(release: Release) -> str:
    """Say what a release counts, whose rows were compared when it was read."""
    if release.plan.table is None:
        return f"{len(release.domain)} nodes, each once, every one below its parent"
    return f"{len(release.domain)} counts, those of the plan's table at its places, each once"


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
            "hashes", False, f"the certificate does not list {', '.join(sorted(expected))}"
        )
    wrong = [
        name
        for name, digest in certificate.files.items()
        if not (place / name).is_file() or files.sha256(place / name) != digest
    ]
    changed = f"{', '.join(wrong)} changed since the release was made"
    return judged("hashes", not wrong, "SHA-256 of every file is as certified", changed)


def _plan_hash(certificate: Certificate) -> Check:
    same = plan_digest(certificate.plan) == certificate.plan_sha256
    text = "SHA-256 of the plan is as certified"
    return judged("plan hash", same, text, "the plan changed since the release")


def _same(release: Release) -> Check:
    same = files.same_rows(release.csv, release.parquet)
    differ = "hold different rows, or a value that is not an integer"
    return judged("CSV and Parquet", same, "hold the same rows", differ)


def _leaves(release: Release) -> Check:
    tree = release.domain
    if isinstance(tree, Workload):  # its rows were compared with the plan's when they were read
        return Check("levels", True, "every place reaches the deepest level")
    short = int((tree.level[tree.leaves] != len(release.plan.level_names) - 1).sum())
    missing = f"{short} branches end before the deepest level, so rows are missing"
    return judged("levels", short == 0, "every branch reaches the deepest level", missing)


def _integers(release: Release) -> Check:
    # the Parquet column is BIGINT, which was checked with the columns
    at = [name for name, _ in release.csv.columns].index("value")
    bad = sum(1 for row in release.csv.rows if not _is_integer(row[at]))
    others = f"{bad} values of the CSV are not integers"
    return judged("integers", bad == 0, "every value is an integer", others)


def _is_integer(text: object) -> bool:
    digits = str(text).removeprefix("-")
    return digits.isascii() and digits.isdigit()


def _additive(release: Release) -> Check:
    # sums of Python integers cannot overflow, whatever the file says
    domain, value = release.domain, [int(v) for v in release.values]
    sums, below = domain.sums, dict.fromkeys(domain.sums.totals.tolist(), 0)
    totals = sums.totals[sums.sum_of_part].tolist()
    for total, part in zip(totals, sums.parts.tolist(), strict=True):
        below[total] += value[part]
    wrong = [total for total, found in below.items() if found != value[total]]
    kind, parts = (
        ("margins", "parts") if isinstance(domain, Workload) else ("inner nodes", "children")
    )
    if wrong:
        shown = "/".join(domain.path(wrong[0]))
        return Check("additivity", False, f"{shown} is not the sum of its {parts}")
    return Check("additivity", True, f"all {len(below)} {kind} are the sums of their {parts}")


def _bounds(release: Release) -> Check:
    given = release.plan.invariants
    if not given.bounded:
        return Check("bounds", True, "the plan asks for none")
    below = np.flatnonzero(release.values < 0)
    if given.nonnegative and below.size:
        shown = "/".join(release.domain.path(int(below[0])))
        return Check("bounds", False, f"{below.size} values are negative, the first at {shown}")
    try:
        low, high = bounds_by_node(release.plan, release.domain)
    except PlanError as error:
        return Check("bounds", False, str(error))
    beyond = np.flatnonzero((release.values < low) | (release.values > high))
    if beyond.size:
        shown = "/".join(release.domain.path(int(beyond[0])))
        text = f"{beyond.size} values break a bound of the plan, the first at {shown}"
        return Check("bounds", False, text)
    kept = [
        *["no value is negative"] * given.nonnegative,
        *["every value is within the plan's bounds"] * bool(given.at_least or given.at_most),
    ]
    return Check("bounds", True, " and ".join(kept))


_OF_TABLE: tuple[Callable[[Release], Check], ...] = (_same, _leaves, _integers, _additive, _bounds)


def _claims(release: Release, ledger: str | Path | None) -> Iterator[Check]:
    certificate, plan, stated = release.certificate, release.plan, release.certificate.guarantee
    try:
        model = release.model
        least = release.mechanism.error_bound
        found = claim(model, stated.numerical_error)
        full = specify(model, found)
    except CongenialError as error:
        yield Check("guarantee", False, f"none follows from the plan: {error}")
        return
    apart = {part: getattr(full.guarantee, part) for part in PARTS_OF_GUARANTEE}
    for part, (name, what) in PARTS.items():
        theirs = getattr(certificate, part)
        if part == "guarantee":
            theirs = msgspec.structs.replace(theirs, **apart)
        yield compare(name, what, getattr(full, part), theirs)
    for part, (name, what) in PARTS_OF_GUARANTEE.items():
        if part == "unprotected" and certificate.format == FORMAT_1:
            yield _unprotected_in_words(name, what, full.guarantee, stated)
        else:
            yield compare(name, what, apart[part], getattr(stated, part))
    kept = found.epsilon <= plan.privacy.epsilon * (1.0 + TOLERANCE)
    text = f"epsilon {found.epsilon:.6g} of the {plan.privacy.epsilon:.6g} that the plan allows"
    if plan.privacy.delta is not None:
        kept = kept and found.delta <= plan.privacy.delta
        text += f", delta {found.delta:.6g} of its {plan.privacy.delta:.6g}"
    yield Check("budget", kept, text)
    within = f"{stated.numerical_error:.1e}"
    yield judged(
        "numerical error",
        least * (1.0 - TOLERANCE) <= stated.numerical_error,
        f"a draw is within {within} of its law, in total variation",
        f"the certificate states {within}, and the bound is {least:.1e}",
    )
    debited = certificate.ledger
    if debited is not None or plan.privacy.ledger is not None:
        kept, text = check_debit(certificate)
        if kept and debited is not None:
            kept, state = look_up(
                ledger,
                neighbours=found.neighbours,
                made=certificate.made,
                **msgspec.structs.asdict(debited),
            )
            text = f"{text}; {state}"
        yield Check("ledger", kept, text)


def _unprotected_in_words(name: str, what: str, found: Claim, stated: Claim) -> Check:
    """Compare the sentences of format 1 with ours; different sentences are not a failure."""
    ours, theirs = unprotected_texts(found), unprotected_texts(stated)
    if ours == theirs:
        return Check(name, True, f"{what}: as it follows from the plan")
    if len(ours) != len(theirs):
        return Check(name, False, f"{what}: the certificate does not list as many facts")
    text = f"{what}: as many as follow from the plan; their words are not compared"
    return Check(name, True, text, comparable=False)


def _simulation(place: Path, release: Release) -> Check:
    certificate = release.certificate
    marker = place / files.MARKER
    if certificate.simulation is None:
        text = "drawn from the operating system's entropy"
        false = "a file says that this is a simulation and the certificate does not"
        return judged("simulation", not marker.exists(), text, false)
    shown = [release.parquet]
    if release.measured_rows is not None:
        shown.append(release.measured_rows[1])
    stamped = (
        marker.is_file()
        and marker.read_bytes() == files.MARKER_TEXT.encode()
        and all(set(table.column("note")) == {STAMP} for table in shown)
    )
    if stamped and certificate.simulation.with_truth:
        pinned = release.model.resolved.pinned
        truth = np.array(release.parquet.column("truth"), dtype=np.int64)
        if not (truth[pinned] == release.values[pinned]).all():
            return Check("simulation", False, "an exact count differs from its true count")
        if truth.min() < 0 or not release.domain.is_consistent(truth):
            return Check("simulation", False, "the true counts do not add up, or one is negative")
    text = f"{STAMP}, and every part says so"
    return judged("simulation", stamped, text, "a part of this simulation lacks its stamp")
