"""Make a release: count, draw, and write the directory whole or not at all."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Self, cast

import numpy as np

from congenial.accounting.amounts import amount_of
from congenial.accounting.guarantee import Guarantee
from congenial.accounting.mechanism import Certified, Measuring
from congenial.data.counts import JointSource, RowSource, check_columns, open_source
from congenial.data.row_weights import unweighted
from congenial.data.spelling import odd_names
from congenial.domain.workers import Here, Workers
from congenial.errors import ArgumentError, InvariantError, LedgerError, ReleaseError
from congenial.imaging.top_down import TopDown
from congenial.invariants.feasibility.feasible import check_pinned
from congenial.invariants.resolved import checked_draws
from congenial.ledger.debits import read_ledger, reserve, settle
from congenial.ledger.records import Debit, dataset_of
from congenial.plan.cut import cut_at
from congenial.plan.fields import refuse
from congenial.plan.plan import Plan, checked_plan
from congenial.randomness import Randomness, secure, seeded
from congenial.releases import directory as files
from congenial.releases.accuracy import Margins, margins
from congenial.releases.atomic_directory import check_room, write_aside
from congenial.releases.certificate import Certificate, certify, write_certificate
from congenial.releases.intervals import Intervals, intervals, state
from congenial.releases.making.order import Order, Written
from congenial.releases.making.part_files import RowsHere, write_parts
from congenial.releases.making.spark_parts import rows_in_spark
from congenial.releases.measurements import measurement_columns, stated_prior
from congenial.releases.model import Model, build_model, choose_method, claim
from congenial.releases.shared_facts import hash_of_shared_facts
from congenial.releases.specification import LevelAlpha, Simulation
from congenial.types import IntArray
from congenial.wording import show

if TYPE_CHECKING:
    from congenial.inference.best_table import BestTable

Notify = Callable[[str], None]

log = logging.getLogger("congenial.releases.making")

_BROKEN = (
    "the rows do not satisfy the bounds of the plan, and conditioning needs rows that do; relax "
    'them, or give method.name = "topdown", whose table satisfies them whatever the rows. A debit '
    "in a ledger stays, because this refusal says something about the rows."
)


@dataclass(frozen=True)
class ReleaseResult:
    """A release that has been written.

    Attributes
    ----------
    nodes : int
        Number of released counts.
    debit : Debit or None
        The debit in the plan's ledger; None if the plan names none, and for a simulation.
    settled : bool
        Whether the ledger marks the release as written. Its entry counts in either case.
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
    parts: str | None = None,
    on: object | None = None,
    notify: Notify | None = None,
) -> ReleaseResult:
    """Count the rows of a plan, draw a private release and write it to a directory.

    Each release of the same rows spends the plan's epsilon again.

    Parameters
    ----------
    plan : Plan
        From `congenial.read_plan` or `congenial.parse_plan`.
    out : path
        Directory to make; its parent exists. It appears whole or not at all.
    base : path
        Directory from which the plan's relative paths start.
    frame : dataframe, optional
        Rows to count instead of the plan's source: pandas, polars, Arrow, or what narwhals knows.
        Those of PySpark, Ibis and DuckDB are counted where they lie.
    simulate : int, optional
        Seed of a reproducible draw, which protects nobody and is stamped so.
    with_truth : bool
        Write the confidential counts beside the released ones; in simulations only.
    overwrite : bool
        Replace a release that is already there.
    parts : str, optional
        A level of the plan. What lies below each of its nodes is counted, drawn and written by
        itself, so that memory holds one such part, or some small ones, at a time. The release has
        the same law, guarantee and files. For nonnegative counts; a conditioned table then has no
        intervals.
    on : pyspark.sql.SparkSession or int, optional
        Count and draw the parts on the workers of this session. The rows are a `frame` of Spark, or
        Parquet files. All workers see the parent of `out` and the plan's files, and have this
        version of congenial. Or a number of processes of this machine that move the noisy counts of
        parts, by imaging and by the posterior; each holds one part in memory.
    notify : callable, optional
        Called with the name of each step as it begins.

    Returns
    -------
    ReleaseResult
        The directory, the certificate and what the ledger was debited; no count.

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
    Faults of the plan and of counts published exactly are refused before the debit.
    If other counts break an invariant, the release is refused after the debit, because that refusal
    is an answer about confidential data. It names no count and no node.

    Examples
    --------
    A simulation, which protects nobody; leave `simulate` out for a real release:

    >>> import congenial as cg
    >>> made = cg.release(cg.read_plan("plan.toml"), out="trial", base=".", simulate=1)
    >>> cg.read_release("trial").values.size == made.nodes
    True
    """
    checked_plan(plan)
    randomness = _randomness(simulate, with_truth)
    simulation = None if simulate is None else Simulation(int(simulate), with_truth)
    say, base, out = notify or (lambda _: None), Path(base), Path(out)
    if on is not None and parts is None:
        raise ArgumentError(
            "`on` says who works on the parts of a release; give `parts` a level of the plan, too."
        )
    cut = None if parts is None else cut_at(plan, parts)
    ledger = _ledger(plan, base) if simulation is None else None
    with (
        _Debited() as debited,
        _workers(on, plan, say) as workers,
        # `overwrite` is no remedy for a plan whose columns are wrong
        write_aside(out, overwrite, partial(check_columns, plan, base=base, frame=frame)) as place,
    ):
        reserved = partial(_debit, debited, ledger, base, out)
        order = Order(
            place, base, frame, randomness, simulation, with_truth, reserved, say, workers
        )
        if cut is None:
            written = _write_at_once(plan, order)
        elif on is None or isinstance(on, int):
            written = write_parts(cut, order, RowsHere(cut, order))
        else:
            with rows_in_spark(cut, order, on) as rows:
                written = write_parts(cut, order, rows)
        write_certificate(place / files.CERTIFICATE, written.certificate)
    log.info("released %d counts", written.nodes)
    made, debit = written.certificate, written.debit
    settled, odd = _settled(ledger, debit), written.odd_names
    return ReleaseResult(out, written.nodes, made, debit, settled=settled, odd_names=odd)


def _workers(on: object | None, plan: Plan, notify: Notify) -> AbstractContextManager[Workers]:
    """Return the processes that work on parts; refuse some that have nothing to do."""
    if not isinstance(on, int):
        return nullcontext(Here(notify))
    if plan.method.name not in ("imaging", "posterior"):
        refuse(
            "method.name",
            f"is {plan.method.name!r}, whose parts are drawn one after another",
            "leave `on` out, or give 'imaging' or 'posterior'",
        )
    from congenial.domain.processes import started

    return started(on, notify)


def _write_at_once(plan: Plan, order: Order) -> Written:
    """Count, draw and write a release as a whole."""
    with open_source(plan, base=order.base, frame=order.frame) as source:
        model, counts = _counted(source, order.notify)
    order.notify("preparing the sampler")
    mechanism = choose_method(model)
    guarantee, error_margins = _refuse_before_noise(model, mechanism, counts)
    check_room(order.place, len(model.domain))
    debit = order.reserve(model, guarantee)
    order.notify("drawing")
    drawn = _draw(model, mechanism, counts, order.randomness)
    found = intervals(model, mechanism, error_margins, drawn.counts, drawn.measurements)
    order.notify("writing")
    digests = _write_tables(order, model, drawn, found, counts)
    stated = state(model, error_margins, found)
    certificate = certify(model, guarantee, digests, stated, order.simulation, debit, drawn.prior)
    return Written(certificate, debit, len(model.domain), odd_names(model.domain))


@dataclass(frozen=True, eq=False)
class DrawnCounts:
    """One draw: the released counts, and the measurements that they follow from."""

    counts: IntArray  # shape (n,)
    measurements: IntArray | None  # shape (n,), or None if the plan does not publish them.
    # The prior that was fitted to the measurements, for methods that have one.
    prior: tuple[LevelAlpha, ...] | None = None


def _ledger(plan: Plan, base: Path) -> Path | None:
    """Path of the plan's ledger, which is tried before the rows are counted."""
    if plan.privacy.ledger is None:
        return None
    path = base / plan.privacy.ledger
    read_ledger(path, neighbours=plan.privacy.neighbours)
    return path


class _Debited:
    """The debit of a release; whatever ends the release before it is written gets a note of it."""

    made: Debit | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is not None and self.made is not None:
            error.add_note(
                f"{str(self.made.cost).capitalize()} stay debited from the budget of "
                f"{self.made.label!r}, and another try is debited again."
            )


def _debit(
    debited: _Debited,
    ledger: Path | None,
    base: Path,
    out: Path,
    model: Model,
    guarantee: Guarantee,
) -> Debit | None:
    """Debit a release; nothing that could fail comes between the debit and the draw."""
    if ledger is None:
        return None
    debited.made = reserve(
        ledger,
        dataset_of(model.plan, base),
        release=out.name,
        cost=amount_of(guarantee.epsilon, guarantee.delta),
        neighbours=guarantee.neighbours,
        fixes=hash_of_shared_facts(model, base),
    )
    return debited.made


def _settled(ledger: Path | None, debit: Debit | None) -> bool:
    """Mark the entry as spent; if that fails, only warn, because the release exists."""
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
                "`with_truth` writes confidential counts, which only a simulation may do; give "
                "`simulate` a seed as well, or leave `with_truth` out."
            )
        return secure()
    if isinstance(simulate, bool) or not isinstance(simulate, int) or simulate < 0:
        raise ReleaseError(f"`simulate` is {show(simulate)}; give a whole number from 0.")
    return seeded(simulate)


def _counted(source: RowSource | JointSource, notify: Notify) -> tuple[Model, IntArray]:
    """Model and confidential counts, shape (n,); mistakes of the plan are found before counting."""
    public = source.plan.hierarchy.domain != "data"
    notify("reading the domain" if public else "counting rows")
    for part in source.parts:
        for remark in unweighted(part.plan, part.known):
            log.warning("%s", remark)
    model = build_model(source.plan, source.domain)
    if public:
        notify("counting rows")
    counts = source.counted.counts
    if source.plan.data.where is not None:
        log.info("rows excluded by rule (%s): their number is confidential", source.plan.data.where)
    return model, counts


def _refuse_before_noise(
    model: Model, mechanism: Certified, counts: IntArray
) -> tuple[Guarantee, Margins]:
    """Refuse all that can be refused before anything is spent; the guarantee is known by then."""
    guarantee = claim(model, mechanism.error_bound)
    check_pinned(model.resolved, counts, model.invariant, whole=True, domain=model.domain)
    if isinstance(mechanism, TopDown):
        mechanism.check_exact(counts)
    return guarantee, margins(model, mechanism)


def _draw(
    model: Model, mechanism: Certified, counts: IntArray, randomness: Randomness
) -> DrawnCounts:
    """Draw a release, and hold it back if it breaks an invariant."""
    plan = model.plan
    if plan.method.name == "conditioning":
        try:
            values = np.asarray(mechanism.sample(counts, rng=randomness), dtype=np.int64)
        except InvariantError as error:
            raise InvariantError(_BROKEN) from error
        drawn = DrawnCounts(values, None)
    else:
        image = cast(Measuring, mechanism)
        measured = image.measure(counts, rng=randomness)
        if plan.method.name == "posterior":
            values, prior = _best_table(model, cast("BestTable", image), measured, randomness)
        else:
            values, prior = image.apply(measured, randomness), None
        drawn = DrawnCounts(values, measured if plan.release.measurements else None, prior)
    checked_draws(model.resolved, drawn.counts, counts)
    return drawn


def _best_table(
    model: Model, best: BestTable, measured: IntArray, rng: Randomness
) -> tuple[IntArray, tuple[LevelAlpha, ...] | None]:
    """Return the table of least expected error, and the prior that was fitted to measurements.

    Where the posterior cannot be worked out, the table is the closest one, and there is no prior.
    """
    from congenial.inference.best_table import REFUSED

    try:
        fitted = best.fitted(measured)
        table = fitted.apply(measured, rng)
    except REFUSED:
        return np.asarray(best.projection.apply(measured, rng), dtype=np.int64), None
    if fitted.splits is None:
        raise AssertionError("a fitted mechanism has splits")
    return table, stated_prior(model.plan, fitted.splits.alpha, fitted.splits.spread)


def _write_tables(
    order: Order, model: Model, drawn: DrawnCounts, found: Intervals, counts: IntArray
) -> dict[str, str]:
    """Write every file but the certificate; return their digests, by name."""
    plan, place, written = model.plan, order.place, [*files.TABLE]
    readings, stamped = plan.reading_columns, order.simulation is not None
    files.write_tables(
        place,
        plan.place_names,
        model.domain,
        drawn.counts,
        readings=readings,
        intervals=found.columns,
        truth=counts if order.with_truth else None,
        stamped=stamped,
    )
    if drawn.measurements is not None:
        files.write_columns(
            place,
            files.MEASUREMENTS,
            plan.place_names,
            model.domain,
            measurement_columns(model.mechanism, model.resolved.pinned, drawn.measurements),
            readings=readings,
            stamped=stamped,
        )
        written += files.MEASUREMENTS
    if stamped:
        written.append(files.write_marker(place))
    return {name: files.sha256(place / name) for name in written}
