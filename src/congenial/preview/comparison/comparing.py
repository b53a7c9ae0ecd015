"""Compare every method that fits a plan; no confidential row is read unless that is demanded."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from congenial.data.counts import build_tree
from congenial.domain.tree import Tree
from congenial.errors import (
    ArgumentError,
    CongenialError,
    InvariantError,
    NumericalError,
    PrivacyError,
    UnsupportedError,
)
from congenial.plan.plan import Plan
from congenial.preview.comparison.methods import contenders
from congenial.preview.comparison.outcome import (
    Comparison,
    Contender,
    Refused,
    Result,
)
from congenial.preview.comparison.simulate import simulate
from congenial.preview.comparison.trial_counts import (
    SPREAD,
    Basis,
    from_file,
    from_rows,
    made_up,
)
from congenial.randomness import seeded
from congenial.releases.certificate import plain_plan

Notify = Callable[[str], None]
REPLICATES = 200
# Added to a seed for the noise, whose words must not be those that counts were made up with.
_NOISE = 2**40


@dataclass(frozen=True)
class Source:
    """Which counts to compare on; the first four exclude one another.

    Attributes
    ----------
    total : int, optional
        Make counts up with this total; 100 a leaf where nothing is given.
    file : Path, optional
        Public counts; see `congenial.preview.comparison.trial_counts.from_file`.
    public : bool
        The plan's own rows, which the user declares public.
    with_truth : bool
        The plan's own confidential rows, for a simulation that is stamped not private.
    spread : float
        Of made-up counts.
    """

    total: int | None = None
    file: Path | None = None
    public: bool = False
    with_truth: bool = False
    spread: float = SPREAD

    def __post_init__(self) -> None:
        """Check that one source is given at most.

        Raises
        ------
        ArgumentError
        """
        given = [
            name
            for name, there in (
                ("total", self.total is not None),
                ("file", self.file is not None),
                ("public", self.public),
                ("with_truth", self.with_truth),
            )
            if there
        ]
        if len(given) > 1:
            raise ArgumentError(
                f"{given[0]} and {given[1]} both say which counts to compare on; give one of them."
            )


def compare(
    plan: Plan,
    base: str | Path = ".",
    *,
    source: Source | None = None,
    delta: float | None = None,
    replicates: int = REPLICATES,
    seed: int = 1,
    notify: Notify | None = None,
) -> Comparison:
    """Draw releases by every method that fits a plan, and sum up their errors.

    Parameters
    ----------
    plan : Plan
    base : path
        Directory from which the plan's relative paths start.
    source : Source, optional
        Made-up counts where not given.
    delta : float, optional
        Lets Gaussian noise take part where the plan itself asks for none.
    replicates : int
        Releases of each method, at least 2.
    seed : int
        The same seed gives the same errors.
    notify : callable, optional
        Called with the share of the work that is done, and what is at work.

    Returns
    -------
    Comparison

    Raises
    ------
    ArgumentError
        If a number is out of range.
    PlanError, DataError, StructureError
        If the plan, its domain and the counts do not fit.
    PrivacyError, InvariantError, UnsupportedError
        If no method fits the plan.

    Notes
    -----
    Nothing is spent and nothing is written. Only the domain is read, and `source` where it names
    rows. A plan whose domain is "data" takes the nodes from the rows, which it declares
    unprotected.
    """
    if replicates < 2:
        raise ArgumentError(f"replicates is {replicates}; give at least 2.")
    source = source or Source()
    say = notify or (lambda _: None)
    say("reading the domain")
    tree = build_tree(plan, base=Path(base))
    basis = _basis(plan, tree, Path(base), source, seed)
    ways = list(contenders(plan, delta=delta))
    results: list[Result] = []
    refused: list[Refused] = []
    failures: list[CongenialError] = []
    for at, contender in enumerate(ways):
        bar = _Bar(say, contender, at * replicates, len(ways) * replicates)
        bar.drawn(0)
        try:
            found = simulate(
                plan,
                tree,
                contender,
                basis.counts,
                replicates=replicates,
                source=seeded(seed + _NOISE),
                delta=delta,
                drawn=bar.drawn,
            )
        except (PrivacyError, InvariantError, UnsupportedError, NumericalError) as error:
            refused.append(Refused(contender, str(error)))
            failures.append(error)
        else:
            results.append(found)
    if not results:
        raise failures[0]
    options = f"{basis.options} --replicates {replicates}"
    options += f" --simulate {seed}" if source.with_truth else f" --seed {seed}"
    if delta is not None:
        options = f"--delta {delta:g} {options}"
    told = basis.told
    if plan.hierarchy.domain == "data" and not (source.public or source.with_truth):
        told += ", but for the names of the nodes, which the plan leaves unprotected"
    return Comparison(
        plain_plan(plan),
        told,
        options,
        basis.stamp,
        replicates,
        seed,
        tuple(results),
        tuple(refused),
    )


class _Bar:
    """Says how far the work has come, never less than before."""

    def __init__(self, say: Notify, contender: Contender, done: int, whole: int) -> None:
        self.say, self.contender, self.done, self.whole = say, contender, done, whole

    def drawn(self, more: int) -> None:
        """Count releases in."""
        self.done += more
        name = f"{self.contender.name}, {self.contender.noise}"
        self.say(f"{100 * self.done // self.whole}% of all releases drawn; {name}")


def _basis(plan: Plan, tree: Tree, base: Path, source: Source, seed: int) -> Basis:
    if source.public or source.with_truth:
        return from_rows(plan, tree, base, public=source.public)
    if source.file is not None:
        return from_file(plan, tree, source.file, base, seed=seed, spread=source.spread)
    return made_up(tree, seed=seed, total=source.total, spread=source.spread)
