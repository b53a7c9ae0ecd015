"""Make a release: count, draw, and write the directory whole or not at all."""

from __future__ import annotations

import ctypes
import logging
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import duckdb
import numpy as np

from congenial.accounting.amounts import amount_of
from congenial.data.counts import (
    CountedTree,
    build_tree,
    count,
    count_frame,
)
from congenial.data.spelling import odd_names
from congenial.domain.tree import Tree
from congenial.errors import LedgerError, ReleaseError
from congenial.invariants.feasibility.feasible import check_pinned
from congenial.invariants.resolved import checked_draws
from congenial.ledger.debits import read_ledger, reserve, settle
from congenial.ledger.records import Debit, dataset_of
from congenial.plan.plan import Plan
from congenial.plan.signals import held
from congenial.randomness import Randomness, secure, seeded
from congenial.releases import directory as files
from congenial.releases.accuracy import Margins, margins
from congenial.releases.certificate import (
    Certificate,
    Simulation,
    certify,
    write_certificate,
)
from congenial.releases.fixed import fixed
from congenial.releases.intervals import intervals, state
from congenial.releases.measurements import measurement_rows
from congenial.releases.model import Model, build_model
from congenial.types import IntArray

Notify = Callable[[str], None]

log = logging.getLogger("congenial.releases.making")

# Linux: two directories change names in one step.
_AT_FDCWD = -100
_RENAME_EXCHANGE = 2


@dataclass(frozen=True)
class Released:
    """A release that has been written.

    Attributes
    ----------
    directory : Path
    nodes : int
        Number of released counts.
    certificate : Certificate
    debit : Debit or None
        What the plan's ledger has taken down for it; None without one, and for a simulation.
    settled : bool
        Whether the ledger knows that the release is on disk; if not, its entry counts all the same.
    odd_names : tuple of str
        Sentences about names that could be taken for others.
    """

    directory: Path
    nodes: int
    certificate: Certificate
    debit: Debit | None = None
    settled: bool = True
    odd_names: tuple[str, ...] = ()

    @property
    def simulated(self) -> bool:
        """Whether it was drawn from a seed and protects nobody."""
        return self.certificate.simulation is not None


def release(
    plan: Plan,
    out: str | Path,
    *,
    base: str | Path = ".",
    frame: object | None = None,
    simulate: int | None = None,
    with_truth: bool = False,
    overwrite: bool = False,
    notify: Notify | None = None,
) -> Released:
    """Count the rows of a plan, draw a private release and write it to a directory.

    Parameters
    ----------
    plan : Plan
    out : path
        Directory to make; its parent exists. It appears whole or not at all.
    base : path
        Directory from which the plan's relative paths start.
    frame : dataframe, optional
        Rows to count instead of the plan's source: pandas, polars, Arrow, or what narwhals knows.
    simulate : int, optional
        Seed of a reproducible draw, which protects nobody and is stamped so.
    with_truth : bool
        Write the confidential counts beside the released ones; in simulations only.
    overwrite : bool
        Replace a release that is already there.
    notify : callable, optional
        Called with the name of each step as it begins.

    Returns
    -------
    Released

    Raises
    ------
    PlanError, DataError, StructureError
        If the plan and the data do not fit.
    PrivacyError, InvariantError
        If no guarantee can be given or the invariants cannot be met.
    LedgerError, BudgetError
        If the plan's ledger cannot be used or does not cover the release.
    ReleaseError
        If the directory cannot be written.

    Notes
    -----
    The debit is on disk before any noise is drawn. A release that fails after that stays debited.
    What can be told from the plan and from counts published exactly is refused before the debit.
    Other counts that break an invariant are noticed only after it: that refusal is an answer about
    confidential data, and no count or node is named.
    """
    source = _randomness(simulate, with_truth)
    say = notify or _silent
    ledger = _ledger(plan, Path(base)) if simulate is None else None
    with _aside(Path(out), overwrite) as place:
        model, counts = _counted(plan, Path(base), frame, say)
        say("preparing the sampler")
        engine, _ = model.engine, model.guarantee  # all that can be refused is, before any noise
        check_pinned(model.need, counts, model.invariant, whole=True, domain=model.tree)
        reach = margins(model)
        debit = _debit(ledger, model, Path(base), Path(out))
        say("drawing")
        measured = None if model.measuring is None else model.measuring.measure(counts, rng=source)
        if model.measuring is None or measured is None:
            drawn = np.asarray(engine.sample(counts, rng=source), dtype=np.int64)
        else:
            drawn = model.measuring.apply(measured, source)
        checked_draws(model.need, drawn, counts)
        say("writing")
        simulation = None if simulate is None else Simulation(int(simulate), with_truth)
        certificate = _write(
            place,
            model,
            reach,
            drawn,
            measured,
            counts if with_truth else None,
            simulation=simulation,
            debit=debit,
        )
    log.info("released %d counts", len(model.tree))
    settled, odd = _settled(ledger, debit), odd_names(model.tree)
    return Released(Path(out), len(model.tree), certificate, debit, settled=settled, odd_names=odd)


def _ledger(plan: Plan, base: Path) -> Path | None:
    """Path of the plan's ledger, which is tried before the rows are counted."""
    if plan.privacy.ledger is None:
        return None
    path = base / plan.privacy.ledger
    read_ledger(path, neighbours=plan.privacy.neighbours)
    return path


def _debit(ledger: Path | None, model: Model, base: Path, out: Path) -> Debit | None:
    """Debit a release; nothing that could fail stands between this and the noise."""
    if ledger is None:
        return None
    guarantee = model.guarantee
    return reserve(
        ledger,
        dataset_of(model.plan, base),
        release=out.name,
        cost=amount_of(guarantee.epsilon, guarantee.delta),
        neighbours=guarantee.neighbours,
        fixes=fixed(model),
    )


def _settled(ledger: Path | None, debit: Debit | None) -> bool:
    """Tell the ledger that the release is there; a failure must not look like a failed release."""
    if ledger is None or debit is None:
        return True
    try:
        settle(ledger, debit.entry)
    except LedgerError as error:
        log.warning("the release is written and stays debited: %s", error)
        return False
    return True


def _randomness(simulate: int | None, with_truth: bool) -> Randomness:
    if simulate is None:
        if with_truth:
            raise ReleaseError(
                "with_truth writes confidential counts, which only a simulation may do; give a "
                "seed to simulate as well, or leave with_truth out."
            )
        return secure()
    return seeded(simulate)


def _silent(_: str) -> None:
    pass


def _counted(plan: Plan, base: Path, frame: object | None, say: Notify) -> tuple[Model, IntArray]:
    """Model and confidential counts, shape (n,); mistakes of the plan are found before counting."""
    model: Model | None = None
    if plan.hierarchy.domain != "data":
        say("reading the domain")
        model = build_model(plan, build_tree(plan, base=base))
    say("counting rows")
    counted = count(plan, base=base) if frame is None else count_frame(frame, plan, base=base)
    if plan.data.where is not None:
        log.info("rows excluded by rule (%s): number not shown", plan.data.where)
    if model is None:
        model = build_model(plan, counted.tree)
    return model, _in_order(counted, model.tree)


def _in_order(counted: CountedTree, tree: Tree) -> IntArray:
    same = np.array_equal(counted.tree.parents, tree.parents) and counted.tree.names == tree.names
    if not same:
        raise ReleaseError(
            "the domain changed while the rows were counted; make the release anew once its file "
            "is still."
        )
    return np.asarray(counted.counts, dtype=np.int64)


def _write(
    place: Path,
    model: Model,
    reach: Margins,
    drawn: IntArray,
    measured: IntArray | None,
    truth: IntArray | None,
    *,
    simulation: Simulation | None,
    debit: Debit | None,
) -> Certificate:
    stamped, names = simulation is not None, model.plan.level_names
    # what is not published has no part in the intervals
    shown = measured if model.plan.release.measurements else None
    found = intervals(model, reach, drawn, shown)
    files.write_tables(
        place, names, model.tree, drawn, intervals=found.columns, truth=truth, stamped=stamped
    )
    written = [files.CSV, files.PARQUET]
    if shown is not None:
        columns = measurement_rows(model.mechanism, model.need.pinned, shown)
        files.write_measurements(place, names, model.tree, *columns, stamped=stamped)
        written += files.MEASUREMENTS
    if stamped:
        (place / files.MARKER).write_bytes(files.MARKER_TEXT.encode())
        written.append(files.MARKER)
    digests = {name: files.sha256(place / name) for name in written}
    accuracy = state(model, reach, found)
    certificate = certify(model, digests, accuracy, simulation=simulation, debit=debit)
    write_certificate(place / files.CERTIFICATE, certificate)
    return certificate


@contextmanager
def _aside(out: Path, overwrite: bool) -> Iterator[Path]:
    """Give a directory beside `out` that takes its place at the end, or vanishes on any failure.

    Raises
    ------
    ReleaseError
        If `out` may not be written, cannot be, or a file in it could not be.
    """
    _check_target(out, overwrite)
    place: Path | None = None
    try:
        with held():
            place = _make_beside(out)
        yield place
        _settle(place)
        _put(place, out)
        _force(out.absolute().parent)  # an entry is called spent only once the name is on disk
    except (OSError, duckdb.IOException) as error:
        reason = getattr(error, "strerror", None) or "input or output failed"
        raise ReleaseError(
            f"the release cannot be written to {out} ({reason.lower()}); give a directory that can "
            "be written, with room for it."
        ) from error
    finally:
        if place is not None:
            with held():
                shutil.rmtree(place, ignore_errors=True)


def _check_target(out: Path, overwrite: bool) -> None:
    if out.name in ("", ".."):
        raise ReleaseError(
            f"--out is {str(out)!r}, which is no new name; give one, such as "
            f"{str(out / 'release')!r}."
        )
    if not files.is_text(out):
        raise ReleaseError(
            f"--out is {str(out)!r}, and its path is not in UTF-8; give another --out."
        )
    try:
        if out.is_symlink() or (out.exists() and not out.is_dir()):
            raise ReleaseError(
                f"{out} is not a directory and stands where the release would go; give another "
                "--out."
            )
        if not out.parent.is_dir():
            told = "is not a directory" if os.path.lexists(out.parent) else "does not exist"
            raise ReleaseError(
                f"{out.parent} {told}, and the release would go into it; make it first, or give "
                "another --out."
            )
        found = sorted(entry.name for entry in out.iterdir()) if out.exists() else []
    except OSError as error:
        raise ReleaseError(
            f"{out} cannot be looked into ({(error.strerror or 'unreadable').lower()}); give "
            "another --out."
        ) from error
    if not found:
        return
    strange = [name for name in found if name not in files.ALL]
    if strange:
        raise ReleaseError(
            f"{str(out)!r} holds {strange[0]!r}, which is no part of a release; give a directory "
            "that does not exist yet."
        )
    if not overwrite:
        raise ReleaseError(
            f"{str(out)!r} holds a release; give --overwrite to replace it, or another --out."
        )


def _make_beside(out: Path) -> Path:
    # the name need not be secret: what is written into it is already private
    attempt = 0
    while True:
        # a name may have 255 bytes, and a sign four
        place = out.parent / f".{out.name[:50]}.{os.getpid()}.{attempt}.partial"
        try:
            place.mkdir()
        except FileExistsError:
            attempt += 1
        else:
            return place


def _settle(place: Path) -> None:
    """Force a directory and its files to the disk, so that the rename never shows empty files."""
    for path in (*place.iterdir(), place):
        _force(path)


def _force(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _put(place: Path, out: Path) -> None:
    """Let `place` take the name `out`; an older release there ends up under the name `place`."""
    if not out.exists() or not any(out.iterdir()):
        os.rename(place, out)
        return
    if _exchange(place, out):
        return
    old = place.with_suffix(".old")
    os.rename(out, old)
    moved = False
    try:
        os.rename(place, out)
        moved = True
    finally:
        if moved:
            shutil.rmtree(old, ignore_errors=True)
        else:
            os.rename(old, out)


def _exchange(one: Path, other: Path) -> bool:
    """Swap two names in one step where the system can; False where it cannot."""
    if not sys.platform.startswith("linux"):
        return False
    rename = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if rename is None:
        return False
    done: int = rename(_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other), _RENAME_EXCHANGE)
    return done == 0
