"""The result of an audit: its findings, and the limits of what they show."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from congenial.accounting.guarantee import Guarantee
from congenial.namespaces import renamed
from congenial.types import Values
from congenial.wording import aligned, html_table, many, rounded_up

# A dataset as the values of all queries, and another: neighbours.
Pair = tuple[Values, Values]
# Called with the name of each step as it begins.
Notify = Callable[[str], None]

# Columns of an audit as a table.
_HEAD = ("", "check", "found", "stated", "pairs", "outputs")
LIMITS = (
    "The column `found` has the result of a check, and `stated` the largest value that the "
    "guarantee allows. The column `pairs` has the number of compared pairs of datasets. The column "
    "`outputs` has the number of releases, noise values or draws of each dataset. A failed check "
    "shows a fault. Enumerated and computed checks prove the claim for the compared pairs of "
    "datasets only. Draws can refute a claim but never prove it."
)


def ignore(_: str) -> None:
    """Say nothing about a step."""


def announced(pairs: Sequence[Pair], notify: Notify, step: str) -> Iterator[Pair]:
    """Yield pairs, and notify of each one before: a step, its number and the number of all."""
    for number, pair in enumerate(pairs, start=1):
        notify(f"{step} {number:,} of {len(pairs):,}")
        yield pair


@dataclass(frozen=True)
class Finding:
    """The result of one check.

    Attributes
    ----------
    check : str
        "loss, enumerated" or "mass, enumerated"; "loss, computed" or "rho, computed";
        "delta", "loss", "law" or "invariant, from draws".
    passed : bool
        Whether `found` is within `stated`, rounding apart.
    found : float
        The largest loss or mass enumerated, the largest loss or rho computed, a lower confidence
        bound on delta, on epsilon or on the distance from the law, or the share of draws that
        violate the invariant.
    stated : float
        The largest value that the guarantee allows.
    pairs, outputs : int
        Number of pairs of datasets, and number of outputs, points or draws for each dataset.
    worst : tuple of two ndarray, or None
        The pair behind `found`.
    text : str
        The work done, in a sentence.
    """

    check: str
    passed: bool
    found: float
    stated: float
    pairs: int
    outputs: int
    worst: Pair | None
    text: str
    detail = renamed("detail", "text")

    @property
    def slack(self) -> float:
        """Difference between `stated` and `found`."""
        return self.stated - self.found


@dataclass(frozen=True, repr=False)
class Audit:
    """All findings of an audit; made by `congenial.audit`.

    Attributes
    ----------
    guarantee : Guarantee
        The claim that was audited.
    confidence : float
        Draws refute a true claim with probability 1 - confidence at most, all checks together.
    """

    guarantee: Guarantee
    findings: tuple[Finding, ...]
    confidence: float

    @property
    def passed(self) -> bool:
        """Whether no check failed."""
        return all(finding.passed for finding in self.findings)

    def __str__(self) -> str:
        """Return a line for each finding, and the limits of an audit."""
        return "\n".join([*aligned((_HEAD, *self._rows)), "", *self._texts, "", LIMITS])

    def __repr__(self) -> str:
        failed = sum(not finding.passed for finding in self.findings)
        checks = many(len(self.findings), "check")
        return f"Audit({checks}: {f'{failed} failed' if failed else 'all passed'})"

    def _repr_html_(self) -> str:
        claim = self.guarantee
        title = f"Audit of ({rounded_up(claim.epsilon, 6)}, {rounded_up(claim.delta, 2)})"
        notes = (*self._texts, LIMITS)
        return html_table(title, _HEAD, self._rows, len(self.findings), notes)

    @property
    def _rows(self) -> list[tuple[str, ...]]:
        """The numbers of each finding, as text."""
        return [
            (
                "ok" if f.passed else "FAILED",
                f.check,
                f"{f.found:.6g}",
                f"{f.stated:.6g}",
                f"{f.pairs:,}",
                f"{f.outputs:,}",
            )
            for f in self.findings
        ]

    @property
    def _texts(self) -> list[str]:
        return [f"{f.check}: {f.text}" for f in self.findings]
