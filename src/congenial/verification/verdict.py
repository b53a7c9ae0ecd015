"""Check a release by its directory alone: files, numbers, and claims."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import numpy as np

from congenial._version import __version__
from congenial.accounting.guarantee import Guarantee
from congenial.errors import CongenialError, ReleaseError
from congenial.ledger.lookup import CLOCKS_DIFFER, beside, look_up
from congenial.plan.plan import Plan
from congenial.releases import directory as files
from congenial.releases.certificate import (
    FORMAT,
    ROWS_NOT_SHOWN,
    Certificate,
    as_claim,
    check_debit,
    level_noise,
    plan_digest,
    read_certificate,
    sentence,
)
from congenial.releases.contents import Contents, read_contents
from congenial.releases.directory import STAMP
from congenial.releases.model import claim
from congenial.releases.specification import PARTS, specify
from congenial.verification.checks import (
    TOLERANCE,
    Check,
    begins_with,
    compare,
    otherwise_worded,
    same_numbers,
    same_words,
    without_costs,
)
from congenial.verification.published import check_intervals, check_measurements, check_published


def verify(directory: str | Path, *, ledger: str | Path | None = None) -> tuple[Check, ...]:
    """Check the files, the numbers and the claims of a release, without its confidential rows.

    Parameters
    ----------
    directory : path
        As `congenial.release` or ``congenial release`` wrote it.
    ledger : path, optional
        The ledger of the release; else the one that its plan names, where that is beside it.

    Returns
    -------
    tuple of Check
        In the order made; where a file cannot be understood, what rests on it is not checked.

    Raises
    ------
    ReleaseError
        If there is no such directory, or a file in it cannot be read.

    Notes
    -----
    A certificate carries no signature: these checks find damage, mistakes and claims that do not
    follow from the plan, and not a forger who makes everything anew. They cannot tell whether the
    confidential rows were counted rightly, nor check by which versions a release was drawn
    (`versions`), or a simulation's seed. The time at which it was made is held against this
    machine's clock and against the ledger, where that is at hand. The words of another version are
    not compared, only the numbers behind them and in them.

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
    told = "certificate, CSV and Parquet are there, and nothing strange"
    if missing or strange:
        told = f"{missing[0]} is missing" if missing else f"{strange[0]!r} is no part of a release"
    yield Check("files", not (missing or strange), told)
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
        yield Check("plan", False, f"the plan in the certificate is not one: {error}")
        return
    yield Check("plan", True, "the plan in the certificate is complete and free of contradictions")
    try:
        contents = read_contents(place, certificate, plan)
    except ReleaseError as error:
        yield Check("table", False, str(error))
        return
    yield Check("table", True, f"{len(contents.tree)} nodes, each once, every one below its parent")
    for check in _OF_CONTENTS:
        yield check(contents)
    yield from _claims(contents, ledger or beside(place, plan.privacy.ledger))
    yield check_published(place, contents)
    yield from check_measurements(contents)
    yield check_intervals(contents)
    yield _simulation(place, contents)


def _certificate(certificate: Certificate) -> Check:
    told = f"format {certificate.format}, made {certificate.made}"
    early = datetime.fromisoformat(certificate.made) > datetime.now(UTC) + CLOCKS_DIFFER
    if early:
        told += ", which is still to come by this machine's clock; correct the clock if it is slow"
    return Check("certificate", certificate.format == FORMAT and not early, told)


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
    told = "SHA-256 of every file is as certified"
    if wrong:
        told = f"{', '.join(wrong)} changed since the release was made"
    return Check("hashes", not wrong, told)


def _plan_hash(certificate: Certificate) -> Check:
    same = plan_digest(certificate.plan) == certificate.plan_sha256
    return Check(
        "plan hash",
        same,
        "SHA-256 of the plan is as certified" if same else "the plan changed since the release",
    )


def _same(contents: Contents) -> Check:
    same = files.same_rows(contents.csv, contents.parquet)
    return Check(
        "CSV and Parquet",
        same,
        "hold the same rows" if same else "hold different rows, or a value that is not an integer",
    )


def _leaves(contents: Contents) -> Check:
    tree = contents.tree
    short = int((tree.level[tree.leaves] != len(contents.plan.level_names) - 1).sum())
    return Check(
        "levels",
        short == 0,
        "every branch reaches the deepest level"
        if short == 0
        else f"{short} branches end before the deepest level, so rows are missing",
    )


def _integers(contents: Contents) -> Check:
    # the Parquet column is BIGINT, which was checked with the columns
    at = [name for name, _ in contents.csv.columns].index("value")
    bad = sum(1 for row in contents.csv.rows if not _is_integer(row[at]))
    return Check(
        "integers",
        bad == 0,
        "every value is an integer" if bad == 0 else f"{bad} values of the CSV are not integers",
    )


def _is_integer(text: object) -> bool:
    digits = str(text).removeprefix("-")
    return digits.isascii() and digits.isdigit()


def _additive(contents: Contents) -> Check:
    # sums of Python integers cannot overflow, whatever the file says
    tree, value = contents.tree, [int(v) for v in contents.value]
    below = [0] * len(tree)
    for v in range(len(tree)):
        parent = int(tree.parents[v])
        if parent >= 0:
            below[parent] += value[v]
    inner = np.flatnonzero(~tree.is_leaf)
    wrong = [int(v) for v in inner if below[v] != value[v]]
    if wrong:
        shown = "/".join(tree.path(wrong[0]))
        return Check("additivity", False, f"{shown} is not the sum of its children")
    return Check("additivity", True, f"all {inner.size} inner nodes are the sums of their children")


def _bounds(contents: Contents) -> Check:
    if not contents.plan.invariants.nonnegative:
        return Check("bounds", True, "the plan asks for none")
    below = np.flatnonzero(contents.value < 0)
    if below.size:
        shown = "/".join(contents.tree.path(int(below[0])))
        return Check("bounds", False, f"{below.size} values are negative, the first at {shown}")
    return Check("bounds", True, "no value is negative")


_OF_CONTENTS: tuple[Callable[[Contents], Check], ...] = (
    _same,
    _leaves,
    _integers,
    _additive,
    _bounds,
)


def _claims(contents: Contents, ledger: str | Path | None) -> Iterator[Check]:
    certificate, plan = contents.certificate, contents.plan
    try:
        model = contents.model
        stated, drawn = certificate.guarantee, certificate.drawn
        found = claim(model, stated.sampler_error)
        mechanism = contents.mechanism
        least, route = mechanism.error_bound, mechanism.explain()
        full = specify(model, found)
    except CongenialError as error:
        yield Check("guarantee", False, f"none follows from the plan: {error}")
        return
    author = certificate.author
    yield compare("noise", "the scale of every level", level_noise(model), certificate.levels)
    yield compare(
        "guarantee",
        "epsilon, delta, gamma and what they cover",
        msgspec.structs.replace(as_claim(found), unprotected=()),
        msgspec.structs.replace(stated, unprotected=()),
        author,
    )
    yield compare(
        "unprotected",
        "the list of what is not protected",
        {"unprotected": found.unprotected},
        {"unprotected": stated.unprotected},
        author,
    )
    for part, (name, what) in PARTS.items():
        told = getattr(certificate.specification, part)
        yield compare(name, what, getattr(full, part), told, author)
    kept = found.epsilon <= plan.privacy.epsilon * (1.0 + TOLERANCE)
    told = f"epsilon {found.epsilon:.6g} of the {plan.privacy.epsilon:.6g} that the plan allows"
    if plan.privacy.delta is not None:
        kept = kept and found.delta <= plan.privacy.delta
        told += f", delta {found.delta:.6g} of its {plan.privacy.delta:.6g}"
    yield Check("budget", kept, told)
    exact = drawn.numerical_error == stated.sampler_error
    exact = exact and least * (1.0 - TOLERANCE) <= stated.sampler_error
    yield Check(
        "numerical error",
        exact and drawn.method == plan.method.name,
        f"{plan.method.name}, within {stated.sampler_error:.1e} of its law"
        if exact
        else f"the certificate states {drawn.numerical_error:.1e} and {stated.sampler_error:.1e}; "
        f"both must be the same, and at least {least:.1e}",
    )
    yield _route(route, drawn.route, author)
    debited = certificate.ledger
    if debited is not None or plan.privacy.ledger is not None:
        kept, told = check_debit(certificate)
        if kept and debited is not None:
            kept, state = look_up(
                ledger,
                neighbours=found.neighbours,
                made=certificate.made,
                **msgspec.structs.asdict(debited),
            )
            told = f"{told}; {state}"
        yield Check("ledger", kept, told)
    yield _sentence(certificate, found)
    yield compare(
        "rule",
        "the rule that leaves rows out",
        {"rule": plan.data.where, "rows": ROWS_NOT_SHOWN},
        {"rule": certificate.left_out.rule, "rows": certificate.left_out.rows},
        author,
    )


def _route(found: str, stated: str, author: str) -> Check:
    name, what = "route", "how the release was drawn"
    if same_words(found, stated):
        return Check(name, True, f"{what}: as it follows from the plan")
    # each begins with its kind
    alike = found.partition(":")[0] == stated.partition(":")[0]
    if author != __version__ and alike and same_numbers(found, without_costs(stated)):
        return otherwise_worded(name, what, "", author)
    return Check(name, False, f"{what}: not the one that follows from the plan")


def _sentence(certificate: Certificate, found: Guarantee) -> Check:
    name, what, stated = "sentence", "the guarantee in words", certificate.sentence
    simulated = certificate.simulation is not None
    check = compare(
        name,
        what,
        {"sentence": sentence(found, simulated=simulated)},
        {"sentence": stated},
        certificate.author,
    )
    # of this version the list is compared word for word
    if certificate.author != __version__ and not (
        stated.startswith(STAMP) == simulated
        and begins_with(stated, f"{found.epsilon:.6g}", f"{found.delta:.2g}")
        and all(entry in stated for entry in certificate.guarantee.unprotected)
    ):
        told = "epsilon and delta, in this order, what is not protected, or the stamp is missing"
        return Check(name, False, f"{what}: {told}")
    return check


def _simulation(place: Path, contents: Contents) -> Check:
    certificate = contents.certificate
    marker = place / files.MARKER
    if certificate.simulation is None:
        clean = certificate.stamp is None and not marker.exists()
        clean &= certificate.drawn.randomness == "operating system"
        return Check(
            "simulation",
            clean,
            "drawn from the operating system's entropy"
            if clean
            else "some parts say that this is a simulation and the certificate does not",
        )
    shown = [contents.parquet]
    if contents.measurements is not None:
        shown.append(contents.measurements[1])
    stamped = (
        certificate.stamp == STAMP
        and certificate.drawn.randomness == "seeded"
        and marker.is_file()
        and marker.read_bytes() == files.MARKER_TEXT.encode()
        and all(set(table.column("note")) == {STAMP} for table in shown)
    )
    if stamped and certificate.simulation.with_truth:
        pinned = contents.model.resolved.pinned
        truth = np.array(contents.parquet.column("truth"), dtype=np.int64)
        if not (truth[pinned] == contents.value[pinned]).all():
            return Check("simulation", False, "a count to be published exactly is not its truth")
        if truth.min() < 0 or not contents.tree.is_consistent(truth):
            return Check("simulation", False, "the true counts do not add up, or one is negative")
    return Check(
        "simulation",
        stamped,
        f"{STAMP}, and every part says so"
        if stamped
        else "a part of this simulation lacks its stamp",
    )
