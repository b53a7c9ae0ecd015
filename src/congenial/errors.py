"""Every exception that congenial raises on purpose.

::

    CongenialError
    ├── ArgumentError          a Python argument that cannot be used
    ├── PlanError              a plan file that cannot be understood
    ├── DataError              rows, columns or files that do not fit the plan
    ├── StructureError         a tree or table that is not one
    ├── InvariantError         invariants that cannot be imposed
    │   └── InfeasibleError    no value satisfies all of them
    ├── PrivacyError           a guarantee that cannot be given
    │   └── EmptyNeighbourhoodError
    ├── UnsupportedError       a combination that no implemented method covers
    ├── NumericalError         the arithmetic cannot meet its error bound
    ├── LedgerError            a ledger that cannot be made, read or written
    │   └── BudgetError        a release that the rest of a budget does not cover
    └── ReleaseError           a release that cannot be written or verified

A message names the thing, the value and the remedy in one sentence. No message ever carries a
confidential count. An argument of a function that the command line also has stands in backquotes,
such as `overwrite=True`; the command line shows its option instead.
"""

from __future__ import annotations


class CongenialError(Exception):
    """Base class of every error raised on purpose."""


class ArgumentError(CongenialError, ValueError):
    """A Python argument has the wrong type, shape or value."""


class PlanError(CongenialError):
    """A plan file has a mistake."""


class DataError(CongenialError):
    """The rows, the lookup or their columns do not fit the plan."""


class StructureError(CongenialError, ValueError):
    """The nodes given do not form a tree."""


class InvariantError(CongenialError, ValueError):
    """An invariant cannot be imposed as it was given."""


class InfeasibleError(InvariantError):
    """No value satisfies all the invariants together."""


class PrivacyError(CongenialError):
    """No privacy guarantee can be given for this combination."""


class EmptyNeighbourhoodError(PrivacyError):
    """The invariants leave no neighbouring datasets, so a guarantee would say nothing."""


class UnsupportedError(CongenialError):
    """No implemented method covers this combination."""


class NumericalError(CongenialError):
    """The arithmetic cannot meet its own error bound."""


class LedgerError(CongenialError):
    """A ledger cannot be made, read or written, or does not fit the plan."""


class BudgetError(LedgerError):
    """The rest of a dataset's budget does not cover a release."""


class ReleaseError(CongenialError):
    """A release cannot be written, read or verified."""
