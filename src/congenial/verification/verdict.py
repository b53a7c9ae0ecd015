"""Check the files, numbers and claims of a release, from its directory alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from congenial.errors import CongenialError, ReleaseError
from congenial.ledger.lookup import CLOCKS_DIFFER, beside, look_up
from congenial.plan.plan import Plan
from congenial.releases import directory as files
from congenial.releases.certificate import (
    Certificate,
    check_debit,
    plan_digest,
    read_certificate,
    stated_plan,
)
from congenial.releases.format_1 import FORMAT_1
from congenial.releases.sentences import unprotected_texts
from congenial.releases.specification import (
    PARTS,
    PARTS_OF_GUARANTEE,
    Claim,
    Specification,
)
from congenial.verification.checks import TOLERANCE, Check, compare, judged
from congenial.verification.parts import read_in_parts
from congenial.verification.pieces import Plain
from congenial.verification.whole import read_at_once
from congenial.wording import joined


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
    place = files.release_directory(directory)
    try:
        found = []
        for check in _checks(place, ledger, parts):
            found.append(check)
            if notify is not None:
                notify(f"checked: {check.name}")
        return tuple(found)
    except OSError as error:
        raise ReleaseError(
            f"{place} cannot be read ({(error.strerror or 'unreadable').lower()}); make its files "
            "readable."
        ) from error


def _checks(place: Path, ledger: str | Path | None, parts: str | None) -> Iterator[Check]:
    missing = [n for n in files.ALWAYS if not (place / n).is_file()]
    strange = files.strangers(place)
    text = "the certificate, CSV and Parquet files are there, and nothing else but a report"
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
        plan = stated_plan(certificate)
    except ReleaseError as error:
        yield Check("plan", False, str(error))
        return
    yield Check("plan", True, "the plan in the certificate is complete and free of contradictions")
    try:
        read = read_in_parts(place, certificate, plan, parts) or read_at_once(
            place, certificate, plan
        )
    except ReleaseError as error:
        yield Check("table", False, str(error))
        return
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
        return
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
    yield from read.by_model()


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
    text = f"epsilon is {found.epsilon:.6g}, and the plan allows {plan.privacy.epsilon:.6g}"
    if plan.privacy.delta is not None:
        kept = kept and found.delta <= plan.privacy.delta
        text += f"; delta is {found.delta:.6g}, and the plan allows {plan.privacy.delta:.6g}"
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
