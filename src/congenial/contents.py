"""A release read back from its directory: the certificate, both tables, the plan and the tree."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from congenial import files
from congenial.certificate import Certificate
from congenial.errors import ReleaseError
from congenial.files import Table
from congenial.model import Model, build_model
from congenial.plan import Plan
from congenial.tree import Tree


@dataclass(frozen=True, eq=False)
class Contents:
    """A release whose files could be read.

    Attributes
    ----------
    certificate : Certificate
    csv, parquet : Table
        The same rows, if nothing is wrong with the release.
    plan : Plan
        That of the certificate.
    tree : Tree
        Its nodes are in the order of the rows.
    value : ndarray of int64, shape (n,)
        The released counts.
    """

    certificate: Certificate
    csv: Table
    parquet: Table
    plan: Plan
    tree: Tree
    value: npt.NDArray[np.int64]

    def model(self) -> Model:
        """Calibrate the plan's noise on the released nodes."""
        return build_model(self.plan, self.tree)


def read_contents(place: Path, certificate: Certificate, plan: Plan) -> Contents:
    """Read both tables of a release, and rebuild its tree.

    Parameters
    ----------
    place : Path
    certificate : Certificate
    plan : Plan
        The one that the certificate holds.

    Raises
    ------
    ReleaseError
        If a table cannot be read or does not have the rows and columns that the plan gives.
    StructureError
        If its rows are no tree.
    """
    csv, parquet = files.read_tables(place)
    expected = files.table_columns(
        plan.level_names,
        truth=certificate.simulation is not None and certificate.simulation.with_truth,
        stamped=certificate.simulation is not None,
    )
    if parquet.columns != expected:
        raise ReleaseError(
            f"{files.PARQUET} has the columns {_named(parquet.columns)}; the plan gives "
            f"{_named(expected)}."
        )
    if [n for n, _ in csv.columns] != [n for n, _ in expected]:
        raise ReleaseError(f"{files.CSV} has other columns than {files.PARQUET}.")
    tree = _tree(parquet, plan)
    value = parquet.column("value")
    if not all(
        isinstance(v, int)
        for name, _ in expected
        if name in ("value", "truth")
        for v in parquet.column(name)
    ):
        raise ReleaseError(f"{files.PARQUET} has a row without a value.")
    return Contents(certificate, csv, parquet, plan, tree, np.array(value, dtype=np.int64))


def _named(columns: tuple[tuple[str, str], ...]) -> str:
    return ", ".join(f"{name} {kind}" for name, kind in columns)


def _tree(table: Table, plan: Plan) -> Tree:
    """Rebuild the tree, nodes in the order of the rows."""
    names = plan.level_names
    paths: list[tuple[object, ...]] = []
    for at, row in enumerate(table.rows):
        parts = row[2 : 2 + len(names)]
        path = tuple(part for part in parts if part is not None)
        if not path or parts[: len(path)] != path:
            raise ReleaseError(f"row {at + 1} of {files.PARQUET} has a gap in its path.")
        if row[:2] != (len(path) - 1, names[len(path) - 1]):
            raise ReleaseError(f"the row of {_shown(path)} names another level than its path has.")
        if path[0] != plan.hierarchy.root:
            raise ReleaseError(f"the row of {_shown(path)} does not start at the plan's root.")
        paths.append(path)
    index = {path: at for at, path in enumerate(paths)}
    for at, path in enumerate(paths):
        if index[path] != at:
            raise ReleaseError(f"the node {_shown(path)} has more than one row.")
        if len(path) > 1 and path[:-1] not in index:
            raise ReleaseError(f"the node {_shown(path)} has no row for its parent.")
    parents = [index[path[:-1]] if len(path) > 1 else -1 for path in paths]
    return Tree.from_parents(np.array(parents, dtype=np.int64), [str(path[-1]) for path in paths])


def _shown(path: tuple[object, ...]) -> str:
    return "/".join(map(str, path))
