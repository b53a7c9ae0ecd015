"""Compare every method that fits a plan; confidential rows are read only on request."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Literal

import numpy as np

from congenial.data.counts import build_domain
from congenial.domain.tree import Tree
from congenial.domain.workload import Workload
from congenial.errors import (
    ArgumentError,
    CongenialError,
    InvariantError,
    NumericalError,
    PrivacyError,
    UnsupportedError,
)
from congenial.plan.plan import Plan, checked_plan
from congenial.preview.comparison.expected import work_of_fit
from congenial.preview.comparison.methods import build, contenders
from congenial.preview.comparison.outcome import Contender, Refused, Result, Seconds
from congenial.preview.comparison.outcome_tables import Comparison
from congenial.preview.comparison.tally import Tally
from congenial.preview.comparison.trial_counts import SPREAD, find_basis
from congenial.randomness import Randomness, seeded
from congenial.releases.certificate import plain_plan
from congenial.types import IntArray

Notify = Callable[[str], None]
# Default releases of each method: most, fewest, and most counts of all of them.
REPLICATES, _FEWEST, _MOST_COUNTS = 200, 10, 4_000_000
# Added to the seed for the noise, so that noise and made-up counts have different random words.
_NOISE = 2**40

# Most released values in memory at once, and fewest batches of releases.
VALUES, STEPS = 8_000_000, 10
# Most products of one pass of the posterior, over all replicates; they take some minutes.
MOST_FITTED_WORK = 2e10
# Most nodes for which a separate draw loads the kernels first, so that times exclude it.
WARMED = 20_000


def compare(
    plan: Plan,
    base: str | Path = ".",
    *,
    total: int | None = None,
    counts: str | Path | None = None,
    rows: Literal["public", "confidential"] | None = None,
    spread: float = SPREAD,
    delta: float | None = None,
    replicates: int | None = None,
    seed: int = 1,
    notify: Notify | None = None,
) -> Comparison:
    """Simulate releases by every method that fits a plan, and sum up their errors.

    Each method has the plan's final epsilon. Releases are of made-up counts unless `counts` or
    `rows` are given; then no confidential row is read. Nothing is spent and nothing is written.

    Parameters
    ----------
    plan : Plan
    base : path
        Directory from which the plan's relative paths start.
    total : int, optional
        Total of the made-up counts; by default 20 for each leaf.
    counts : path, optional
        Public counts to compare on instead: a CSV or Parquet file with the levels' columns and
        "count" or "value", such as an earlier release.
    rows : {"public", "confidential"}, optional
        Compare on the plan's own rows, declared public or confidential. A comparison on
        confidential rows is not private and is stamped so.
    spread : float
        Standard deviation, from 0 to 10, of the log of the random weights by which each made-up
        count is divided among its parts.
    delta : float, optional
        Also compare Gaussian noise at this delta, if the plan has no delta.
    replicates : int, optional
        Releases of each method, at least 2; by default 200, and fewer of more than 20,000 counts.
    seed : int
        Of the made-up counts and of the noise: the same seed gives the same errors.
    notify : callable, optional
        Called with the share of the work that is done, and the method at work.

    Returns
    -------
    Comparison
        ``print`` shows it as tables.

    Raises
    ------
    ArgumentError
        If a number is out of range, or two of `total`, `counts` and `rows` are given.
    PlanError, DataError, StructureError
        If the plan, its domain and the counts do not fit.
    PrivacyError, InvariantError, UnsupportedError
        If no method fits the plan.

    Notes
    -----
    A plan whose domain is "data" takes the nodes from the rows, which it declares unprotected.

    Examples
    --------
    >>> import congenial as cg
    >>> found = cg.compare(cg.read_plan("plan.toml"), total=1000, replicates=2)
    >>> [result.contender.name for result in found.results if result.satisfied]
    ['exact conditioning', 'imaging L2', 'imaging L1', 'topdown', 'posterior']
    """
    checked_plan(plan)
    if replicates is not None and replicates < 2:
        raise ArgumentError(f"replicates is {replicates}; give at least 2.")
    say = notify or (lambda _: None)
    say("reading the domain")
    tree = build_domain(plan, base=Path(base))
    if replicates is None:
        replicates = max(_FEWEST, min(REPLICATES, _MOST_COUNTS // len(tree)))
    basis = find_basis(
        plan, tree, Path(base), total=total, counts=counts, rows=rows, spread=spread, seed=seed
    )
    ways = list(contenders(plan, delta=delta))
    results: list[Result] = []
    refused: list[Refused] = []
    failures: list[CongenialError] = []
    for at, contender in enumerate(ways):
        drawn = partial(_progress, say, contender, at * replicates, len(ways) * replicates)
        drawn(0)
        try:
            found = simulate(
                plan,
                tree,
                contender,
                basis.counts,
                replicates=replicates,
                source=seeded(seed + _NOISE),
                delta=delta,
                drawn=drawn,
            )
        except (PrivacyError, InvariantError, UnsupportedError, NumericalError) as error:
            refused.append(Refused(contender, str(error)))
            failures.append(error)
        else:
            results.append(found)
    if not results:
        raise failures[0]
    options = "" if delta is None else f"--delta {delta:g} "
    options += f"{basis.options} --replicates {replicates} "
    options += f"--simulate {seed}" if rows == "confidential" else f"--seed {seed}"
    simulated = replicates, seed, tuple(results), tuple(refused)
    return Comparison(plain_plan(plan), basis.text, options, basis.stamp, *simulated)


def simulate(
    plan: Plan,
    tree: Tree | Workload,
    contender: Contender,
    counts: IntArray,
    *,
    replicates: int,
    source: Randomness,
    delta: float | None = None,
    drawn: Callable[[int], None] = lambda _: None,
) -> Result:
    """Draw releases of one contender and sum up their errors."""
    model, guarantee, mechanism = build(plan, tree, contender, delta=delta)
    products = work_of_fit(model) * replicates
    if products > MOST_FITTED_WORK:
        raise UnsupportedError(
            f"{replicates:,} tables of least expected error, of {len(tree):,} counts with this "
            f"noise, take about {products:.2g} products in each pass, and the limit is "
            f"{MOST_FITTED_WORK:.2g}; simulate fewer releases, or give a larger epsilon."
        )
    if len(tree) <= WARMED:
        mechanism.sample(counts, rng=source)
    began = time.perf_counter()
    build(plan, tree, contender, delta=delta)[2].sample(counts, rng=source)
    first = time.perf_counter() - began
    tally = Tally(model, counts)
    spent, left = 0.0, replicates
    chunk = min(replicates, max(1, VALUES // len(tree)))
    if contender.method != "conditioning":  # conditioning fills its tables once for each call
        chunk = min(chunk, -(-replicates // STEPS))
    while left:
        size = min(chunk, left)
        began = time.perf_counter()
        released = mechanism.sample(counts, size=size, rng=source)
        spent += time.perf_counter() - began
        tally.add(np.asarray(released))
        left -= size
        drawn(replicates - left)
    promised = guarantee.epsilon, guarantee.delta, guarantee.sentence
    errors = tally.satisfied, tally.levels(), tally.sizes()
    return Result(contender, *promised, *errors, Seconds(first, spent / replicates))


def _progress(say: Notify, contender: Contender, before: int, whole: int, done: int) -> None:
    """Notify of the share of all releases that is drawn, `done` of them by this contender."""
    percent = 100 * (before + done) // whole
    say(f"{percent}% of all releases drawn; {contender.name}, {contender.noise}")
