"""How many times more pickups has a zone of the yellow zone? A regression on a private release.

Run it with ``python examples/inference/yellow_zones.py`` (extra ``analysts``), with ``--out DIR``
to write the tables and the figure of ``docs/analysts.md``.

Only yellow taxis may pick up in Manhattan's core, the yellow zone; the city lists which zones are
in it, so that this is public. Trips by zone are negative binomial around a mean by kind of zone.
The model is fitted three times, with the same priors: to the released counts as if they were the
counts, negative ones set to 0; to the release with its noise in the likelihood; and, since these
counts are public, to the counts themselves. Then releases of counts simulated from the model tell
how often each interval holds the true ratio.
"""

from __future__ import annotations

import argparse
import csv
import runpy
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import matplotlib as mpl
import numpy as np
import numpy.typing as npt
import numpyro
import numpyro.distributions as dist
from matplotlib.figure import Figure
from numpyro.diagnostics import effective_sample_size, split_gelman_rubin
from numpyro.infer import MCMC, NUTS, init_to_value
from numpyro.infer.util import log_density
from scipy import optimize

import congenial as cg

HERE = Path(__file__).parent
TAXI = HERE.parent / "taxi"
KINDS = ("Boro Zone", "Yellow Zone")
# Mean and standard deviation of the normal priors.
PRIORS = {"level": (0.0, 3.0), "yellow": (0.0, 3.0), "airport": (0.0, 3.0), "spread": (0.0, 1.5)}
TOLD = {"naive": "noise ignored", "honest": "noise modelled", "counts": "the counts themselves"}
LEVEL = 0.9
WIDTH = 1.6448536269514722  # of a normal interval of that probability, in standard deviations

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
Model = Callable[[FloatArray], None]


# --- the release, as its reader has it ---


def publish(out: Path, seed: int) -> cg.Release:
    """Release the trips; from a seed, so that the numbers come again, as the counts are public."""
    if not (TAXI / "trips.parquet").is_file():
        runpy.run_path(str(TAXI / "build_trips.py"))["build"]()
    cg.release(cg.read_plan(HERE / "plan.toml"), out, base=HERE, simulate=seed, with_truth=True)
    return cg.read_release(out)


def kinds(tree: cg.Tree) -> IntArray:
    """Kind of every zone: 0 boro zone, 1 yellow zone, 2 airport."""
    with (TAXI / "taxi_zone_lookup.csv").open(encoding="utf-8", newline="") as file:
        listed = {row["LocationID"]: row["service_zone"] for row in csv.DictReader(file)}
    zones = [listed[tree.names[v]] for v in tree.leaves]
    return np.array([KINDS.index(zone) if zone in KINDS else 2 for zone in zones])


# --- the engine as a function that JAX can differentiate ---


def likelihood(read: cg.Release) -> Callable[..., Any]:
    """Log likelihood of a release, up to a constant, by means and dispersions of the zones.

    The derivatives are exact: posterior means of those of the model, by one more pass down the
    engine's messages.
    """
    tree, mechanism = read.tree, read.model.mechanism
    known = cg.consistent(tree) & cg.nonnegative() & cg.exactly(tree.names[0])
    shape: Any = jax.ShapeDtypeStruct
    leaves = shape((tree.leaves.size,), jnp.float64)
    shapes = (shape((), jnp.float64), leaves, leaves)

    def engine(mean: Any, dispersion: Any, z: Any) -> tuple[Any, ...]:
        both = np.array([mean, dispersion])
        if ((both > 1e-6) & (both < 1e7)).all():
            law = cg.posterior(np.asarray(z), mechanism, known, cg.inference.Prior(*both))
            try:
                return np.float64(law.log_evidence()), *law.log_evidence_gradient()
            except cg.errors.NumericalError:  # the release is too unlikely there to be weighed
                pass
        # a leap of the sampler that it turns back from
        return np.float64(-np.inf), *np.zeros_like(both)

    @jax.custom_vjp
    def value(mean: Any, dispersion: Any, z: Any) -> Any:
        return jax.pure_callback(engine, shapes, mean, dispersion, z)[0]

    def forward(mean: Any, dispersion: Any, z: Any) -> tuple[Any, Any]:
        found, *slopes = jax.pure_callback(engine, shapes, mean, dispersion, z)
        return found, slopes

    def backward(slopes: Any, upstream: Any) -> tuple[Any, ...]:
        return upstream * slopes[0], upstream * slopes[1], None

    value.defvjp(forward, backward)
    return value


# --- the models ---


def zones(kind: IntArray) -> tuple[Any, Any]:
    """Means and dispersions of the trips of every zone; priors are weak."""
    drawn = {name: numpyro.sample(name, dist.Normal(*own)) for name, own in PRIORS.items()}
    effect = jnp.stack([jnp.zeros(()), drawn["yellow"], drawn["airport"]])
    mean = jnp.exp(drawn["level"] + effect[kind])
    return mean, jnp.broadcast_to(jnp.exp(drawn["spread"]), mean.shape)


def naive(kind: IntArray) -> Model:
    """Return the model of counts that are taken as they are."""

    def model(counts: FloatArray) -> None:
        mean, dispersion = zones(kind)
        numpyro.sample("trips", dist.NegativeBinomial2(mean, dispersion), obs=counts)

    return model


def honest(kind: IntArray, log_likelihood: Callable[..., Any]) -> Model:
    """Return the model of a release, its noise inside."""

    def model(released: FloatArray) -> None:
        numpyro.factor("release", log_likelihood(*zones(kind), released))

    return model


# --- fits ---


@dataclass(frozen=True)
class Fit:
    """Interval of the logarithm of the ratio.

    Attributes
    ----------
    estimate, low, high : float
    """

    estimate: float
    low: float
    high: float

    def holds(self, truth: float) -> bool:
        """Whether the interval holds the truth."""
        return self.low <= truth <= self.high


def at_mode(model: Model) -> Callable[[FloatArray], tuple[dict[str, float], FloatArray]]:
    """Return what finds a model's mode for given data, and the covariance of the normal law there.

    The inverse Hessian is taken by differences of derivatives.
    """

    def potential(theta: Any, data: Any) -> Any:
        return -log_density(model, (data,), {}, dict(zip(PRIORS, theta, strict=True)))[0]

    slope = jax.jit(jax.value_and_grad(potential))

    def found(data: FloatArray) -> tuple[dict[str, float], FloatArray]:
        def value(theta: FloatArray) -> tuple[float, FloatArray]:
            at, by = slope(theta, data)
            return float(at), np.asarray(by)

        start = np.array([1.0, 1.0, 1.0, 0.0])
        best = optimize.minimize(value, start, jac=True, method="BFGS", options={"gtol": 1e-3}).x
        steps = 1e-4 * np.eye(best.size)
        hessian = np.stack([(value(best + h)[1] - value(best - h)[1]) / 2e-4 for h in steps])
        covariance = np.asarray(np.linalg.inv(0.5 * (hessian + hessian.T)), dtype=np.float64)
        return dict(zip(PRIORS, best.tolist(), strict=True)), covariance

    return found


def normal_fit(mode: dict[str, float], covariance: FloatArray) -> Fit:
    """Return the interval of the normal approximation at the mode."""
    at = list(PRIORS).index("yellow")
    half = WIDTH * float(np.sqrt(covariance[at, at]))
    return Fit(mode["yellow"], mode["yellow"] - half, mode["yellow"] + half)


def draws(
    model: Model,
    data: FloatArray,
    mode: dict[str, float],
    covariance: FloatArray,
    *,
    size: int,
    seed: int,
    warmup: int | None = None,
) -> FloatArray:
    """Draw the logarithm of the ratio by NUTS, two chains from the mode, shape (2, size)."""
    block = tuple(PRIORS)
    kernel = NUTS(
        model,
        dense_mass=[block],
        inverse_mass_matrix={block: jnp.asarray(covariance)},
        adapt_mass_matrix=False,  # the normal law at the mode fits already
        step_size=0.7,
        max_tree_depth=6,
        init_strategy=init_to_value(values=mode),
    )
    chains = MCMC(
        kernel,
        num_warmup=min(size, 100) if warmup is None else warmup,
        num_samples=size,
        num_chains=2,
        chain_method="sequential",
        progress_bar=False,
    )
    chains.run(jax.random.key(seed), data)
    return np.asarray(chains.get_samples(group_by_chain=True)["yellow"])


def interval(drawn: FloatArray) -> Fit:
    """Return the equal-tailed interval of draws, and their median."""
    tail = 0.5 * (1.0 - LEVEL)
    low, middle, high = np.quantile(drawn, [tail, 0.5, 1.0 - tail])
    return Fit(float(middle), float(low), float(high))


# --- replicates ---


def replicates(
    read: cg.Release,
    finders: dict[str, Any],
    truth: dict[str, float],
    kind: IntArray,
    *,
    size: int,
    seed: int,
) -> dict[str, list[Fit]]:
    """Simulate counts from the model and releases of them, and fit all three."""
    rng, noise = np.random.default_rng(seed), cg.seeded(seed)
    effect = np.array([0.0, truth["yellow"], truth["airport"]])[kind]
    mean, dispersion = np.exp(truth["level"] + effect), np.exp(truth["spread"])
    fits: dict[str, list[Fit]] = {name: [] for name in finders}
    for _ in range(size):
        counts = rng.poisson(rng.gamma(dispersion, mean / dispersion))
        z = read.mechanism.sample(read.tree.roll_up(counts), rng=noise).astype(np.int64)
        for name, data in datasets(read.tree, counts, z).items():
            fits[name].append(normal_fit(*finders[name](data)))
    return fits


def datasets(tree: cg.Tree, counts: IntArray, z: IntArray) -> dict[str, FloatArray]:
    """What each fit is given."""
    given = {"naive": np.maximum(z[tree.leaves], 0), "honest": z, "counts": counts}
    return {name: values.astype(np.float64) for name, values in given.items()}


# --- what is written ---


def draw_figure(
    drawn: dict[str, FloatArray], fits: dict[str, list[Fit]], truth: float, out: Path
) -> None:
    """Draw the posteriors of the ratio, and the intervals of the first replicates."""
    colours = {"naive": "#c2410c", "honest": "#1d4ed8", "counts": "#6b7280"}
    figure = Figure(figsize=(9.0, 4.0), layout="constrained")
    left, right = figure.subplots(1, 2)
    grid = np.linspace(np.log(4.0), np.log(220.0), 400)
    for name, values in drawn.items():
        flat = values.ravel()
        wide = 1.06 * flat.std() * flat.size**-0.2
        height = np.exp(-0.5 * ((grid[:, None] - flat) / wide) ** 2).mean(axis=1)
        height /= wide * np.sqrt(2.0 * np.pi)
        left.plot(np.exp(grid), height, color=colours[name])
        top, peak = float(np.exp(grid[int(np.argmax(height))])), float(height.max())
        side, shift = ("left", 1.06) if name == "honest" else ("center", 1.0)
        above = peak + (0.0 if name == "honest" else 0.03)
        left.text(top * shift, above, TOLD[name], color=colours[name], fontsize=9, ha=side)
        left.fill_between(np.exp(grid), height, color=colours[name], alpha=0.15)
    left.set(xscale="log", xlabel="ratio of pickups, yellow to boro zone", yticks=[])
    left.set_title("One release: posterior of the ratio", fontsize=10)
    shown = min(40, len(fits["honest"]))
    for shift, name in ((-0.18, "naive"), (0.18, "honest")):
        for row, fit in enumerate(fits[name][:shown]):
            ends = np.exp([fit.low, fit.high])
            right.plot(ends, [row + shift] * 2, color=colours[name], linewidth=1.3)
    right.axvline(np.exp(truth), color="black", linewidth=0.9)
    right.set(xscale="log", xlabel="90% interval of the ratio", yticks=[])
    right.set_title(f"{shown} simulated releases; the line is the truth", fontsize=10)
    for axes in (left, right):
        axes.set_xticks([5, 10, 20, 50, 100, 200], ["5", "10", "20", "50", "100", "200"])
        axes.set_xticks([], minor=True)
        axes.spines[["top", "right", "left"]].set_visible(False)
    # the same picture gives the same file
    with mpl.rc_context({"svg.hashsalt": "ratio"}):
        figure.savefig(out / "ratio.png", dpi=150, metadata={"Software": None})
        figure.savefig(out / "ratio.svg", metadata={"Date": None})


def table(path: Path, rows: list[dict[str, str]]) -> None:
    """Write rows as CSV."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def main(size: int = 20, steps: int = 400, out: Path | None = None, seed: int = 1) -> None:
    """Release, fit, simulate, and print what was found.

    Parameters
    ----------
    size : int
        Simulated releases.
    steps : int
        Draws of each of two chains.
    out : Path, optional
        Directory for tables and figure.
    seed : int
    """
    numpyro.enable_x64()
    with tempfile.TemporaryDirectory() as place:
        read = publish(Path(place) / "release", seed)
        counts = np.array(read.rows.column("truth"))[read.tree.leaves]
    kind = kinds(read.tree)
    print(f"{read.values[0]:,} trips in {kind.size} zones. {read.certificate.sentence}")
    print(f"\nratio of pickups of a yellow zone to those of a boro zone, {LEVEL:.0%} intervals:")
    models = {
        "naive": naive(kind),
        "honest": honest(kind, likelihood(read)),
        "counts": naive(kind),
    }
    finders = {name: at_mode(model) for name, model in models.items()}
    given = datasets(read.tree, counts, read.values)
    modes = {name: finders[name](given[name]) for name in models}
    drawn = {
        name: draws(model, given[name], *modes[name], size=steps, seed=seed)
        for name, model in models.items()
    }
    rows = []
    for name, values in drawn.items():
        by_draws, at = interval(values), normal_fit(*modes[name])
        rows.append(
            {
                "fit": name,
                **{end: f"{np.exp(getattr(by_draws, end)):.1f}" for end in Fit.__annotations__},
                "normal_low": f"{np.exp(at.low):.1f}",
                "normal_high": f"{np.exp(at.high):.1f}",
                "effective_draws": f"{effective_sample_size(values):.0f}",
                "r_hat": f"{split_gelman_rubin(values):.3f}",
            }
        )
        told = rows[-1]
        print(f"  {TOLD[name]}: {told['estimate']}, from {told['low']} to {told['high']}")
    truth = modes["counts"][0]
    fits = replicates(read, finders, truth, kind, size=size, seed=seed + 1)
    covered = []
    print(f"\nshare of intervals that hold the true ratio, of {size} simulated releases:")
    for name, found in fits.items():
        holds = np.array([fit.holds(truth["yellow"]) for fit in found])
        estimate = np.array([fit.estimate for fit in found])
        covered.append(
            {
                "fit": name,
                "replicates": str(size),
                "coverage": f"{holds.mean():.3f}",
                "standard_error": f"{np.sqrt(holds.mean() * (1 - holds.mean()) / size):.3f}",
                "median_ratio": f"{np.exp(np.median(estimate)):.1f}",
                "truth": f"{np.exp(truth['yellow']):.1f}",
            }
        )
        print(f"  {TOLD[name]}: {holds.mean():.1%}")
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        table(out / "intervals.csv", rows)
        table(out / "coverage.csv", covered)
        draw_figure(drawn, fits, truth["yellow"], out)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Fit a model to a private release.")
    parser.add_argument("--replicates", type=int, default=20)
    parser.add_argument("--draws", type=int, default=400)
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    main(asked.replicates, asked.draws, asked.out)
