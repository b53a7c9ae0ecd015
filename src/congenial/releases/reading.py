"""`read_release(directory)`: a release as its readers use it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

import msgspec
import narwhals as nw
import numpy as np
import numpy.typing as npt

from congenial.accounting.mechanism import Certified
from congenial.conditioning.chains import arviz_for
from congenial.data.sources import identifier, literal
from congenial.domain.given import several
from congenial.domain.names import Names
from congenial.domain.tree import Path as TreePath
from congenial.domain.tree import Tree
from congenial.domain.workload import MarginLike, Workload
from congenial.errors import ArgumentError, ReleaseError, UnsupportedError
from congenial.exhibits.exhibit import Exhibit
from congenial.exhibits.plots import axes_or_new, draw_bars, draw_icicle
from congenial.inference import exports
from congenial.inference.best_table import BestTable
from congenial.inference.posteriors import Posterior, PriorName, posterior
from congenial.inference.priors import Prior
from congenial.inference.splits.dirichlet_tree import DirichletTree
from congenial.inference.splits.empirical_bayes import LevelSplits
from congenial.invariants.written import nonnegative
from congenial.namespaces import renamed
from congenial.plan.cross_table import COLON, TOTAL
from congenial.plan.plan import Plan, named_nodes
from congenial.randomness import Randomness
from congenial.releases import directory as files
from congenial.releases.accuracy import margins
from congenial.releases.certificate import Certificate, read_certificate, stated_plan
from congenial.releases.file_table import Column, Columns, FileTable, Numbers, different
from congenial.releases.intervals import interval_columns, posterior_of_table, sums_of
from congenial.releases.margin_views import as_bars, as_icicle, as_table, view_of
from congenial.releases.measurements import (
    COLUMNS,
    Measurements,
    measurements_of,
    prior_numbers,
)
from congenial.releases.model import Model, build_model, choose_method
from congenial.releases.rows import columns_of, tree_of, workload_of
from congenial.releases.sentences import about_intervals
from congenial.types import FloatArray, IntArray
from congenial.wording import MOST_ROWS, html_facts, html_table, joined, many, rounded_up, show

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# A larger count shows a damaged file. Sums of 1,023 counts of this size fit into 64 bits.
_MOST = 2**53
# Types of the columns of data frames.
_KINDS: Mapping[str, nw.Int64 | nw.Float64 | nw.String] = MappingProxyType(
    {"BIGINT": nw.Int64(), "DOUBLE": nw.Float64(), "VARCHAR": nw.String()}
)
_NO_LIBRARY = "the table needs {0}, which is not installed; run pip install {0}."


@dataclass(frozen=True, eq=False, repr=False)
class Release:
    """A release read back from its directory; made by `read_release`.

    Attributes
    ----------
    directory : Path
    certificate : Certificate
    plan : Plan
        That of the certificate.
    domain : Tree or Workload
        The nodes, or the queries of a table, in the order of the released table.
    values : ndarray of int64, shape (n,)
        Released counts.
    rows : FileTable
        All rows and columns of the released table, from its Parquet file; `table` has one margin.
    measured : FileTable or None
        The measurements, from their Parquet file; None if they are not published.
    within : tuple of str
        Path from below the root of the node `within` which counts were read; empty for all.
    """

    directory: Path
    certificate: Certificate
    plan: Plan
    domain: Tree | Workload
    values: IntArray
    rows: FileTable
    measured: FileTable | None
    within: TreePath = ()
    contents = renamed("contents", "the release itself", lambda release: release)
    parquet = renamed("parquet", "rows")

    def __repr__(self) -> str:
        stamp = "" if self.certificate.stamp is None else f", {self.certificate.stamp}"
        part = f" within {'/'.join(self.within)}" if self.within else ""
        counts = f"{many(len(self.domain), 'count')}{part}, epsilon {self._epsilon}"
        return f"Release({str(self.directory)!r}: {counts}{stamp})"

    def _repr_html_(self) -> str:
        certificate = self.certificate
        facts: dict[str, object] = {
            "counts": len(self.domain),
            "levels": ", ".join(self.plan.place_names),
            "method": self.plan.method.name,
            "epsilon": self._epsilon,
            "delta": rounded_up(certificate.guarantee.delta, 2),
            "made": certificate.made,
        }
        # the true counts of a simulation are in no notebook
        names = [name for name, _ in self.rows.columns if name != "truth"]
        first = self.rows.take(np.arange(min(len(self.rows), MOST_ROWS)))
        rows = list(zip(*map(first.column, names), strict=True))
        return html_facts(
            f"Release {self.directory.name}",
            facts,
            (*filter(None, [certificate.stamp]), certificate.sentence),
        ) + html_table("Released counts", names, rows, len(self.rows))

    @property
    def _epsilon(self) -> str:
        return rounded_up(self.certificate.guarantee.epsilon, 6)

    @property
    def tree(self) -> Tree:
        """The nodes, in the order of the released table.

        Raises UnsupportedError if the release is of a table, whose queries are in `domain`.
        """
        if isinstance(self.domain, Workload):
            raise UnsupportedError(
                "the release is of a table, which has queries and no nodes; call `table` or "
                "`to_pandas`, or take its `domain`."
            )
        return self.domain

    @property
    def names(self) -> Names | tuple[str, ...]:
        """Name of every count, without the path of a node."""
        return self.domain.names

    @property
    def levels(self) -> tuple[str, ...]:
        """Name of every level, coarse to fine; ``domain.level`` has the level of each count."""
        return self.plan.level_names

    def value(self, node: int | str) -> int:
        """Released count at a node, given by its index, name or path."""
        return int(self.values[self.tree.find(node)])

    def table(
        self,
        margin: MarginLike = (),
        level: str | int | None = None,
        *,
        table: str | None = None,
    ) -> Exhibit:
        """Released counts of one margin at one level, as a plain table.

        Parameters
        ----------
        margin : tuple of str, or str
            Attributes or groups, such as ``("sex", "age")``, or as in the plan, "sex by age". The
            total by default. A release of a tree has no other.
        level : str or int, optional
            A level of the hierarchy by name or depth. By default, the coarsest with more than one
            count of the margin.
        table : str, optional
            Name of the table; needed if the release has several.

        Returns
        -------
        Exhibit
            A row for each place, with its path in the first columns; then a column for each cell
            of the margin, in the order of the plan's attributes, or one named "value" for a tree.
            A cell that cannot hold a record has None. The same rows in pandas are
            ``pandas.DataFrame(found.rows, columns=found.columns)``.

        Raises
        ------
        ArgumentError
            If there is no such margin, level or table, or the release does not have the margin at
            that level.

        Examples
        --------
        >>> import congenial as cg
        >>> cg.read_release("release").table(level="borough").columns
        ('root', 'borough', 'value')
        """
        places = self.plan.place_names
        view = view_of(self.domain, places, margin, level, table)
        return as_table(view, places, self.values)

    def plot(
        self,
        margin: MarginLike = (),
        level: str | int | None = None,
        *,
        table: str | None = None,
        ax: Axes | None = None,
    ) -> Axes:
        """Plot the released counts of one margin at one level, with their intervals.

        Parameters
        ----------
        margin, level, table
            As of `table`. Of more than 60 counts, the plot has the places with the largest.
        ax : matplotlib.axes.Axes, optional
            A new figure's by default.

        Returns
        -------
        matplotlib.axes.Axes

        Raises
        ------
        ArgumentError
            As `table` does.
        UnsupportedError
            If the margin has more than 60 cells, or Matplotlib is not installed.
        """
        view = view_of(self.domain, self.plan.place_names, margin, level, table)
        text = f"{100 * self.plan.accuracy.confidence:g}% interval of the true count"
        bars = as_bars(view, self.values, self._ends, text)
        ax = axes_or_new(ax, bars.values.size)
        return draw_bars(ax, replace(bars, title=self._stamped(bars.title)))

    def plot_errors(self, *, table: str | None = None, ax: Axes | None = None) -> Axes:
        """Plot how far off the released totals may be, level by level, as an icicle.

        Each row is a level. Each rectangle is a place, as wide as its released count and below the
        place that contains it. Its colour is half the width of its interval over the count. Below
        the level's name is the median of half the widths. A level of more than 2,000 places ends
        the plot.

        Parameters
        ----------
        table : str, optional
            Name of the table; needed if the release has several.
        ax : matplotlib.axes.Axes, optional
            A new figure's by default.

        Returns
        -------
        matplotlib.axes.Axes

        Raises
        ------
        ArgumentError
            If there is no such table, or the release does not have the total of all places.
        UnsupportedError
            If no total has an interval, or Matplotlib is not installed.
        """
        rows = as_icicle(self.domain, self.plan.place_names, table, self.values, self._ends)
        if not any(row.known.any() for row in rows):
            basis = self.certificate.accuracy.basis
            text = about_intervals(basis, self.plan.accuracy.confidence)
            raise UnsupportedError(f"the release has no interval for any total. {text}")
        counts = "released counts" if table is None else f"the released counts of {table}"
        title = f"{100 * self.plan.accuracy.confidence:g}% intervals of {counts}, by level"
        return draw_icicle(axes_or_new(ax), self._stamped(title), rows)

    @property
    def _ends(self) -> tuple[FloatArray, FloatArray]:
        """Ends of the intervals, each of shape (n,); NaN where a count has none."""
        lower, upper = (self.rows.numbers(end) for end in ("lower", "upper"))
        return (
            np.where(lower.known, lower.values, np.nan),
            np.where(upper.known, upper.values, np.nan),
        )

    def _stamped(self, title: str) -> str:
        """Put the stamp of a simulation before a title."""
        stamp = self.certificate.stamp
        return title if stamp is None else f"{stamp}: {title}"

    @cached_property
    def model(self) -> Model:
        """The noise and the invariant of the release, worked out from its plan and nodes."""
        self._check_whole("the model of the noise")
        return build_model(self.plan, self.domain, at_delta=self.certificate.guarantee.at_delta)

    @cached_property
    def mechanism(self) -> Certified:
        """The mechanism that drew the release: conditioned or imaged noise."""
        return choose_method(self.model)

    @cached_property
    def measurements(self) -> Measurements | None:
        """The noisy measurements of the release; None if they are not published."""
        if self.measured is None:
            return None
        self._check_whole("the law of the measurements")
        return measurements_of(self.measured, self.domain, files.MEASUREMENTS_PARQUET)

    def _check_whole(self, what: str) -> None:
        """Refuse what one part of a release does not determine."""
        if self.within:
            raise UnsupportedError(
                f"{what} follows from all counts, and only those within {'/'.join(self.within)!r} "
                "were read; leave `within` out of read_release, or take the columns of to_pandas()."
            )

    @cached_property
    def under_prior(self) -> Certified:
        """The mechanism under the prior that the certificate states, if its method has one.

        Raises ReleaseError if the stated prior does not fit the plan.
        """
        mechanism, prior = self.mechanism, self.certificate.prior
        if not isinstance(mechanism, BestTable):
            if prior is not None:
                text = "the certificate states a prior, and the plan's method has none."
                raise ReleaseError(text)
            return mechanism
        if prior is None:
            return mechanism.projection
        return replace(mechanism, splits=LevelSplits(*prior_numbers(self.plan, prior)))

    def posterior(self, prior: PriorName | Prior | DirichletTree | None = None) -> Posterior:
        """Law of the confidential counts given the release, see `congenial.posterior`.

        If measurements are published, it is the law given the measurements: the table is made from
        them and adds nothing.

        Parameters
        ----------
        prior : str, Prior or DirichletTree, optional
            As of `congenial.posterior`; 0 is the only bound. The default is "flat", unless the
            release's method is the posterior. Then it is the prior and the bounds with which the
            release was made; true counts need not obey these bounds.

        Raises
        ------
        UnsupportedError
            If the release is an image without measurements, or was conditioned on more than a
            tree that adds up, exact counts and bounds.

        Notes
        -----
        The law of a release that was conditioned on bounds has a normaliser N(x) that depends on
        the counts: the probability that the noise alone satisfies the bounds. The posterior is then
        exact for the prior times N(x), under which counts near their bounds are rarer than under
        `prior`. Its intervals of leaves hold about as often as asked on average over tables like
        this one; for a single leaf, such as a large count beside many near zero, far less often.
        Intervals of sums may hold far less often, or never: the posterior does not undo the shift
        that the noise of many small counts gives to their sums. The row "conditioning, ≥ 0,
        posterior" of ``python -m papers coverage`` has measured frequencies.
        `congenial.inference.inverted_intervals` are proved for every count.
        """
        if prior is None:
            mechanism = self.under_prior
            if isinstance(mechanism, BestTable) and self.measurements is not None:
                return mechanism.law(self.measurements.y)
            prior = "flat"
        if self.measurements is not None:
            found = self.measurements
            return posterior(found.y, found.mechanism, found.invariant & nonnegative(), prior)
        return posterior_of_table(self.model, self.values, prior)

    def interval_of_sum(self, nodes: Sequence[int | str]) -> tuple[int, int]:
        """Interval of the sum of some true counts, at the confidence of the release's intervals.

        It is worked out from the published numbers alone, as that of `accuracy.sums` in a plan.

        Parameters
        ----------
        nodes : sequence of int or str
            Indices, or names and paths as under `accuracy.sums`. A level's name stands for all its
            nodes; a node given twice counts once.

        Raises
        ------
        ArgumentError
            If there is no node, or an index is out of range.
        PlanError
            If a name is unknown, or stands for several nodes.
        UnsupportedError
            If the release has no interval for the sum; `posterior` may have one.
        """
        listed = (v if isinstance(v, str) else self._entry(v) for v in several(nodes))
        given = list(dict.fromkeys(listed))
        named_nodes(self.plan, self.domain, "nodes", tuple(given))  # refuses names by this key
        change = msgspec.structs.replace
        accuracy = change(self.plan.accuracy, simultaneous=False, sums={"sum": tuple(given)})
        model = replace(self.model, plan=change(self.plan, accuracy=accuracy))
        measured = None
        if self.measured is not None:
            measured = self.measured.numbers("measurement").values.astype(np.int64)
        known = margins(model, self.mechanism, sums_only=True)
        [found] = sums_of(model, self.mechanism, known, self.values, measured)
        if found.lower is None or found.upper is None:
            text = about_intervals(known.basis, accuracy.confidence)
            raise UnsupportedError(f"the release has no interval for this sum. {text}")
        return found.lower, found.upper

    def _entry(self, node: int) -> str:
        """Name a count as a plan does."""
        domain = self.domain
        if isinstance(node, bool) or not isinstance(node, int | np.integer):
            raise ArgumentError(f"node is {show(node)}; give an index, a name or a path.")
        if not 0 <= node < len(domain):
            raise ArgumentError(f"node {node} is out of range; give 0 to {len(domain) - 1}.")
        path = domain.path(int(node))
        if isinstance(domain, Tree):
            return "/".join(path)
        block, several = domain.blocks[int(domain.level[node])], bool(self.plan.tables)
        place, values = (path[:-1], path[-1]) if block.margin else (path, TOTAL)
        return COLON.join(("/".join(place), *[block.table.name] * several, values))

    def to_pandas(self) -> Any:
        """The released table as a pandas DataFrame, a row for each count.

        It has the columns of ``release.csv``, and with measurements also those of
        ``measurements.csv``. A column of integers of which some are missing has type Int64.

        Raises UnsupportedError if pandas is not installed.
        """
        try:
            import pandas as pd
        except ImportError as error:
            raise UnsupportedError(_NO_LIBRARY.format("pandas")) from error
        return pd.DataFrame(
            {
                name: pd.array(column.objects(), dtype="Int64")
                if isinstance(column, Numbers) and kind == "BIGINT" and not column.known.all()
                else column.objects()
                for name, (kind, column) in self._columns.items()
            }
        )

    def to_polars(self) -> Any:
        """The released table as a polars DataFrame, see `to_pandas`."""
        return self._frame("polars")

    def to_arrow(self) -> Any:
        """The released table as a `pyarrow.Table`, see `to_pandas`."""
        return self._frame("pyarrow")

    @property
    def _columns(self) -> dict[str, tuple[str, Column]]:
        """Type and entries of each column of the table, and of the measurements."""
        tables = [self.rows] if self.measured is None else [self.rows, self.measured]
        return {
            name: (kind, column)
            for table in tables
            for (name, kind), column in zip(table.columns, table.data, strict=True)
        }

    def _frame(self, library: Literal["polars", "pyarrow"]) -> Any:
        found = self._columns
        columns = {name: column.objects() for name, (_, column) in found.items()}
        schema = {name: _KINDS[kind] for name, (kind, _) in found.items()}
        try:
            return nw.from_dict(columns, schema, backend=library).to_native()
        except ImportError as error:
            raise UnsupportedError(_NO_LIBRARY.format(library)) from error

    def to_arviz(
        self,
        draws: int = 1000,
        *,
        prior: PriorName | Prior | DirichletTree | None = None,
        rng: Randomness | None = None,
    ) -> Any:
        """Put the release, and draws of the counts behind it, in the form that ArviZ takes.

        Parameters
        ----------
        draws : int
            Independent draws of `posterior`; 0 for none, which serves every release.
        prior : str, Prior or DirichletTree, optional
            As of `posterior`.
        rng : Randomness, optional

        Returns
        -------
        arviz.InferenceData, or xarray.DataTree from ArviZ 1.0 on
            Groups ``posterior`` (variable ``count``), ``observed_data`` (``released``, and
            ``measurement`` if published) and ``constant_data`` (``scale`` of the noise, inf if not
            measured; ``published_exactly``), by `node`, each with a `level`. Every group's
            attributes have the guarantee as a sentence and in numbers, and the law of the noise.

        Raises
        ------
        ArgumentError
            If `draws` is no whole number from 0 on.
        UnsupportedError
            If ArviZ is not installed, or there is no `posterior`.
        """
        arviz_for("to_arviz")  # before any draw
        if not isinstance(draws, int | np.integer) or isinstance(draws, bool) or draws < 0:
            raise ArgumentError(f"draws is {draws!r}; give a whole number from 0 on.")
        groups: dict[str, dict[str, npt.NDArray[Any]]] = {}
        if draws:
            groups["posterior"] = {"count": self.posterior(prior).sample(int(draws), rng)}
        pinned = self.model.resolved.pinned
        groups["observed_data"] = {"released": self.values}
        if self.measurements is not None:
            groups["observed_data"]["measurement"] = self.measurements.y
        groups["constant_data"] = {
            "scale": np.where(pinned, 0.0, self.model.mechanism.scales),
            "published_exactly": pinned,
        }
        claim = self.certificate.guarantee
        attributes: dict[str, str | float] = {
            "guarantee": self.certificate.sentence,
            "neighbours": claim.neighbours.relation,
            "epsilon": claim.epsilon,
            "delta": claim.delta,
            "not_protected": "; ".join(self.certificate.unprotected),
            "noise": self.model.mechanism.noise.name,
            "method": self.model.plan.method.name,
            "made": self.certificate.made,
        }
        return exports.inference_data(
            self.domain,
            groups,
            level_names=self.levels,
            names=self.names if isinstance(self.domain, Workload) else (),
            attributes=attributes,
        )


def read_release(directory: str | Path, *, within: str | Sequence[str] = ()) -> Release:
    """Read a release from its directory.

    Parameters
    ----------
    directory : path
        As `congenial.release` or ``congenial release`` wrote it.
    within : str or sequence of str, optional
        Path of a node from below the root, such as "Queens/Astoria", or its names. Then only the
        counts on the path and below the node are read, so that memory holds no others. Such a part
        has tables, plots, intervals and data frames, but no model and no posterior: these follow
        from all counts.

    Returns
    -------
    Release

    Raises
    ------
    ReleaseError
        If the directory holds no release, or a file is not the one that its certificate names.
    ArgumentError
        If the release has no node with the path `within`.

    Notes
    -----
    The certificate's claims are taken as they stand; `congenial.verify` works them out anew. The
    SHA-256 of every file is compared, also if only a part is read.

    Examples
    --------
    >>> import congenial as cg
    >>> found = cg.read_release("release")
    >>> found.levels
    ('root', 'borough', 'zone')
    """
    place, path = files.release_directory(directory), _path(within)
    certificate = read_certificate(place / files.CERTIFICATE)
    for name in sorted({files.CSV, files.PARQUET, *certificate.files}):
        stated = certificate.files.get(name)
        if not (place / name).is_file() or files.sha256(place / name) != stated:
            raise ReleaseError(
                f"{name} is not the file that the certificate of {place} names; run congenial "
                "verify, and get a fresh copy of the release."
            )
    return read_files(place, certificate, stated_plan(certificate), path)


def _path(within: str | Sequence[str]) -> TreePath:
    """Return the names on the path of a node below the root."""
    texts = isinstance(within, str | Sequence) and all(isinstance(name, str) for name in within)
    if not (texts and files.is_text(Path("/".join(within)))):
        raise ArgumentError(f"within is {show(within)}; give a path such as 'a/b', or its names.")
    return tuple(within.split("/")) if isinstance(within, str) else tuple(within)


def read_files(place: Path, certificate: Certificate, plan: Plan, within: TreePath = ()) -> Release:
    """Read the tables of a release, or the part of them within a node, and rebuild the domain."""
    own = own_columns(certificate, plan)
    pairs = zip(plan.hierarchy.levels, within, strict=False)
    # a node above the named one has no name in its column
    tests = [f"({identifier(c)} = {literal(n)} OR {identifier(c)} IS NULL)" for c, n in pairs]
    where = " AND ".join(tests) or files.EVERY_ROW
    table = _read(place, certificate, plan, files.TABLE, own, where)
    if within and table.numbers("level").values.max(initial=0) < len(within):
        raise ArgumentError(
            f"the release has no node {'/'.join(within)!r}; give the path of one of "
            f"{joined(plan.hierarchy.levels, 'or')} from below the root, as a list if a name has "
            "a slash."
        )
    if not plan.counted_tables:
        domain: Tree | Workload = tree_of(table, plan.place_names, files.PARQUET)
    else:
        domain = workload_of(table, plan, files.PARQUET)
    check_values(plan, table)
    measured = None
    if files.MEASUREMENTS in own:
        measured = _read(place, certificate, plan, files.MEASUREMENTS, own, where)
        check_nodes(table, measured)
    values = np.asarray(table.numbers("value").values, dtype=np.int64)
    return Release(place, certificate, plan, domain, values, table, measured, within)


def own_columns(certificate: Certificate, plan: Plan) -> Mapping[tuple[str, str], tuple[str, ...]]:
    """Return the tables that a release has, each with its columns that do not name a count."""
    simulation = certificate.simulation
    ends = interval_columns(simultaneous=plan.accuracy.simultaneous)
    truth = ("truth",) if simulation is not None and simulation.with_truth else ()
    own = {files.TABLE: ("value", *ends, *truth)}
    return own | ({files.MEASUREMENTS: COLUMNS} if plan.release.measurements else {})


def _read(
    place: Path,
    certificate: Certificate,
    plan: Plan,
    names: tuple[str, str],
    own: Mapping[tuple[str, str], tuple[str, ...]],
    where: str,
) -> FileTable:
    table = files.read_table(place, names, where)
    check_columns(certificate, plan, names[1], table.columns, own[names])
    check_sizes(names[1], table)
    return table


def check_columns(
    certificate: Certificate, plan: Plan, name: str, columns: Columns, own: Sequence[str]
) -> None:
    """Refuse columns that the plan does not give."""
    stamped = certificate.simulation is not None
    expected = columns_of(plan.place_names, own, readings=plan.reading_columns, stamped=stamped)
    if columns != expected:
        raise ReleaseError(
            f"{name} has the columns {_named(columns)}; the plan gives {_named(expected)}."
        )


def check_sizes(name: str, table: FileTable) -> None:
    """Refuse counts that are too large for any number of rows."""
    for column in _counts(table, "value", "truth", "measurement"):
        found = table.numbers(column)
        # the least integer of 64 bits has no positive counterpart
        if ((found.values > _MOST) | (found.values < -_MOST)).any():
            raise ReleaseError(
                f"{name} has a {column} beyond 2^53, which no count of rows comes near; get "
                "a fresh copy of the release."
            )


def check_values(plan: Plan, table: FileTable) -> None:
    """Refuse rows below another root than the plan's, and rows without a count."""
    if set(table.texts(plan.place_names[0]).words) != {plan.hierarchy.root}:
        raise ReleaseError(
            f"a row of {files.PARQUET} does not start at the plan's root; get a fresh copy of "
            "the release."
        )
    if not all(table.numbers(name).known.all() for name in _counts(table, "value", "truth")):
        raise ReleaseError(
            f"{files.PARQUET} has a row without a value; get a fresh copy of the release."
        )


def check_nodes(table: FileTable, measured: FileTable) -> None:
    """Refuse measurements of other nodes than those of the table, or in another order."""
    keys = [name for name, _ in table.columns]
    keys = keys[: keys.index("value")]
    if len(measured) != len(table) or any(
        different(measured[name], table[name]).any() for name in keys
    ):
        raise other_nodes()


def other_nodes() -> ReleaseError:
    """Return the error for measurements of other nodes than those of the table."""
    return ReleaseError(
        f"{files.MEASUREMENTS_PARQUET} does not have the nodes of {files.PARQUET}, in its order; "
        "get a fresh copy of the release."
    )


def _counts(table: FileTable, *names: str) -> list[str]:
    return [name for name, kind in table.columns if name in names and kind == "BIGINT"]


def _named(columns: Columns) -> str:
    return ", ".join(f"{name} {kind}" for name, kind in columns)
