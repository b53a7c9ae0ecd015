"""Checks of the numbers of a release, or of some of its counts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

import msgspec
import numpy as np

from congenial.accounting.guarantee import Guarantee
from congenial.domain.tree import Tree
from congenial.domain.workload import Workload
from congenial.errors import CongenialError, PlanError
from congenial.imaging.following import follows
from congenial.imaging.top_down import TopDown
from congenial.imaging.update import Imaged
from congenial.plan.cross_table import comparison
from congenial.plan.plan import Plan, bounds_by_node
from congenial.randomness import seeded
from congenial.releases import directory as files
from congenial.releases.accuracy import ByPosterior
from congenial.releases.certificate import Certificate
from congenial.releases.file_table import FileTable, different
from congenial.releases.intervals import Intervals, as_likely
from congenial.releases.measurements import measurement_columns
from congenial.releases.model import Model
from congenial.releases.specification import Specification, specify, unnamed
from congenial.types import BoolArray, IntArray
from congenial.verification.checks import Check, judged

# Seed for the ties that `verify` breaks when it repeats imaging.
SEED = 0
# Names of checks.
MEASURED, FOLLOWS = "measurements", "table from measurements"
INTERVALS, SIMULATION = "intervals", "simulation"
# How intervals were computed, by the source of their margins.
_WAYS = {
    "law": "from the distribution of the noise",
    "simulation": "from simulated releases",
    "measurements": "from the noisy counts",
    "inversion": "by inversion: from all true counts that make them likely enough",
    "posterior": "from a fitted prior",
}


@dataclass(frozen=True, eq=False)
class Piece:
    """Counts that are checked together: all counts of a release, or some of them."""

    plan: Plan
    # The counts; of some below a level, a forest whose roots are nodes of that level.
    domain: Tree | Workload
    rows: FileTable
    measured: FileTable | None
    numbers: IntArray  # shape (n,): Number of each row in its file.
    own: BoolArray  # shape (n,): Whether a count is checked here; others only lie above these.
    deepest: int  # Level in the domain at which every branch must end.
    bounded: bool  # Whether the plan's bounds besides 0 are bounds of these counts.

    @property
    def values(self) -> IntArray:
        """Released counts, shape (n,)."""
        return np.asarray(self.rows.numbers("value").values, dtype=np.int64)

    @property
    def y(self) -> IntArray:
        """Measurements, shape (n,), 0 for a count without one."""
        return measurements_in(cast(FileTable, self.measured))

    def path(self, count: int) -> str:
        """Return the path of a count from the root of the release."""
        if isinstance(self.domain, Workload):
            return "/".join(self.domain.path(count))
        texts = (self.rows.texts(name) for name in self.plan.place_names)
        return "/".join(t.words[t.codes[count]] for t in texts if t.codes[count] >= 0)


def measurements_in(table: FileTable) -> IntArray:
    """Return the measurements of all counts, 0 for a count without one."""
    return np.asarray(table.numbers("measurement").values, dtype=np.int64)


@dataclass(frozen=True)
class Faults:
    """Counts that fail a check: their number, and the row and the path of the first one."""

    number: int = 0
    row: int = 0
    path: str = ""

    @classmethod
    def of(cls, piece: Piece, counts: IntArray) -> Faults:
        """Return the faults of some counts of a piece, the first of which is named."""
        if not counts.size:
            return cls()
        first = int(counts[0])
        return cls(int(counts.size), int(piece.numbers[first]), piece.path(first))

    def __add__(self, other: Faults) -> Faults:
        """Return the faults of two pieces."""
        first = min((f for f in (self, other) if f.number), key=lambda f: f.row, default=self)
        return replace(first, number=self.number + other.number)


@dataclass(frozen=True)
class Plain:
    """Facts about the counts of a piece that need no model of their noise."""

    counts: int
    short: int  # Number of branches that end before the deepest level.
    totals: int  # Number of counts that are sums of others.
    sums: Faults  # Those that are not the sum of their parts.
    negative: Faults
    outside: Faults  # Counts that break a bound of the plan.
    smaller: Faults  # Counts that are below those of another table which they must reach.
    unfit: str = ""  # Why the plan's bounds do not fit the counts; empty if they do.

    def __add__(self, other: Plain) -> Plain:
        """Return what two pieces show."""
        return Plain(
            self.counts + other.counts,
            self.short + other.short,
            self.totals + other.totals,
            self.sums + other.sums,
            self.negative + other.negative,
            self.outside + other.outside,
            self.smaller + other.smaller,
            self.unfit or other.unfit,
        )


def specified(model: Model, guarantee: Guarantee, *, in_parts: bool) -> Specification:
    """Return what follows from the plan of a release, which may be conditioned in parts."""
    found = specify(model, guarantee)
    if not in_parts:
        return found
    claim = found.guarantee
    claim = msgspec.structs.replace(claim, worst_neighbours=unnamed(claim.worst_neighbours))
    return msgspec.structs.replace(found, guarantee=claim)


def plain(piece: Piece) -> Plain:
    """Return what a piece shows without a model."""
    domain, given = piece.domain, piece.plan.invariants
    totals, wrong = _wrong_sums(domain, piece.values)
    short = 0
    if not isinstance(domain, Workload):  # its rows were compared with the plan's when read
        short = int((domain.level[domain.leaves] != piece.deepest).sum())
    none = Faults()
    found = Plain(int(piece.own.sum()), short, totals, Faults.of(piece, wrong), none, none, none)
    if not given.bounded:
        return found
    values = piece.values
    below = np.flatnonzero((values < 0) & given.nonnegative & piece.own)
    found = replace(found, negative=Faults.of(piece, below))
    if not piece.bounded:
        return found
    try:
        low, high = bounds_by_node(piece.plan, domain)
        smaller = _comparisons(piece)
    except PlanError as error:
        return replace(found, unfit=str(error))
    outside = np.flatnonzero((values < low) | (values > high))
    return replace(found, outside=Faults.of(piece, outside), smaller=Faults.of(piece, smaller))


def _wrong_sums(domain: Tree | Workload, value: IntArray) -> tuple[int, IntArray]:
    """Return the number of counts that are sums of others, and those that are not their sum."""
    sums = domain.sums
    # values and sums of more parts than fit into 64 bits are split into two parts of 32
    halves = np.stack([value >> 32, value & (2**32 - 1)])
    below = np.zeros((2, len(domain)), dtype=np.int64)
    for half, out in zip(halves, below, strict=True):
        np.add.at(out, sums.totals[sums.sum_of_part], half[sums.parts])
    below[0] += below[1] >> 32
    below[1] &= 2**32 - 1
    wrong = sums.totals[(below != halves)[:, sums.totals].any(axis=0)]
    return int(np.unique(sums.totals).size), wrong


def _comparisons(piece: Piece) -> IntArray:
    """Return the counts that are below those of another table, where the plan forbids it."""
    plan, domain, wrong = piece.plan, piece.domain, [np.zeros(0, dtype=np.int64)]
    if not isinstance(domain, Workload):
        return wrong[0]
    for text in plan.invariants.as_many:
        sides = comparison(text)
        more, fewer = (_counts_of(domain, plan.place_names[-1], *side) for side in sides)
        counts = np.append(piece.values, 0)  # an impossible cell is entry -1 and counts 0
        wrong.append(more[counts[more] < counts[fewer]])
    return np.concatenate(wrong)


def _counts_of(domain: Workload, level: str, name: str, values: Mapping[str, str]) -> IntArray:
    """Entries of a table's counts of some values at every place of a level; -1 for none."""
    block = domain.block(tuple(values), level, name)
    labels = [
        dict(zip(block.margin, block.values(k), strict=True)) for k in range(block.ids.shape[1])
    ]
    return block.ids[:, labels.index(dict(values))]


def check_noise(model: Model, piece: Piece) -> Check:
    """Check that every measurement states the noise of the model."""
    table, y, pinned = cast(FileTable, piece.measured), piece.y, model.resolved.pinned
    own = measurement_columns(model.mechanism, pinned, y)
    if any((different(column, table[name]) & piece.own).any() for name, column in own.items()):
        text = "a measurement is missing, or its noise does not follow from the plan"
        return Check(MEASURED, False, text)
    exact = pinned & piece.own
    if not (y[exact] == piece.values[exact]).all():
        return Check(MEASURED, False, "a count published exactly differs from the table")
    return Check(MEASURED, True, "every measurement states the noise that follows from the plan")


def check_image(engine: Imaged | TopDown, y: IntArray, values: IntArray) -> Check:
    """Check that an image of measurements may be these counts."""
    try:
        follow = follows(engine, y, values, seeded(SEED))
    except CongenialError as error:
        return Check(FOLLOWS, False, f"no table follows from the measurements: {error}")
    return judged_image(follow=follow)


def judged_image(*, follow: bool) -> Check:
    """Say whether an image of measurements may be the counts."""
    good = "the method makes this table, apart from ties broken at random"
    return judged(FOLLOWS, follow, good, "the method makes another table")


def same_intervals(model: Model, found: Intervals, piece: Piece) -> bool:
    """Whether the counts have the intervals found, except for ties of a posterior."""
    off = {
        name: np.flatnonzero(different(column, piece.rows[name]) & piece.own)
        for name, column in found.columns.items()
    }
    at = np.union1d(off.pop("lower"), off.pop("upper"))
    if any(nodes.size for nodes in off.values()):
        return False
    if not at.size or not isinstance(found.basis, ByPosterior):
        return not at.size
    ends = [piece.rows.numbers(name) for name in ("lower", "upper")]
    free = model.domain.is_leaf & ~model.determined
    if not free[at].all() or not all(end.known[at].all() for end in ends):
        return False
    low, high = (np.asarray(end.values[at], dtype=np.int64) for end in ends)
    return as_likely(model, piece.values, at, (low, high), (found.lower[at], found.upper[at]))


def good_intervals(source: str) -> str:
    """Say by which numbers or method intervals that passed their check were computed."""
    if source == "none":
        return "only exact counts have intervals, as the plan implies"
    return f"every interval follows from the published numbers, {_WAYS[source]}"


def check_stamp(place: Path, certificate: Certificate, pinned: BoolArray, piece: Piece) -> Check:
    """Check that a simulation says that it is one, and that its true counts fit it."""
    marker = place / files.MARKER
    if certificate.simulation is None:
        text = "the certificate does not state one; no file can prove that it is none"
        false = "a file says that this is a simulation, but the certificate does not"
        return judged(SIMULATION, not marker.exists(), text, false)
    shown = [piece.rows] + ([] if piece.measured is None else [piece.measured])
    stamped = (
        marker.is_file()
        and marker.read_bytes() == files.MARKER_TEXT.encode()
        and all(set(table.texts(files.NOTE).objects()) == {files.STAMP} for table in shown)
    )
    if stamped and certificate.simulation.with_truth:
        truth = np.asarray(piece.rows.numbers("truth").values, dtype=np.int64)
        exact = pinned & piece.own
        if not (truth[exact] == piece.values[exact]).all():
            return Check(SIMULATION, False, "an exact count differs from its true count")
        if truth.min() < 0 or not piece.domain.is_consistent(truth):
            text = "the true counts do not add up, or one is negative"
            return Check(SIMULATION, False, text)
    text = f"{files.STAMP}; every part of the release says so"
    return judged(SIMULATION, stamped, text, "a part of this simulation lacks its stamp")
