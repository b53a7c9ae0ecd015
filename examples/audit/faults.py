"""Plant faults in mechanisms, audit them, and print as a table which ones were found.

Every mechanism claims something for a city of groups and leaves whose total is published exactly
and whose counts are not negative; epsilon is 1 under Laplace noise. The audit is told the law of
the draws, the law that is claimed, or none. `--write` puts the table into the page that shows it.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import congenial as cg

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "how-to" / "audit-and-verify.md"
BEGIN, END = "<!-- table: examples/audit/faults.py -->\n", "<!-- end of table -->\n"
SMALL, LARGE = (2, 2), (5, 60)
# The leaf that a fault is in: one of 300, or the first of four.
LEAVES = {SMALL: 0, LARGE: 217}
NO_NOISE = 0.05


@dataclass(frozen=True)
class Planted:
    """Claims what one mechanism does, and draws by another."""

    claimed: Any
    drawn: Any
    told: str

    def __getattr__(self, name: str) -> Any:
        """Tell a law only where there is one to tell; the rest is as claimed."""
        if name in ("log_prob", "marginal", "joint"):
            told = {"its own": self.drawn, "as claimed": self.claimed}.get(self.told)
            if told is None:
                raise AttributeError(name)
            return getattr(told, name)
        return getattr(self.claimed, name)

    def sample(self, x: Any, size: int | None = None, rng: Any = None) -> Any:
        """Draw releases."""
        return self.drawn.sample(x, size, rng)


class Changed(NamedTuple):
    """Draws by a mechanism, of changed data or with changed releases."""

    inner: Any
    data: Callable[[Any], Any] = lambda x: x
    release: Callable[[Any, Any, Any], Any] = lambda z, _x, _rng: z

    def sample(self, x: Any, size: int | None = None, rng: Any = None) -> Any:
        """Draw releases."""
        x = np.array(x)
        return self.release(self.inner.sample(self.data(x), size, rng), x, rng)

    def log_prob(self, z: Any, x: Any) -> Any:
        """Log probability of releases of the changed data."""
        return self.inner.log_prob(z, self.data(np.array(x)))


@cache
def city(size: tuple[int, int]) -> cg.Tree:
    """Return a tree of so many groups with so many leaves each."""
    groups, leaves = size
    below = [1 + i // leaves for i in range(groups * leaves)]
    return cg.Tree.from_parents([-1] + [0] * groups + below)


@cache
def made(
    size: tuple[int, int],
    factor: float = 1.0,
    *,
    law: str = "laplace",
    leaf: bool = False,
    bounds: bool = True,
    charged: bool = True,
    way: str = "condition",
) -> Any:
    """Make a mechanism for epsilon 1, or one with another amount of noise."""
    tree = city(size)
    sums = cg.consistent(tree) & cg.exactly(0)
    invariants = sums & cg.nonnegative() if bounds else sums
    stated = invariants if charged else sums
    method: Any = "imaging" if way == "image" else "conditioning"
    noise = cg.calibrate(tree, stated, epsilon=1.0, neighbours="substitute", method=method)
    scales = factor * noise.spread
    if leaf:
        scales[tree.leaves[LEAVES[size]]] = NO_NOISE
    kind = cg.DiscreteGaussian if law == "gaussian" else cg.DiscreteLaplace
    queries = cg.Additive(kind(scales), tree)
    return (
        cg.image(queries, invariants, integer=True)
        if way == "image"
        else cg.condition(queries, invariants)
    )


def sometimes(chance: float) -> Callable[[Any, Any, Any], Any]:
    """Release the data themselves with a probability."""

    def release(z: Any, x: Any, rng: Any) -> Any:
        hit = (rng.bits(len(z)) >> np.uint64(11)) * 2.0**-53 < chance
        return np.where(hit[:, None], x, z)

    return release


def biased(size: tuple[int, int]) -> Callable[[Any], Any]:
    """Count one record of the leaf beside it in a leaf."""
    at = int(city(size).leaves[LEAVES[size]])

    def data(x: Any) -> Any:
        if x[at + 1] > 0:
            x[[at, at + 1]] += (1, -1)
        return x

    return data


def clipped(z: Any, _x: Any, _rng: Any) -> Any:
    """Set negative counts to 0."""
    return np.maximum(z, 0)


def at_one_dataset(z: Any, x: Any, _rng: Any) -> Any:
    """Release the data where some count is 1,234."""
    return np.where((x == 1234).any(), x, z)


class Case(NamedTuple):
    """A fault, where it is planted, and the law that the audit is told."""

    fault: str
    size: tuple[int, int]
    told: str
    drawn: Callable[[], Any]
    claimed: Callable[[], Any] | None = None
    claim: str = "substitute"


def wrong_noise(
    fault: str,
    size: tuple[int, int],
    told: str,
    factor: float = 1.0,
    *,
    leaf: bool = False,
    **law: Any,
) -> Case:
    """Plant a fault in the noise; what is claimed has the same `law` without the fault."""

    def claimed() -> Any:
        return made(size, **law)

    return Case(
        fault, size, told, lambda: made(size, factor, leaf=leaf, **law), claimed if law else None
    )


def released(chance: float, size: tuple[int, int]) -> Case:
    """Plant a release of the data themselves."""
    return Case(
        f"the data released, probability {chance}",
        size,
        "none",
        lambda: Changed(made(size), release=sometimes(chance)),
    )


def cases() -> list[Case]:
    """List all faults."""
    own, claimed, none = "its own", "as claimed", "none"
    bare = "one leaf without noise"
    gaussian: dict[str, Any] = {"law": "gaussian"}
    image: dict[str, Any] = {"way": "image"}
    return [
        wrong_noise("no fault", SMALL, own),
        wrong_noise("no fault", LARGE, own),
        wrong_noise("noise × 0.97", SMALL, own, 0.97),
        wrong_noise("noise × 0.9", SMALL, own, 0.9),
        wrong_noise("noise × 0.97", LARGE, own, 0.97),
        wrong_noise("noise × 0.8", LARGE, own, 0.8),
        wrong_noise("noise × 0.8", LARGE, claimed, 0.8),
        wrong_noise("noise × 0.8", LARGE, none, 0.8),
        wrong_noise("noise × 0.5", SMALL, none, 0.5),
        wrong_noise("no fault, Gaussian noise", LARGE, own, **gaussian),
        wrong_noise("Gaussian noise × 0.97", SMALL, own, 0.97, **gaussian),
        wrong_noise("Gaussian noise × 0.9", SMALL, own, 0.9, **gaussian),
        wrong_noise("Gaussian noise × 0.8", LARGE, own, 0.8, **gaussian),
        wrong_noise("noise × 0.9, imaging", SMALL, own, 0.9, **image),
        wrong_noise("noise × 0.4, imaging", SMALL, none, 0.4, **image),
        wrong_noise(bare, LARGE, claimed, leaf=True),
        wrong_noise(bare, LARGE, none, leaf=True),
        wrong_noise(f"{bare}, imaging", LARGE, none, leaf=True, **image),
        Case("one leaf off by 1", LARGE, claimed, lambda: Changed(made(LARGE), biased(LARGE))),
        Case("one leaf off by 1", LARGE, none, lambda: Changed(made(LARGE), biased(LARGE))),
        released(0.01, SMALL),
        released(0.01, LARGE),
        released(0.0001, LARGE),
        Case(
            "the data released where a count is 1,234",
            SMALL,
            none,
            lambda: Changed(made(SMALL), release=at_one_dataset),
        ),
        Case(
            "bounds not charged for",
            SMALL,
            own,
            lambda: made(SMALL, charged=False),
            lambda: made(SMALL, charged=False, bounds=False),
        ),
        Case("the claim for add-remove", SMALL, own, lambda: made(SMALL), claim="add-remove"),
        Case(
            "every record counted twice",
            SMALL,
            own,
            lambda: Changed(made(SMALL), lambda x: 2 * x),
        ),
        Case(
            "negative counts set to 0 after the draw",
            SMALL,
            claimed,
            lambda: Changed(made(SMALL, bounds=False), release=clipped),
        ),
    ]


def row(case: Case) -> str:
    """Audit one case; return its row of the table."""
    claimed = made(case.size) if case.claimed is None else case.claimed()
    drawn, claim = case.drawn(), None
    planted: Any = Planted(claimed, drawn, case.told)
    if case.told == "its own" and "imaging" in case.fault:  # whose law is that of its measurements
        planted, claim = drawn, claimed.guarantee("substitute")
    if case.claim != "substitute":
        free = cg.consistent(city(case.size)) & cg.nonnegative()
        claim = cg.condition(claimed.mechanism, free).guarantee("add-remove")
    found = cg.audit(planted, neighbours="substitute", claim=claim)
    failed = [
        f"{finding.check}: {finding.found:.3g} > {finding.stated:.3g}"
        for finding in found.findings
        if not finding.passed
    ]
    groups, leaves = case.size
    told = "; ".join(failed) if failed else "nothing found"
    return f"| {case.fault} | {groups} × {leaves} | {case.told} | {told} |\n"


def table(some: Iterable[Case]) -> str:
    """Return the table of some cases in Markdown."""
    head = "| fault | groups × leaves | law given | found |\n| --- | --- | --- | --- |\n"
    return head + "".join(map(row, some))


def main() -> None:
    """Print the table, or write it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="write the table into its page")
    written = table(cases())
    if not parser.parse_args().write:
        print(written, end="")
        return
    text = PAGE.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    after = rest.partition(END)[2]
    PAGE.write_text(before + BEGIN + written + END + after, encoding="utf-8")


if __name__ == "__main__":
    main()
