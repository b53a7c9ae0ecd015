"""Check the files, numbers and claims of a release, from its directory alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import cast

import msgspec
import numpy as np

from congenial import __version__
from congenial.domain.workload import Workload
from congenial.errors import CongenialError, PlanError, ReleaseError
from congenial.imaging.following import follows
from congenial.imaging.top_down import TopDown
from congenial.imaging.update import Imaged
from congenial.inference.best_table import GAP, REFUSED, BestTable
from congenial.inference.splits.empirical_bayes import LevelSplits
from congenial.ledger.lookup import CLOCKS_DIFFER, beside, look_up
from congenial.plan.cross_table import comparison
from congenial.plan.plan import Plan, bounds_by_node
from congenial.randomness import seeded
from congenial.releases import directory as files
from congenial.releases.accuracy import ByPosterior, margins
from congenial.releases.certificate import (
    Certificate,
    check_debit,
    plan_digest,
    read_certificate,
    stated_plan,
)
from congenial.releases.file_table import FileTable, different
from congenial.releases.format_1 import FORMAT_1
from congenial.releases.intervals import Intervals, as_likely, intervals, state
from congenial.releases.measurements import measurement_columns
from congenial.releases.model import Model, claim
from congenial.releases.reading import Release, read_files
from congenial.releases.sentences import unprotected_texts
from congenial.releases.specification import (
    PARTS,
    PARTS_OF_GUARANTEE,
    Claim,
    Specification,
    specify,
)
from congenial.types import IntArray
from congenial.verification.checks import TOLERANCE, Check, compare, judged
from congenial.wording import joined, show

# Seed for the ties that `verify` breaks when it repeats imaging.
_SEED = 0
# Largest relative difference between a stated prior and the fitted one. Rounding on another machine
# changes a fit by less than 1e-7.
_PRIOR = 1e-3


def verify(
    directory: str | Path,
    *,
    ledger: str | Path | None = None,
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
        for check in _checks(place, ledger):
            found.append(check)
            if notify is not None:
                notify(f"checked: {check.name}")
        return tuple(found)
    except OSError as error:
        raise ReleaseError(
            f"{place} cannot be read ({(error.strerror or 'unreadable').lower()}); make its files "
            "readable."
        ) from error


def _checks(place: Path, ledger: str | Path | None) -> Iterator[Check]:
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
        release = read_files(place, certificate, plan)
        rows = _compared(release, release.rows, files.CSV)
        of_measurements = None
        if release.measured is not None:
            of_measurements = _compared(release, release.measured, files.MEASUREMENTS_CSV)
    except ReleaseError as error:
        yield Check("table", False, str(error))
        return
    yield Check("table", True, _listed(release))
    differ = "the two files have different rows, or a value that is not an integer"
    yield judged("CSV and Parquet", rows.same, "both files have the same rows", differ)
    yield _leaves(release)
    others = f"{rows.not_integers} values of the CSV file are not integers"
    yield judged("integers", not rows.not_integers, "every value is an integer", others)
    yield _additive(release)
    yield _bounds(release)
    yield _measurement_files(place, release)
    try:
        least = release.mechanism.error_bound
        found = specify(release.model, claim(release.model, certificate.guarantee.numerical_error))
    except CongenialError as error:
        yield Check("guarantee", False, f"none follows from the plan: {error}")
        return
    yield from _claims(certificate, found)
    yield _budget(plan, found.guarantee)
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
    yield from _measurements(release, of_measurements)
    yield check_intervals(release)
    yield from (*_keyed(certificate), _simulation(place, release))


def _listed(release: Release) -> str:
    """Say what a release counts, whose rows were compared when it was read."""
    if not release.plan.counted_tables:
        return f"{len(release.domain)} nodes, each listed once and under its parent"
    return f"{len(release.domain)} counts, each listed once: the plan's tables at its places"


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


def _compared(release: Release, table: FileTable, name: str) -> files.CsvRows:
    plan = release.plan
    names, readings = plan.place_names, plan.reading_columns
    return files.compare_csv(
        release.directory / name, table, names, release.domain, readings=readings
    )


def _leaves(release: Release) -> Check:
    tree = release.domain
    if isinstance(tree, Workload):  # its rows were compared with the plan's when they were read
        return Check("levels", True, "every place reaches the deepest level")
    short = int((tree.level[tree.leaves] != len(release.plan.level_names) - 1).sum())
    missing = f"{short} branches end before the deepest level, so rows are missing"
    return judged("levels", short == 0, "every branch reaches the deepest level", missing)


def _additive(release: Release) -> Check:
    domain, value = release.domain, release.values
    sums = domain.sums
    # values and sums of more parts than fit into 64 bits are split into two parts of 32
    halves = np.stack([value >> 32, value & (2**32 - 1)])
    below = np.zeros((2, len(domain)), dtype=np.int64)
    for half, out in zip(halves, below, strict=True):
        np.add.at(out, sums.totals[sums.sum_of_part], half[sums.parts])
    below[0] += below[1] >> 32
    below[1] &= 2**32 - 1
    wrong = sums.totals[(below != halves)[:, sums.totals].any(axis=0)]
    kind, parts = (
        ("margins", "parts") if isinstance(domain, Workload) else ("inner nodes", "children")
    )
    if wrong.size:
        shown = "/".join(domain.path(int(wrong[0])))
        return Check("additivity", False, f"{shown} is not the sum of its {parts}")
    count = np.unique(sums.totals).size
    return Check("additivity", True, f"all {count} {kind} are the sums of their {parts}")


def _bounds(release: Release) -> Check:
    """Compare the counts with the plan's bounds, and with each other where it compares tables."""
    given = release.plan.invariants
    if not given.bounded:
        return Check("bounds", True, "the plan asks for none")
    try:
        low, high = bounds_by_node(release.plan, release.domain)
        smaller = _comparisons(release)
    except PlanError as error:
        return Check("bounds", False, str(error))
    values = release.values
    for wrong, what in (
        (np.flatnonzero((values < 0) & given.nonnegative), "values are negative"),
        (np.flatnonzero((values < low) | (values > high)), "values break a bound of the plan"),
        (smaller, "values are below those of another table"),
    ):
        if wrong.size:
            shown = "/".join(release.domain.path(int(wrong[0])))
            return Check("bounds", False, f"{wrong.size} {what}, the first at {shown}")
    kept = [
        *["no value is negative"] * given.nonnegative,
        *["every value is within the plan's bounds"] * bool(given.at_least or given.at_most),
        *["no count is below the count of another table that it must reach"] * bool(given.as_many),
    ]
    return Check("bounds", True, joined(kept))


def _comparisons(release: Release) -> IntArray:
    """Return the counts that are below those of another table, where the plan forbids it."""
    plan, domain, wrong = release.plan, release.domain, [np.zeros(0, dtype=np.int64)]
    if not isinstance(domain, Workload):
        return wrong[0]
    for text in plan.invariants.as_many:
        sides = comparison(text)
        more, fewer = (_counts_of(domain, plan.place_names[-1], *side) for side in sides)
        counts = np.append(release.values, 0)  # an impossible cell is entry -1 and counts 0
        wrong.append(more[counts[more] < counts[fewer]])
    return np.concatenate(wrong)


def _counts_of(domain: Workload, level: str, name: str, values: Mapping[str, str]) -> IntArray:
    """Entries of a table's counts of some values at every place of a level; -1 for none."""
    block = domain.block(tuple(values), level, name)
    labels = [
        dict(zip(block.margin, block.values(k), strict=True)) for k in range(block.ids.shape[1])
    ]
    return block.ids[:, labels.index(dict(values))]


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


def _measurement_files(place: Path, release: Release) -> Check:
    """Check that the directory has measurements if, and only if, the plan publishes them."""
    wanted = release.plan.release.measurements
    if any((place / name).exists() != wanted for name in files.MEASUREMENTS):
        text = "are missing" if wanted else "are there, but the plan publishes none"
        return Check("measurement files", False, f"measurements {text}")
    text = "the files that the plan publishes are there, and no others"
    return Check("measurement files", True, text)


def _measurements(release: Release, rows: files.CsvRows | None) -> Iterator[Check]:
    """Check the measurements, and that the table follows from them."""
    fitted = release.certificate.prior is not None or isinstance(release.mechanism, BestTable)
    if release.measured is None or rows is None:
        if fitted:
            yield _prior(release)
        return
    name, model, table = "measurements", release.model, release.measured
    if not rows.same:
        yield Check(name, False, "the CSV and the Parquet file have different rows")
        return
    y, pinned = _measured(table), model.resolved.pinned
    own = measurement_columns(model.mechanism, pinned, y)
    if any(different(column, table[name]).any() for name, column in own.items()):
        text = "a measurement is missing, or its noise does not follow from the plan"
        yield Check(name, False, text)
        return
    if not (y[pinned] == release.values[pinned]).all():
        yield Check(name, False, "a count published exactly differs from the table")
        return
    yield Check(name, True, "every measurement states the noise that follows from the plan")
    if fitted:
        yield _prior(release, y)
    yield _follows(release, y)


def _follows(release: Release, y: IntArray) -> Check:
    name, value = "table from measurements", release.values
    text, other = "the method makes this table, apart from ties broken at random", ""
    try:
        mechanism = release.under_prior
        if isinstance(mechanism, BestTable):
            follow = mechanism.follows(y, value, seeded(_SEED))
            text = f"no table has a smaller expected error e (tolerance: {GAP:.0e} times (1 + e))"
            other = " with a smaller expected error"
        else:
            follow = follows(cast("Imaged | TopDown", mechanism), y, value, seeded(_SEED))
    except CongenialError as error:
        return Check(name, False, f"no table follows from the measurements: {error}")
    return judged(name, follow, text, f"the method makes another table{other}")


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
        cast(BestTable, release.mechanism).move(y, seeded(_SEED))
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
    name, certificate, model = "intervals", release.certificate, release.model
    try:
        known = margins(model, release.mechanism)
    except CongenialError as error:
        return Check(name, False, f"none follow from the plan: {error}")
    measured = None if release.measured is None else _measured(release.measured)
    found = intervals(model, release.mechanism, known, release.values, measured)
    source = found.basis.source
    if not _same_intervals(model, found, release):
        text = "an interval does not follow from the published numbers"
        other = certificate.author != __version__
        if other and source in ("inversion", "posterior", "simulation"):
            made = show(certificate.author)
            text += f", unless congenial {made}, which made it, computes it differently"
        return Check(name, False, text)
    if not compare(name, "", state(model, known, found), certificate.accuracy).passed:
        return Check(name, False, "the certificate describes other intervals")
    return Check(name, True, f"every interval follows from the published numbers ({source})")


def _same_intervals(model: Model, found: Intervals, release: Release) -> bool:
    """Whether a table has the intervals found, except for ties of a posterior."""
    off = {
        name: np.flatnonzero(different(column, release.rows[name]))
        for name, column in found.columns.items()
    }
    at = np.union1d(off.pop("lower"), off.pop("upper"))
    if any(nodes.size for nodes in off.values()):
        return False
    if not at.size or not isinstance(found.basis, ByPosterior):
        return not at.size
    ends = [release.rows.numbers(name) for name in ("lower", "upper")]
    free = model.domain.is_leaf & ~model.determined
    if not free[at].all() or not all(end.known[at].all() for end in ends):
        return False
    low, high = (np.asarray(end.values[at], dtype=np.int64) for end in ends)
    return as_likely(model, release.values, at, (low, high), (found.lower[at], found.upper[at]))


def _measured(table: FileTable) -> IntArray:
    """Measurements of all counts, 0 for a count without one."""
    return np.asarray(table.numbers("measurement").values, dtype=np.int64)


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


def _simulation(place: Path, release: Release) -> Check:
    certificate = release.certificate
    marker = place / files.MARKER
    if certificate.simulation is None:
        text = "the certificate states none, which no file can prove"
        false = "a file says that this is a simulation, but the certificate does not"
        return judged("simulation", not marker.exists(), text, false)
    shown = [release.rows] + ([] if release.measured is None else [release.measured])
    stamped = (
        marker.is_file()
        and marker.read_bytes() == files.MARKER_TEXT.encode()
        and all(set(table.texts(files.NOTE).objects()) == {files.STAMP} for table in shown)
    )
    if stamped and certificate.simulation.with_truth:
        pinned = release.model.resolved.pinned
        truth = release.rows.numbers("truth").values
        if not (truth[pinned] == release.values[pinned]).all():
            return Check("simulation", False, "an exact count differs from its true count")
        if truth.min() < 0 or not release.domain.is_consistent(truth):
            return Check("simulation", False, "the true counts do not add up, or one is negative")
    text = f"{files.STAMP}; every part of the release says so"
    return judged("simulation", stamped, text, "a part of this simulation lacks its stamp")
