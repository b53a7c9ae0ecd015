"""The noisy measurements of a release, and the prior fitted to them, written and read back."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from congenial.domain.tree import Tree
from congenial.domain.workload import Workload
from congenial.errors import ReleaseError
from congenial.invariants.written import Invariant, consistent, exactly
from congenial.noise.additive import Additive
from congenial.noise.law import find_law, law_names
from congenial.plan.cross_table import MARGIN
from congenial.plan.plan import Plan
from congenial.releases import directory as files
from congenial.releases.file_table import FileTable, Numbers, Texts, repeated
from congenial.releases.rows import tree_of
from congenial.releases.specification import LevelAlpha
from congenial.types import BoolArray, FloatArray, IntArray

# In the column of noise laws: counts published exactly, and counts that are not measured.
EXACT, NOT_MEASURED = "none: exact", "none: not measured"
# Columns of the files of measurements.
COLUMNS = ("measurement", "noise", "scale")

# Numbers of a prior are below this; those of fitted ones are far below it.
_MOST = 1e12


@dataclass(frozen=True, eq=False)
class Measurements:
    """Noisy measurements of nodes or queries, as `congenial.posterior` takes them.

    Attributes
    ----------
    y : ndarray of float64, shape (n,)
        Integers: unbiased measurements, or exact counts where these are published; NaN for a count
        that is neither.
    mechanism : Additive
        The noise; its scale is inf for a count without a measurement.
    invariant : Invariant
        Counts add up, and some are exact. Add ``congenial.nonnegative()``: a measurement may be
        negative, but no count is.
    tree : Tree or Workload
        What was measured.
    """

    y: FloatArray
    mechanism: Additive
    invariant: Invariant
    tree: Tree | Workload


def read_measurements(path: str | Path) -> Measurements:
    """Read the noisy measurements of a release.

    Parameters
    ----------
    path : path
        The directory of a release whose plan publishes measurements, or its
        ``measurements.parquet``.

    Returns
    -------
    Measurements

    Raises
    ------
    ReleaseError
        If there is no such file, or it is not one of measurements.

    Notes
    -----
    The file is taken as it is; `congenial verify` checks it against its certificate.

    Examples
    --------
    >>> import congenial as cg
    >>> found = read_measurements("release")
    >>> known = found.invariant & cg.nonnegative()
    >>> law = cg.posterior(found.y, found.mechanism, known)
    """
    place = Path(path)
    file = place / files.MEASUREMENTS_PARQUET if place.is_dir() else place
    if not file.is_file():
        raise ReleaseError(
            f"{file} does not exist; give the directory of a release whose plan has publish = "
            "['table', 'measurements'] under [release]."
        )
    table = files.read_file(file)
    names = [name for name, _ in table.columns]
    own = [name for name in names if name != "note"][-3:]
    if names[:2] != ["level", "level_name"] or own != [*COLUMNS]:
        raise ReleaseError(
            f"{file} has the columns {', '.join(names)}; give the measurements.parquet of a "
            "release."
        )
    if MARGIN in names[3 : names.index("measurement")]:
        raise ReleaseError(
            f"{file} has measurements of a table's margins; take the `measurements` of "
            "read_release(directory), which knows the table."
        )
    tree = tree_of(table, names[2 : names.index("measurement")], file.name)
    return measurements_of(table, tree, file.name)


def measurements_of(table: FileTable, domain: Tree | Workload, what: str) -> Measurements:
    """Return the measurements in the rows of a file, which are those of a domain."""
    noise = table.texts("noise")
    y, scale = (
        np.where(numbers.known, numbers.values, np.nan)
        for numbers in (table.numbers("measurement"), table.numbers("scale"))
    )
    exact, none = (noise.codes == noise.code([word])[0] for word in (EXACT, NOT_MEASURED))
    noisy = ~(exact | none)
    laws = np.unique(noise.codes[noisy])
    law = noise.words[laws[0]] if laws.size == 1 and laws[0] >= 0 else ""
    if law not in law_names() or not (scale[noisy] > 0.0).all() or np.isnan(y[noisy | exact]).any():
        raise ReleaseError(
            f"{what} has a measurement without its number or the law or scale of its noise; give "
            "the file as the release wrote it."
        )
    known = consistent(domain)
    if exact.any():
        known = known & exactly(np.flatnonzero(exact).tolist())
    mechanism = Additive(find_law(law)(np.where(noisy, scale, np.inf)), domain)
    return Measurements(y, mechanism, known, domain)


def measurement_columns(
    mechanism: Additive, pinned: BoolArray, y: IntArray
) -> dict[str, Numbers | Texts]:
    """Return the columns of the measurements, by name."""
    scales = mechanism.scales
    noisy = np.isfinite(scales) & ~pinned
    kind = np.where(noisy, 0, np.where(pinned, 1, 2))
    return {
        "measurement": Numbers(y, noisy | pinned),
        "noise": repeated((mechanism.noise.name, EXACT, NOT_MEASURED), kind),
        "scale": Numbers(np.where(noisy, scales, 1.0), noisy),
    }


def stated_prior(plan: Plan, alpha: FloatArray, spread: FloatArray) -> tuple[LevelAlpha, ...]:
    """Return a fitted prior as a certificate states it, given the numbers of each level."""
    numbers = alpha[1:].tolist(), spread[1:].tolist()
    levels = zip(plan.level_names[1:], *numbers, strict=True)
    return tuple(LevelAlpha(*each) for each in levels)


def prior_numbers(plan: Plan, prior: tuple[LevelAlpha, ...]) -> tuple[FloatArray, FloatArray]:
    """Return alpha and spread of each level, given the prior that a certificate states.

    Raises ReleaseError if the prior does not fit the plan.
    """
    alpha = np.array([1.0, *(level.alpha for level in prior)])
    spread = np.array([0.0, *(level.spread for level in prior)])
    named = tuple(level.level for level in prior) == tuple(plan.level_names[1:])
    right = (alpha > 0.0).all() and (spread >= 0.0).all() and max(alpha.max(), spread.max()) < _MOST
    if not named or not right:
        raise ReleaseError(
            f"the prior has no alpha above 0 and no spread from 0, both below {_MOST:g}, for each "
            "level below the root; get a fresh copy of the release."
        )
    return alpha, spread
