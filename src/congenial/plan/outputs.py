"""The sections of a plan that say what a release writes and how accurate it should be."""

from __future__ import annotations

from sys import float_info
from typing import Annotated, Literal, get_args

from msgspec import Meta

from congenial.plan.fields import Section, check_once, refuse
from congenial.plan.sections import ByLevel, Nodes
from congenial.wording import on_a_line

Product = Literal["table", "measurements"]
TABLE, MEASUREMENTS = PRODUCTS = get_args(Product)
# Columns of the written tables that are not levels; no level may be called like one.
OWN_COLUMNS = (
    *("level", "level_name", "value", "truth", "note"),
    *("lower", "upper", "level_lower", "level_upper", "measurement", "noise", "scale"),
)
# Within these limits the tables of the noise cover the tails.
LEAST_CONFIDENCE, MOST_CONFIDENCE = 0.5, 0.999
Confidence = Annotated[
    float,
    Meta(
        ge=LEAST_CONFIDENCE,
        le=MOST_CONFIDENCE,
        description=f"give a number from {LEAST_CONFIDENCE:g} to {MOST_CONFIDENCE:g}",
    ),
]
Margin = Annotated[
    float,
    Meta(ge=0, le=float_info.max, description="give the largest margin that serves, in counts"),
]
Sum = Annotated[
    Nodes, Meta(min_length=1, description="give a list of nodes, such as ['North', 'South/S1']")
]
Sums = Annotated[
    dict[str, Sum],
    Meta(description="give a table of lists of nodes, such as { both = ['North', 'South'] }"),
]
Products = Annotated[
    tuple[Product, ...], Meta(description=f"give a list of texts in quotes, ['{TABLE}'] at least")
]


class Publication(Section, frozen=True):
    """The tables written from one draw of noise."""

    # "table", the counts that satisfy the invariants; and "measurements", the noisy counts behind
    # them.
    publish: Products = (TABLE,)

    def __post_init__(self) -> None:
        """Check what the types do not say."""
        check_once("release.publish", self.publish)
        if TABLE not in self.publish:
            refuse("release.publish", f"does not hold {TABLE!r}", f"give ['{TABLE}'] at least")

    @property
    def measurements(self) -> bool:
        """Whether the noisy measurements are written too."""
        return MEASUREMENTS in self.publish


class Accuracy(Section, frozen=True):
    """The intervals of a release, and the accuracy that its readers need."""

    # Least probability with which an interval holds its count. For intervals by the posterior it
    # holds on average only.
    confidence: Confidence = 0.9
    # Largest error margin, in counts, that is accepted at a level.
    required: Annotated[dict[str, Margin], ByLevel] | None = None
    # Whether to add intervals that hold for all counts of a level at once.
    simultaneous: bool = False
    sums: Sums | None = None  # Nodes whose sum gets an interval, by a name for it.

    def __post_init__(self) -> None:
        """Check what the types do not say."""
        for name, nodes in (self.sums or {}).items():
            if not name.strip():
                refuse("accuracy.sums", f"has a sum called {name!r}", "give each sum a name")
            check_once(f"accuracy.sums.{on_a_line(name)}", nodes, "name each node once")

    @property
    def alpha(self) -> float:
        """Largest probability with which an interval misses its count."""
        return 1.0 - self.confidence
