"""A release read back from its directory: the certificate, both tables, the plan and the tree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import numpy.typing as npt

from congenial.accounting.mechanism import Certified
from congenial.domain.tree import Tree
from congenial.errors import ReleaseError
from congenial.plan.plan import Plan
from congenial.releases import directory as files
from congenial.releases.certificate import Certificate
from congenial.releases.directory import FileRows
from congenial.releases.intervals import interval_columns
from congenial.releases.model import Model, build_model, choose_method

# Larger counts show a damaged file: sums of counts up to this stay within 64 bits.
_MOST = 2**53


@dataclass(frozen=True, eq=False)
class Contents:
    """A release whose files could be read."""

    certificate: Certificate
    # `csv` and `parquet`: The same rows, if nothing is wrong with the release.
    csv: FileRows
    parquet: FileRows
    plan: Plan  # That of the certificate.
    tree: Tree  # Its nodes are in the order of the rows.
    value: npt.NDArray[np.int64]  # ndarray of int64, shape (n,): The released counts.
    # CSV and Parquet of the measurements; None where the plan publishes none.
    measurements: tuple[FileRows, FileRows] | None = None

    @cached_property
    def model(self) -> Model:
        """The plan's noise, calibrated on the released nodes."""
        return build_model(self.plan, self.tree)

    @cached_property
    def mechanism(self) -> Certified:
        """The mechanism that drew the release."""
        return choose_method(self.model)


def read_contents(place: Path, certificate: Certificate, plan: Plan) -> Contents:
    """Read both tables of a release, and rebuild its tree."""
    csv, parquet = files.read_tables(place)
    stamped = certificate.simulation is not None
    expected = files.table_columns(
        plan.level_names,
        intervals=interval_columns(simultaneous=plan.accuracy.simultaneous),
        truth=certificate.simulation is not None and certificate.simulation.with_truth,
        stamped=stamped,
    )
    _check_columns((csv, parquet), expected, (files.CSV, files.PARQUET))
    tree = files.tree_of(parquet, plan.level_names, files.PARQUET)
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
        columns = files.measurement_columns(plan.level_names, stamped=stamped)
        _check_columns(measured, columns, files.MEASUREMENTS)
        rows, wide = measured[1].rows, 2 + len(plan.level_names)
        if len(rows) != len(parquet.rows) or any(
            own[:wide] != row[:wide] for own, row in zip(rows, parquet.rows, strict=True)
        ):
            raise ReleaseError(
                f"{files.MEASUREMENTS_PARQUET} does not have the nodes of {files.PARQUET}, in its "
                "order."
            )
        _check_size(measured[1], ("measurement",), files.MEASUREMENTS_PARQUET)
    found = np.array(value, dtype=np.int64)
    return Contents(certificate, csv, parquet, plan, tree, found, measured)


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
