"""`read_release(directory)`: a release as its readers use it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import msgspec
import numpy as np
import numpy.typing as npt

from congenial.accounting.mechanism import Certified
from congenial.conditioning.chains import arviz_for
from congenial.domain.tree import Tree
from congenial.domain.workload import Workload
from congenial.errors import ArgumentError, CongenialError, ReleaseError, UnsupportedError
from congenial.inference import exports
from congenial.inference.posteriors import Posterior, posterior
from congenial.inference.priors import Prior
from congenial.invariants.written import consistent, exactly, nonnegative
from congenial.namespaces import renamed
from congenial.plan.plan import Plan
from congenial.randomness import Randomness
from congenial.releases import directory as files
from congenial.releases.certificate import Certificate, read_certificate
from congenial.releases.directory import FileRows
from congenial.releases.intervals import interval_columns
from congenial.releases.measurements import Measurements, read_measurements
from congenial.releases.model import Model, build_model, choose_method
from congenial.releases.query_rows import workload_of
from congenial.releases.table_posterior import posterior_of_table
from congenial.types import IntArray
from congenial.wording import reason_of

# Larger counts show a damaged file: sums of counts up to this stay within 64 bits.
_MOST = 2**53


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
    csv, parquet : FileRows
        The table in both files: the same rows, if nothing is wrong with the release.
    measured_rows : tuple of FileRows, or None
        CSV and Parquet of the measurements; None if they are not published.
    """

    directory: Path
    certificate: Certificate
    plan: Plan
    domain: Tree | Workload
    values: IntArray
    csv: FileRows
    parquet: FileRows
    measured_rows: tuple[FileRows, FileRows] | None
    contents = renamed("contents", "the release itself", lambda release: release)

    def __repr__(self) -> str:
        # the tables would take thousands of lines in a notebook
        return f"Release(directory={self.directory!r})"

    @property
    def tree(self) -> Tree:
        """The nodes, in the order of the released table.

        Raises UnsupportedError if the release is of a table, whose queries are in `domain`.
        """
        if isinstance(self.domain, Workload):
            raise UnsupportedError(
                "the release is of a table, which has queries and no nodes; take its `domain`."
            )
        return self.domain

    @property
    def names(self) -> tuple[str, ...]:
        """Name of every count, without the path of a node."""
        return self.domain.names

    @property
    def levels(self) -> tuple[str, ...]:
        """Name of every level, coarse to fine; ``domain.level`` has the level of each count."""
        return self.plan.level_names

    def value(self, node: int | str) -> int:
        """Released count at a node, given by its index, name or path."""
        return int(self.values[self.tree.find(node)])

    @cached_property
    def model(self) -> Model:
        """The noise and the invariant of the release, worked out from its plan and nodes."""
        return build_model(self.plan, self.domain)

    @cached_property
    def mechanism(self) -> Certified:
        """The mechanism that drew the release: conditioned or imaged noise."""
        return choose_method(self.model)

    @cached_property
    def measurements(self) -> Measurements | None:
        """The noisy measurements of the release; None if they are not published."""
        if self.measured_rows is None:
            return None
        if isinstance(self.domain, Workload):
            column = self.measured_rows[1].column("measurement")
            y = np.array([np.nan if v is None else v for v in column], dtype=np.float64)
            known = consistent(self.domain)
            if self.model.resolved.pinned.any():
                known = known & exactly(np.flatnonzero(self.model.resolved.pinned).tolist())
            return Measurements(y, self.model.mechanism, known, self.domain)
        return read_measurements(self.directory)

    def posterior(
        self, prior: Literal["flat", "poisson", "negative-binomial"] | Prior = "flat"
    ) -> Posterior:
        """Law of the confidential counts given the release, see `congenial.posterior`.

        If measurements are published, it is the law given the measurements: the table is made from
        them and adds nothing.

        Parameters
        ----------
        prior : {"flat", "poisson", "negative-binomial"} or Prior

        Raises
        ------
        UnsupportedError
            If the release is an image without measurements, or was conditioned on more than a
            tree that adds up, exact counts and bounds.

        Notes
        -----
        The law of a release that was conditioned on bounds has a normaliser N(x) that depends on
        the counts: the probability that the noise alone keeps to the bounds. The posterior is then
        exact for the prior times N(x), which takes counts near their bounds to be rarer than
        `prior` does. So its intervals of leaves hold about as often as asked on average over
        tables like this one, single ones far less often, such as a large count beside many near
        zero; and those of counts above the leaves, and of sums, may hold far less often, or never,
        as how far the noise of many small counts shifts their sums is not undone. How often those
        of leaves hold was measured: the row "conditioning, ≥ 0, posterior" of ``python -m papers
        coverage``. Intervals that are proved for every count are
        `congenial.inference.inverted_intervals`.
        """
        if self.measurements is not None:
            found = self.measurements
            return posterior(found.y, found.mechanism, found.invariant & nonnegative(), prior)
        return posterior_of_table(self.model, self.values, prior)

    def to_arviz(
        self,
        draws: int = 1000,
        *,
        prior: Literal["flat", "poisson", "negative-binomial"] | Prior = "flat",
        rng: Randomness | None = None,
    ) -> Any:
        """Put the release, and draws of the counts behind it, in the form that ArviZ takes.

        Parameters
        ----------
        draws : int
            Independent draws of `posterior`; 0 for none, which serves every release.
        prior : {"flat", "poisson", "negative-binomial"} or Prior
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


def read_release(directory: str | Path) -> Release:
    """Read a release from its directory.

    Parameters
    ----------
    directory : path
        As `congenial.release` or ``congenial release`` wrote it.

    Returns
    -------
    Release

    Raises
    ------
    ReleaseError
        If the directory holds no release, or a file is not the one that its certificate names.

    Notes
    -----
    The certificate's claims are taken as they stand; `congenial.verify` works them out anew.

    Examples
    --------
    >>> import congenial as cg
    >>> found = cg.read_release("release")
    >>> found.levels
    ('root', 'borough', 'zone')
    """
    place = files.release_directory(directory)
    certificate = read_certificate(place / files.CERTIFICATE)
    for name in sorted({files.CSV, files.PARQUET, *certificate.files}):
        stated = certificate.files.get(name)
        if not (place / name).is_file() or files.sha256(place / name) != stated:
            raise ReleaseError(
                f"{name} is not the file that the certificate of {place} names; run congenial "
                "verify, and get the release anew."
            )
    try:
        plan = msgspec.convert(certificate.plan, Plan)
    except (CongenialError, msgspec.ValidationError) as error:
        raise ReleaseError(
            f"the plan in the certificate of {place} is not one ({reason_of(error)}); get the "
            "release anew."
        ) from None
    return read_files(place, certificate, plan)


def read_files(place: Path, certificate: Certificate, plan: Plan) -> Release:
    """Read both tables of a release, and rebuild its tree."""
    csv, parquet = files.read_tables(place)
    stamped = certificate.simulation is not None
    names = plan.place_names
    readings = () if plan.table is None else plan.table.readings
    expected = files.table_columns(
        names,
        readings=readings,
        intervals=interval_columns(simultaneous=plan.accuracy.simultaneous),
        truth=certificate.simulation is not None and certificate.simulation.with_truth,
        stamped=stamped,
    )
    _check_columns((csv, parquet), expected, (files.CSV, files.PARQUET))
    domain: Tree | Workload
    if plan.table is None:
        domain = files.tree_of(parquet, names, files.PARQUET)
    else:
        domain = workload_of(parquet.rows, plan, files.PARQUET)
    for row in parquet.rows:
        if row[2] != plan.hierarchy.root:
            raise ReleaseError(f"a row of {files.PARQUET} does not start at the plan's root.")
    value = parquet.column("value")
    if not all(
        isinstance(v, int)
        for name, _ in expected
        if name in ("value", "truth")
        for v in parquet.column(name)
    ):
        raise ReleaseError(f"{files.PARQUET} has a row without a value.")
    _check_size(parquet, ("value", "truth"), files.PARQUET)
    measured = None
    if plan.release.measurements:
        measured = files.read_measurement_tables(place)
        columns = files.measurement_columns(names, readings=readings, stamped=stamped)
        _check_columns(measured, columns, files.MEASUREMENTS)
        rows, wide = measured[1].rows, [name for name, _ in expected].index("value")
        if len(rows) != len(parquet.rows) or any(
            own[:wide] != row[:wide] for own, row in zip(rows, parquet.rows, strict=True)
        ):
            raise ReleaseError(
                f"{files.MEASUREMENTS_PARQUET} does not have the nodes of {files.PARQUET}, in its "
                "order."
            )
        _check_size(measured[1], ("measurement",), files.MEASUREMENTS_PARQUET)
    values = np.array(value, dtype=np.int64)
    return Release(place, certificate, plan, domain, values, csv, parquet, measured)


def _check_size(table: FileRows, columns: Sequence[str], name: str) -> None:
    """Refuse numbers whose sums and intervals could exceed 64 bits."""
    for column in {*columns} & {known for known, _ in table.columns}:
        if any(isinstance(v, int) and abs(v) > _MOST for v in table.column(column)):
            raise ReleaseError(
                f"{name} has a {column} beyond 2^53, which no count of rows comes near."
            )


def _check_columns(
    tables: tuple[FileRows, FileRows], expected: files.Columns, names: tuple[str, str]
) -> None:
    csv, parquet = tables
    if parquet.columns != expected:
        raise ReleaseError(
            f"{names[1]} has the columns {_named(parquet.columns)}; the plan gives "
            f"{_named(expected)}."
        )
    if [n for n, _ in csv.columns] != [n for n, _ in expected]:
        raise ReleaseError(f"{names[0]} has other columns than {names[1]}.")


def _named(columns: files.Columns) -> str:
    return ", ".join(f"{name} {kind}" for name, kind in columns)
