"""What leaving the normaliser out costs, where no released count may be negative.

Run it with ``python examples/inference/normaliser.py``, with ``--out DIR`` to write the table of
``docs/analysts.md``.

Counts of 263 zones are Poisson of one mean. Noise conditioned on no negative count is likelier to
leave a large count where it is than a small one, so that the probability of a release has a
normaliser which depends on the counts. The mean is fitted with it and without it, to the same
releases of simulated counts, and each time the 90% interval of the likelihood ratio is asked
whether it holds the true mean.
"""

from __future__ import annotations

import argparse
import csv
from pathlib import Path

import numpy as np
import numpy.typing as npt

import congenial as cg

ZONES, SCALE, MEAN = 263, 3.0, 1.0
# Counts and releases beyond these have no weight to speak of.
MOST = 60
GRID = np.linspace(0.1, 3.0, 581)
# Half of the 90% quantile of the chi-squared law with one degree of freedom.
DROP = 1.352772

FloatArray = npt.NDArray[np.float64]


def release_laws() -> tuple[FloatArray, FloatArray]:
    """Log probability of a released count (columns) given a true one, with normaliser and without.

    Returns
    -------
    whole, without : ndarray of float64, shape (MOST + 1, MOST + 1)
    """
    one = cg.Tree.from_parents([-1])
    noise = cg.DiscreteLaplace(SCALE)
    law = cg.condition(cg.Additive(noise, one), cg.nonnegative())
    counts = np.arange(MOST + 1)
    without = noise.log_pmf(counts[None, :] - counts[:, None], np.array([SCALE]))
    normaliser = np.array([law.log_normalizer([count]) for count in counts])
    return without - normaliser[:, None], without


def curves(given: FloatArray) -> FloatArray:
    """Log likelihood of every mean of `GRID` (rows) by one released count (columns)."""
    counts = np.arange(MOST + 1)
    steps = np.log(GRID)[:, None] - np.log(np.maximum(counts, 1))
    steps[:, 0] = -GRID
    prior = np.exp(np.cumsum(steps, axis=1))
    found: FloatArray = np.log(prior @ np.exp(given))
    return found


def interval(curve: FloatArray) -> tuple[float, float, float]:
    """Return the best mean and the ends of the interval of the likelihood ratio."""
    kept = GRID[curve >= curve.max() - DROP]
    return float(GRID[int(np.argmax(curve))]), float(kept[0]), float(kept[-1])


def main(replicates: int = 100, out: Path | None = None, seed: int = 1) -> None:
    """Simulate, fit both, and print how often the intervals hold.

    Parameters
    ----------
    replicates : int
    out : Path, optional
        Directory for the table.
    seed : int
    """
    tree = cg.Tree.from_parents([-1, *[0] * ZONES])
    scales = np.where(tree.is_leaf, SCALE, np.inf)
    law = cg.condition(
        cg.Additive(cg.DiscreteLaplace(scales), tree), cg.consistent(tree) & cg.nonnegative()
    )
    ways = dict(
        zip(("with the normaliser", "without it"), map(curves, release_laws()), strict=True)
    )
    counts, noise = np.random.default_rng(seed), cg.seeded(seed)
    found: dict[str, list[tuple[float, float, float]]] = {name: [] for name in ways}
    for _ in range(replicates):
        x = tree.roll_up(counts.poisson(MEAN, ZONES))
        z = law.sample(x, rng=noise)[tree.leaves]
        for name, by_count in ways.items():
            found[name].append(interval(by_count[:, np.minimum(z, MOST)].sum(axis=1)))
    rows = []
    print(f"{replicates} releases of {ZONES} Poisson counts of mean {MEAN:g}, none negative:")
    for name, fits in found.items():
        best, low, high = np.array(fits).T
        holds = float(np.mean((low <= MEAN) & (high >= MEAN)))
        rows.append(
            {
                "likelihood": name,
                "replicates": str(replicates),
                "coverage": f"{holds:.3f}",
                "mean_estimate": f"{best.mean():.3f}",
                "truth": f"{MEAN:g}",
            }
        )
        print(f"  {name}: {holds:.1%} of the 90% intervals hold it; estimate {best.mean():.3f}")
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        with (out / "normaliser.csv").open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Fit a mean with the normaliser and without.")
    parser.add_argument("--replicates", type=int, default=100)
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    main(asked.replicates, asked.out)
