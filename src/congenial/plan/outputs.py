"""The sections of a plan that say what a release writes and how accurate it should be."""

from __future__ import annotations

import math
from collections import Counter

import msgspec

from congenial.plan.fields import (
    is_number,
    nearest,
    on_a_line,
    one_of,
    refuse,
    show,
)

TABLE, MEASUREMENTS = PRODUCTS = ("table", "measurements")
# Columns of the written tables that are not levels; no level may be called like one.
OWN_COLUMNS = (
    *("level", "level_name", "value", "truth", "note"),
    *("lower", "upper", "level_lower", "level_upper", "measurement", "noise", "scale"),
)
# Within these a tail of the noise is neither most of it nor beyond what its tables hold.
LEAST_CONFIDENCE, MOST_CONFIDENCE = 0.5, 0.999


class Publication(msgspec.Struct, frozen=True):
    """What is written from one spending.

    Attributes
    ----------
    publish : tuple of str
        "table", the counts that obey the mandates; and "measurements", the noisy counts that it was
        made from.
    """

    publish: tuple[str, ...] = (TABLE,)

    def __post_init__(self) -> None:
        """Check what the types do not say."""
        for entry, times in Counter(self.publish).items():
            if entry not in PRODUCTS:
                text = f"give {one_of(PRODUCTS)}{nearest(entry, PRODUCTS)}"
                refuse("release.publish", f"holds {show(entry)}", text)
            if times > 1:
                refuse("release.publish", f"holds {entry!r} {times} times", "name it once")
        if TABLE not in self.publish:
            refuse("release.publish", f"does not hold {TABLE!r}", f"give ['{TABLE}'] at least")

    @property
    def measurements(self) -> bool:
        """Whether the noisy measurements are written too."""
        return MEASUREMENTS in self.publish


class Accuracy(msgspec.Struct, frozen=True):
    """The intervals of a release, and what its readers need.

    Attributes
    ----------
    confidence : float
        Least probability with which an interval holds its count; on average only where the
        certificate says that they come from the posterior.
    required : dict of str to float, optional
        Largest margin of error, in counts, that serves at a level.
    simultaneous : bool
        Whether to give intervals that hold for all counts of a level at once, too.
    sums : dict of str to tuple of str, optional
        Nodes whose sum gets an interval, by a name for it.
    """

    confidence: float = 0.9
    required: dict[str, float] | None = None
    simultaneous: bool = False
    sums: dict[str, tuple[str, ...]] | None = None

    def __post_init__(self) -> None:
        """Check what the types do not say."""
        share = self.confidence
        if not is_number(share) or not LEAST_CONFIDENCE <= share <= MOST_CONFIDENCE:
            refuse(
                "accuracy.confidence",
                f"is {show(share)}",
                f"give a number from {LEAST_CONFIDENCE:g} to {MOST_CONFIDENCE:g}",
            )
        for level, margin in (self.required or {}).items():
            if not is_number(margin) or not (margin >= 0 and math.isfinite(margin)):
                refuse(
                    f"accuracy.required.{level}",
                    f"is {show(margin)}",
                    "give the largest margin that serves, in counts",
                )
        for name, nodes in (self.sums or {}).items():
            key = f"accuracy.sums.{on_a_line(name)}"
            if not name.strip() or not nodes:
                refuse(key, f"is {show(list(nodes))}", "give a name, and at least one node")
            for entry, times in Counter(nodes).items():
                if not entry.strip() or times > 1:
                    refuse(key, f"holds {entry!r} {times} times", "name each node once")

    @property
    def alpha(self) -> float:
        """Largest probability with which an interval misses its count."""
        return 1.0 - self.confidence
