"""A release that is read and checked part by part, in the memory of one part.

The rows of a release are in depth-first order: each node comes before those below it. So the rows
below a node of some level lie together, and are read together. TopDown goes down from the root, so
the counts down to the level, the top, follow from the measurements there. The counts of a part
follow from the released count above them. The counts of a release by imaging or by the posterior
follow from the measurements of all parts, which wait in files (`read_parts`). Counts that were
conditioned in parts follow from nothing, and have no intervals. The claims of the release are
worked out on the small tree of `releases.part_models`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import reduce
from operator import add
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import cast

import numpy as np

from congenial.domain.names import Names
from congenial.domain.tree import Path as TreePath
from congenial.domain.tree import Tree
from congenial.errors import CongenialError, PlanError, ReleaseError
from congenial.imaging.part_values import PartValues
from congenial.imaging.top_down import TopDown
from congenial.plan.cut import Cut, check_single, cut_at
from congenial.plan.plan import Plan
from congenial.releases import directory as files
from congenial.releases.accuracy import IN_PARTS, Margins, margins_in_parts
from congenial.releases.certificate import Certificate
from congenial.releases.file_table import FileTable
from congenial.releases.intervals import StatedAccuracy, by_margins
from congenial.releases.measurements import prior_numbers
from congenial.releases.model import Model, build_model, claim
from congenial.releases.part_models import (
    PartFacts,
    below_model,
    facts_of,
    level_scales,
    levels_of_all,
    named_below,
    named_leaves,
    nodes_of_stand_in,
    of_all,
    stand_in,
    top_model,
)
from congenial.releases.reading import (
    check_columns,
    check_nodes,
    check_sizes,
    check_values,
    other_nodes,
    own_columns,
)
from congenial.releases.rows import tree_of
from congenial.releases.specification import Specification
from congenial.types import BoolArray, FloatArray, IntArray
from congenial.verification.checks import Check, compare
from congenial.verification.fitted import unfitted_prior
from congenial.verification.pieces import (
    INTERVALS,
    MEASURED,
    Piece,
    Plain,
    check_image,
    check_noise,
    check_stamp,
    good_intervals,
    judged_image,
    plain,
    same_intervals,
    specified,
)
from congenial.verification.read_parts import ReadParts

# Rows that are read at a time, unless one part has more: a million take 0.3 GB. A release of twice
# as many is read in parts.
ROWS = 1_000_000
# Rows of which the levels are read at a time.
_LEVELS = 1 << 20

Tables = Mapping[tuple[str, str], files.OpenTable]


class _AtOnceError(Exception):
    """The release is none that can be checked in parts."""


@dataclass(frozen=True, eq=False)
class ReadInParts:
    """A release whose parts have been checked."""

    certificate: Certificate
    prior: Check | None  # Of a release by the posterior.
    csv: files.CsvRows
    measured_csv: files.CsvRows | None
    plain: Plain
    error: float  # Numerical error of a draw.
    specification: Specification
    accuracy: StatedAccuracy
    checks: tuple[tuple[Check, ...], ...]  # Those of each piece that need a model.
    top: Model  # That of the counts down to the cut.
    numbers: IntArray  # shape (top,): Number of each row of the top in its file.
    scales: FloatArray  # Scale of the noise of each level from the cut on.
    spans: tuple[tuple[int, int], ...]  # Ranges of rows that divide no part.

    def specified(self) -> tuple[float, Specification]:
        """Return the least numerical error of a draw, and what follows from the plan."""
        return self.error, self.specification

    def by_model(self) -> Iterator[Check]:
        """Yield the checks that need the model of the noise; the first piece that fails counts."""
        noise, image, ends, stamp = (
            next((check for check in each if not check.passed), each[0])
            for each in zip(*self.checks, strict=True)
        )
        if self.measured_csv is not None:
            if not self.measured_csv.same:
                text = "the CSV and the Parquet file have different rows"
                noise = Check(MEASURED, False, text)
            yield noise
            if noise.passed and self.prior is not None:
                yield self.prior
            if noise.passed:
                yield image
        elif self.prior is not None:
            yield self.prior
        stated = self.certificate.accuracy
        if ends.passed and not compare(INTERVALS, "", self.accuracy, stated).passed:
            ends = Check(INTERVALS, False, "the certificate describes other intervals")
        yield ends
        yield stamp


def read_in_parts(
    place: Path, certificate: Certificate, plan: Plan, level: str | None
) -> ReadInParts | None:
    """Read and check a release part by part; None if it must be read at once.

    The parts are those below a level; if none is given, one is chosen for a large release.

    Raises PlanError if the plan has no parts of a given level, and ReleaseError if a file cannot be
    read, or its rows are none of the plan's.
    """
    cuts = [cut_at(plan, level)] if level is not None else _cuts(certificate, plan)
    at_once = plan.method.name == "conditioning" and certificate.accuracy.basis != IN_PARTS
    if not cuts or at_once or not _is_fitted(certificate, plan):
        return None
    own = own_columns(certificate, plan)
    with ExitStack() as stack:
        tables = {name: stack.enter_context(files.open_table(place, name)) for name in own}
        for name, table in tables.items():
            check_columns(certificate, plan, name[1], table.columns, own[name])
        if len({table.rows for table in tables.values()}) > 1:
            raise other_nodes()
        try:
            cut = _chosen(tables[files.TABLE], cuts, forced=level is not None)
            aside = Path(stack.enter_context(TemporaryDirectory(prefix="verify-")))
            return _Reading.of(place, certificate, cut, tables).read(aside)
        except _AtOnceError:
            return None


def _is_fitted(certificate: Certificate, plan: Plan) -> bool:
    """Whether a stated prior, if there is one, fits the plan; else the reading at once says why."""
    if certificate.prior is None:
        return True
    try:
        prior_numbers(plan, certificate.prior)
    except ReleaseError:
        return False
    return plan.method.name == "posterior"


def _cuts(certificate: Certificate, plan: Plan) -> list[Cut]:
    """Return the levels at which a large release may be cut."""
    if sum(level.nodes for level in certificate.domain.levels) <= 2 * ROWS:
        return []
    found = []
    for level in plan.hierarchy.levels[:-1]:
        try:
            found.append(cut_at(plan, level))
        except PlanError:
            continue
    return found


def _chosen(table: files.OpenTable, cuts: Sequence[Cut], *, forced: bool) -> Cut:
    """Return the first cut of which the top and all parts are small, or else the best one."""
    deepest = len(cuts[0].plan.hierarchy.levels)
    nodes, largest = _layout(table, deepest)
    size = [
        max(
            int(largest[cut.depth]),
            int(nodes[: cut.depth + 1].sum())
            + nodes_of_stand_in(int(nodes[cut.depth]), deepest - cut.depth),
        )
        for cut in cuts
    ]
    at = next((k for k, most in enumerate(size) if most <= ROWS), int(np.argmin(size)))
    if not forced and size[at] >= table.rows:
        raise _AtOnceError
    return cuts[at]


def _layout(table: files.OpenTable, deepest: int) -> tuple[IntArray, IntArray]:
    """Return the number of rows of each level, and of the largest part below each level.

    Rows that are not in depth-first order, by their levels, are read at once.
    """
    nodes, largest, last = (np.zeros(deepest + 1, dtype=np.int64) for _ in range(3))
    before = -1
    for begin in range(0, table.rows, _LEVELS):
        found = table.numbers("level", begin, min(begin + _LEVELS, table.rows))
        level = found.values
        steps = np.diff(level, prepend=before)
        if not found.known.all() or level.min() < 0 or level.max() > deepest or steps.max() > 1:
            raise _AtOnceError
        nodes += np.bincount(level, minlength=deepest + 1)
        for depth in range(deepest):
            at = begin + np.flatnonzero(level <= depth)
            if at.size:
                largest[depth] = max(largest[depth], np.diff(at, prepend=last[depth]).max())
                last[depth] = at[-1]
        before = int(level[-1])
    if nodes[0] != 1 or not nodes[deepest]:
        raise _AtOnceError
    return nodes, np.maximum(largest, table.rows - last)


@dataclass(frozen=True, eq=False)
class _Reading:
    """A release whose top has been read, and what its parts are checked with."""

    place: Path
    certificate: Certificate
    cut: Cut
    tables: Tables
    top: Tree
    numbers: IntArray  # shape (top,): Number of each row of the top in its file.
    rows: Mapping[tuple[str, str], FileTable]  # The rows of the top, of each table.
    model: Model  # On the small tree.
    over: Model  # That of the top.
    lonely: BoolArray  # shape (top,): Cut nodes whose counts are the same for all neighbours.
    specification: Specification  # On the small tree.
    # The end of the compared lines in each CSV file, by name; -1 if they differ.
    lines: dict[str, int] = field(default_factory=dict)

    @property
    def scales(self) -> FloatArray:
        """Scale of the noise of each level from the cut on."""
        return level_scales(self.model)[self.cut.depth :]

    @classmethod
    def of(cls, place: Path, certificate: Certificate, cut: Cut, tables: Tables) -> _Reading:
        """Read the top, and work out the claims."""
        read = {name: table.down_to(cut.depth) for name, table in tables.items()}
        numbers, table = read[files.TABLE]
        top = _tree(table, cut.plan)
        rows = {name: found for name, (_, found) in read.items()}
        if files.MEASUREMENTS in rows:
            check_nodes(table, rows[files.MEASUREMENTS])
        conditioned = cut.plan.method.name == "conditioning"
        try:
            check_single(cut, top)
            at_delta = certificate.guarantee.at_delta
            model = build_model(cut.plan, stand_in(top, cut), at_delta=at_delta)
            guarantee = claim(model, certificate.guarantee.numerical_error)
            specification = specified(model, guarantee, in_parts=conditioned)
            over = top_model(model, top)
        except CongenialError:
            raise _AtOnceError from None
        changes, level = None if guarantee.moves is None else guarantee.moves.changes, top.level
        scales = model.mechanism.scales
        measured = np.isfinite(scales)
        if (
            changes is None
            or (not conditioned and model.mechanism.noise.sampling_error(scales) > 0.0)
            or (~changes | model.determined)[model.domain.level > cut.depth].any()
            or not measured[model.domain.level == len(cut.plan.hierarchy.levels)].all()
            or not (np.isfinite(over.mechanism.scales) | over.determined)[level == cut.depth].all()
        ):
            raise _AtOnceError
        lonely = np.zeros(len(top), dtype=np.bool_)
        lonely[level == cut.depth] = ~changes[model.domain.level == cut.depth]
        return cls(
            place, certificate, cut, tables, top, numbers, rows, model, over, lonely, specification
        )

    def read(self, aside: Path) -> ReadInParts:
        """Read and check all rows; numbers of parts that are needed again wait in a directory."""
        plan, cut = self.cut.plan, self.cut
        every, known = np.ones(len(self.top), dtype=np.bool_), margins_in_parts(self.over)
        piece = Piece(
            plan,
            self.top,
            self.rows[files.TABLE],
            self.rows.get(files.MEASUREMENTS),
            self.numbers,
            every,
            cut.depth,
            bounded=True,
        )
        found, facts = [plain(piece)], list[PartFacts]()
        # an image follows from the measurements of all parts
        best = plan.method.name == "posterior"
        imaged = (best or plan.method.name == "imaging") and piece.measured is not None
        roots = np.flatnonzero(self.top.level == cut.depth)
        waiting = None
        if imaged:
            numbers = piece.y, piece.values
            waiting = ReadParts(self.over, self.scales, roots, *numbers, PartValues(aside))
        checks = [self._checks(piece, self.over, None if imaged else self.over, known)]
        for name, table in self.tables.items():
            header = [files.header_of(table.columns)]
            self.lines[name[0]] = files.matched(self.place / name[0], 0, header)
        spans = tuple(self._spans())
        for begin, end in spans:
            checked = self._checked(begin, end, waiting)
            if checked is not None:
                found.append(checked[0])
                checks.append(checked[1])
                facts.append(checked[2])
        prior = unfitted_prior(self.certificate) if best else None
        if waiting is not None and all(noise.passed for noise, *_ in checks):
            counts = sum(each.counts for each in found)
            if best:
                judged_both = waiting.best(self.certificate, counts)
                if judged_both is None:
                    raise _AtOnceError
                prior, image_of_all = judged_both
            else:
                follow = waiting.follow(counts)
                if follow is None:
                    raise _AtOnceError
                image_of_all = judged_image(follow=follow)
            checks = [(noise, image_of_all, *others) for noise, _, *others in checks]
        compared = [self._compared(name, table) for name, table in self.tables.items()]
        worst = self.specification.guarantee.worst_neighbours
        levels = levels_of_all(plan, self.top.level, known.margin, facts)
        return ReadInParts(
            self.certificate,
            prior,
            compared[0],
            compared[1] if len(compared) > 1 else None,
            reduce(add, found),
            0.0,  # draws in parts have no numerical error
            of_all(self.specification, self.top, facts, worst),
            StatedAccuracy(plan.accuracy.confidence, known.basis, levels, ()),
            tuple(checks),
            self.over,
            self.numbers,
            self.scales,
            spans,
        )

    def _spans(self) -> Iterator[tuple[int, int]]:
        """Yield ranges of rows that divide no part."""
        begin, rows = 0, self.tables[files.TABLE].rows
        starts = np.append(self.numbers, rows)
        while begin < rows:
            at = int(np.searchsorted(starts, begin + ROWS, side="right")) - 1
            end = int(starts[at] if starts[at] > begin else starts[at + 1])
            yield begin, end
            begin = end

    def _checked(
        self, begin: int, end: int, waiting: ReadParts | None
    ) -> tuple[Plain, tuple[Check, ...], PartFacts] | None:
        """Check the counts below cut nodes in a range of rows; None if there are none."""
        rows, tree = self._span(begin, end)
        if not (tree.level >= self.cut.depth).any():
            return None
        piece, below, margins = self._below(begin, end, rows, tree)
        seen, forest, image = plain(piece), cast(Tree, piece.domain), None
        if seen.short:
            raise _AtOnceError
        if waiting is not None:
            first = self._cut_nodes(begin, end)[0]
            waiting.keep(piece, int(np.searchsorted(waiting.roots, first)))
        else:
            image = below_model(self.cut.plan, self.scales, forest, forest.roots)
        checks = self._checks(piece, below, image, margins)
        return seen, checks, self._facts(begin, end, forest, margins)

    def _span(self, begin: int, end: int) -> tuple[dict[tuple[str, str], FileTable], Tree]:
        """Read a range of rows, after those of the nodes above; compare them with the CSV files."""
        plan, first = self.cut.plan, int(np.searchsorted(self.numbers, begin))
        above = self.top.above(first)[:-1]
        rows = {
            name: table.read(begin, end, self.rows[name].take(above))
            for name, table in self.tables.items()
        }
        table = rows[files.TABLE]
        check_sizes(files.PARQUET, table)
        tree = _tree(table, plan)
        check_values(plan, table)
        if files.MEASUREMENTS in rows:
            check_sizes(files.MEASUREMENTS_PARQUET, rows[files.MEASUREMENTS])
            check_nodes(table, rows[files.MEASUREMENTS])
        for (name, _), own in rows.items():
            lines = files.lines_of(own, plan.place_names, tree, begin=above.size)
            self.lines[name] = files.matched(self.place / name, self.lines[name], lines)
        return rows, tree

    def _below(
        self, begin: int, end: int, rows: Mapping[tuple[str, str], FileTable], tree: Tree
    ) -> tuple[Piece, Model, Margins]:
        """Return the counts below the cut nodes of a range of rows, and their model."""
        depth, plan = self.cut.depth, self.cut.plan
        at = np.flatnonzero(tree.level >= depth)
        place = np.cumsum(tree.level >= depth) - 1
        parents = np.where(tree.level[at] == depth, -1, place[tree.parents[at]])
        forest = Tree.from_parents(parents, Names(tree.names.array[at]))
        nodes = self._cut_nodes(begin, end)
        children = np.bincount(forest.parents + 1, minlength=len(forest) + 1)[1:]
        if (children[forest.roots[self.lonely[nodes]]] < 2).any():
            raise _AtOnceError
        fixed = forest.roots[self.over.determined[nodes]]
        model = below_model(plan, self.scales, forest, fixed)
        taken = {name: table.take(at) for name, table in rows.items()}
        piece = Piece(
            plan,
            forest,
            taken[files.TABLE],
            taken.get(files.MEASUREMENTS),
            begin - (len(tree) - (end - begin)) + at,
            forest.parents >= 0,
            len(plan.hierarchy.levels) - depth,
            bounded=False,
        )
        return piece, model, margins_in_parts(model)

    def _cut_nodes(self, begin: int, end: int) -> IntArray:
        """Return the cut nodes of a range of rows, in the top."""
        first, last = np.searchsorted(self.numbers, (begin, end)).tolist()
        nodes = np.flatnonzero(self.top.level == self.cut.depth)
        return np.asarray(nodes[(nodes >= first) & (nodes < last)])

    def _checks(
        self, piece: Piece, model: Model, image: Model | None, known: Margins
    ) -> tuple[Check, ...]:
        """Check a piece by its model.

        `image` is the model by which TopDown made its counts; None if they are checked elsewhere.
        """
        measured = None if piece.measured is None else piece.y
        found = by_margins(model, known, piece.values, measured)
        ends = Check(INTERVALS, True, good_intervals(known.basis.source))
        if not same_intervals(model, found, piece):
            text = "an interval does not follow from the published numbers"
            ends = Check(INTERVALS, False, text)
        pinned = model.resolved.pinned & piece.own
        stamp = check_stamp(self.place, self.certificate, pinned, piece)
        noise = follow = ends
        if measured is not None:
            follow = noise = check_noise(model, piece)
        if measured is not None and image is not None:
            # the released counts of cut nodes were given when those below were drawn
            y = np.where(piece.own, measured, piece.values)
            engine = TopDown(image.mechanism, image.resolved)
            follow = check_image(engine, y, piece.values) if noise.passed else noise
        return noise, follow, ends, stamp

    def _facts(self, begin: int, end: int, forest: Tree, known: Margins) -> PartFacts:
        depth, nodes = self.cut.depth, self._cut_nodes(begin, end).tolist()
        named: dict[TreePath, TreePath] = {}
        for leaf in named_leaves(self.specification.guarantee.worst_neighbours):
            path = leaf[: depth + 1]
            node = self._node(path)
            if node in nodes:
                root = int(forest.roots[nodes.index(node)])
                named |= named_below(
                    forest, root, path, self.specification.guarantee.worst_neighbours
                )
        return facts_of(forest, forest.level + depth, depth, known.margin, named)

    def _node(self, path: Sequence[str]) -> int:
        """Return the node of the top with a path."""
        (starts, children), node = self.top.children, 0
        for name in path[1:]:
            below = children[starts[node] : starts[node + 1]].tolist()
            node = next(child for child in below if self.top.names[child] == name)
        return node

    def _compared(self, name: tuple[str, str], table: files.OpenTable) -> files.CsvRows:
        """Return the comparison of a CSV file, line by line if its bytes differ."""
        path = self.place / name[0]
        if self.lines[name[0]] == files.size_of(path):
            return files.CsvRows(same=True, not_integers=0)
        spans = range(0, table.rows, ROWS)
        rows = (table.read(begin, min(begin + ROWS, table.rows)) for begin in spans)
        return files.compare_lines(path, table.columns, rows)


def _tree(table: FileTable, plan: Plan) -> Tree:
    """Return the tree of rows that must be in depth-first order; others are read at once."""
    try:
        tree = tree_of(table, plan.place_names, files.PARQUET)
    except ReleaseError:  # a node above may lie elsewhere
        raise _AtOnceError from None
    for depth in range(1, tree.depth):
        above, here = (np.flatnonzero(tree.level == d) for d in (depth - 1, depth))
        before = np.searchsorted(above, here) - 1
        if (before < 0).any() or (tree.parents[here] != above[before]).any():
            raise _AtOnceError
    return tree
