"""Gong and Meng, Section 3: a table of sex by age, three mandated totals, no negative cell."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from congenial.conditioning.choice import condition
from congenial.exhibits.exhibit import Cell, Exhibit, Figure
from congenial.randomness import Randomness, seeded
from congenial.types import FloatArray, IntArray
from papers.studies import p12_methods as methods
from papers.studies.looks import BLUE, ERRORS, INK, ORANGE, frame, legend_below, line
from papers.studies.p12_counties import (
    AT_FINAL,
    FINAL,
    by_population,
    california,
    equal_error,
    population_figure,
)
from papers.studies.p12_equal import at_equal_epsilon, cost_of_bounds, equal_figure
from papers.studies.p12_equal import findings as on_equal_epsilon
from papers.studies.p12_methods import (
    READINGS,
    TILDE,
    TILDES,
    Distances,
    Rates,
    Trace,
)
from papers.studies.sources import AGES
from papers.studies.study import Study, replicates

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas


PRINTED_ACCEPTANCE = 0.0168
TABLES, RELEASES, PAIRS, TRACE = 20, 100, 40_000, 10_000
# Releases of a table at each final epsilon; integers closest to noisy cells take 0.06 s.
EQUAL = 10
AGE_NAMES = (
    *("under 5", "5–9", "10–14", "15–17", "18–19", "20", "21", "22–24", "25–29", "30–34", "35–39"),
    *("40–44", "45–49", "50–54", "55–59", "60–61", "62–64", "65–66", "67–69", "70–74", "75–79"),
    *("80–84", "85 and over"),
)
# Table 1 of the paper: the confidential table and the release.
PRINTED_TABLE = (
    *(8, 6, 3, 6, 4, 4, 4, 8, 5, 7, 7, 6, 1, 5, 4, 4, 9, 6, 2, 8, 8, 8, 7),
    *(3, 4, 5, 8, 6, 4, 5, 5, 5, 6, 10, 7, 3, 2, 5, 11, 6, 4, 7, 4, 5, 3, 8),
)
PRINTED_RELEASE = (
    *(6, 6, 4, 3, 2, 10, 2, 5, 6, 7, 5, 6, 0, 5, 4, 5, 10, 8, 3, 8, 8, 12, 5),
    *(9, 4, 5, 6, 3, 4, 5, 5, 3, 4, 7, 8, 5, 3, 2, 23, 8, 2, 6, 3, 0, 3, 8),
)


def run(seed: int, effort: float) -> Study:
    """Run every method on simulated tables and on real counties.

    Parameters
    ----------
    seed : int
    effort : float
        Share of the full study's replicates.
    """
    source = seeded(seed)
    printed = np.array(PRINTED_TABLE, dtype=np.int64)
    simulated = methods.simulate(replicates(TABLES, effort, least=3), source)
    found = methods.distances(simulated, replicates(RELEASES, effort, least=20), source)
    rates = [
        methods.rates(printed, reading, replicates(PAIRS, effort, least=500), source)
        for reading in READINGS
    ]
    steps = replicates(TRACE, effort, least=400)
    chains = [methods.short_chains(printed, reading, steps, source) for reading in READINGS]
    traces = methods.traces(printed, steps, source)
    counties = by_population(source, effort, seeded(seed + 1))
    theirs = california(source, effort)
    equal = at_equal_epsilon(simulated, replicates(EQUAL, effort, least=2), source)
    tables = (
        equal,
        _distance_table(found),
        _rate_table(rates),
        _chain_table(chains, steps),
        _trace_table(traces),
        _table_one(printed, source),
        counties,
        theirs,
    )
    figures = (
        Figure(
            "equal",
            "Error at equal final ε",
            lambda c: equal_figure(c, equal),
            size=(7.0, 3.4),
            note="Bars are 2 standard errors.",
        ),
        Figure(
            "distances",
            "Distance of a release from its table",
            lambda c: _boxes(c, found),
            size=(8.0, 3.8),
            note=(
                f"Each of {len(simulated)} simulated tables gives a mean distance. A box spans the "
                "middle half of these distances, and its lines reach to the least and the largest."
            ),
        ),
        Figure(
            "acceptance",
            "Share of proposals accepted, by the parameter of the proposal",
            lambda c: _curves(c, rates, chains),
            size=(8.0, 4.2),
            note=(
                "Lines are the shares that a converged chain accepts, with bars of 2 standard "
                "errors. Broad bars go from the lowest to the highest share of single chains of "
                f"{steps:,} steps."
            ),
        ),
        Figure(
            "traces",
            "Traces of two cells",
            lambda c: _paths(c, traces, printed),
            size=(9.0, 6.0),
            note=(
                "A chain repeats a value while it rejects proposals. Exact draws are independent, "
                "so each draw is a point."
            ),
        ),
        Figure(
            "counties",
            f"Error of a county's table at final ε = {FINAL:g}",
            lambda c: population_figure(c, counties),
            note="Bars are 2 standard errors.",
        ),
    )
    findings = (
        *on_equal_epsilon(equal),
        *_on_distances(found),
        *_on_rates(rates, chains, traces),
        *_on_printed(printed, replicates(PAIRS, effort, least=500), source),
        *_on_counties(counties, theirs),
    )
    title = "Sex by age: Section 3 of Congenial Differential Privacy under Mandated Disclosure"
    return Study("p12", title, findings, tables, figures)


def _distance_table(found: list[Distances]) -> Exhibit:
    rows: list[tuple[Cell, ...]] = []
    for each in found:
        for name, values in (("L1", each.l1), ("L2", each.l2)):
            five = np.quantile(values, (0.0, 0.25, 0.5, 0.75, 1.0))
            error = float(values.std(ddof=1) / np.sqrt(values.size))
            rows.append((name, each.method, float(values.mean()), error, *map(float, five)))
    rows.sort(key=lambda row: str(row[0]))
    columns = ("distance", "method", "mean", "standard error", "least", "25%", "50%", "75%", "most")
    size = found[0].l1.size
    return Exhibit(
        "distances",
        "Figure 1 as numbers: mean distances of releases from their tables",
        columns,
        tuple(rows),
        (f"Means and quantiles are over the mean distances of {size} simulated tables.",),
    )


def _rate_table(rates: list[Rates]) -> Exhibit:
    rows = tuple(
        (r.reading.name, tilde, float(rate), float(error))
        for r in rates
        for tilde, rate, error in zip(TILDES, r.rates, r.errors, strict=True)
    )
    return Exhibit(
        "acceptance",
        "Figure 2 as numbers: share of proposals that a converged chain accepts",
        ("reading", "proposal ε", "accepted", "standard error"),
        rows,
        (
            "The confidential table is that of the paper's Table 1. Each proposal starts from an "
            "exact draw, as in a chain that has converged. Proposals are drawn from the paper's "
            "law, and change the cells that the paper lets them change.",
        ),
    )


def _chain_table(chains: list[FloatArray], steps: int) -> Exhibit:
    rows = tuple(
        (
            reading.name,
            int(rates.size),
            steps,
            float(rates.min()),
            float(rates.mean()),
            float(rates.max()),
        )
        for reading, rates in zip(READINGS, chains, strict=True)
    )
    return Exhibit(
        "chains",
        f"Share of proposals that short chains accept, proposal at ε = {TILDE:g}",
        ("reading", "chains", "steps a chain", "least", "mean", "most"),
        rows,
        ("No first steps are left out. A chain's start depends on the exact totals alone.",),
    )


def _trace_table(traces: list[Trace]) -> Exhibit:
    rows = tuple(
        (
            t.name,
            int(t.rates.size),
            t.steps,
            float(t.rates.min()),
            float(t.rates.max()),
            t.r_hat,
            t.effective[0],
            t.effective[1],
            "none known" if t.bound is None else f"{t.bound:.3g}",
        )
        for t in traces
    )
    columns = (
        "sampler",
        "chains",
        "steps a chain",
        "accepted, least",
        "accepted, most",
        "largest R-hat",
        "effective draws, cell 2",
        "effective draws, cell 1",
        "bound on total variation",
    )
    return Exhibit(
        "traces",
        "Figure 3 as numbers: precision of the chains",
        columns,
        rows,
        (
            "Cells are at least 0, and the noise has scale 2. These chains are not those of the "
            "table above. Effective draws are those of all chains together. The bound is on the "
            "total variation distance between the law of one chain's last state, given its start, "
            "and the exact law. A bound of 1 says nothing. Exact draws are independent.",
        ),
    )


def _table_one(printed: IntArray, source: Randomness) -> Exhibit:
    """Show the printed pair of tables, and one exact draw for the same confidential table."""
    exact = condition(methods.mechanism(1.0 / methods.EPSILON), READINGS[0].invariant(printed))
    drawn = np.asarray(exact.sample(printed, rng=source))
    columns = [
        np.reshape(values, (2, AGES)) for values in (PRINTED_TABLE, PRINTED_RELEASE, drawn.tolist())
    ]
    rows: list[tuple[Cell, ...]] = [
        (sex, AGE_NAMES[age], *(int(table[s, age]) for table in columns))
        for s, sex in enumerate(("female", "male"))
        for age in range(AGES)
    ]
    for name, at in (("total", np.s_[:]), ("18 and over", np.s_[methods.MINORS :])):
        rows += [
            (sex, name, *(int(table[s, at].sum()) for table in columns))
            for s, sex in enumerate(("female", "male"))
        ]
    return Exhibit(
        "table-1",
        "Table 1: the printed table and release, and an exact draw",
        ("sex", "age", "printed table", "printed release", "exact draw"),
        tuple(rows),
        (
            "Ages are those of table P12 of the Census. The paper's own labels skip some years "
            "(`6-10` follows `< 5`). Its tables are simulated, so this changes no number.",
        ),
    )


def _on_distances(found: list[Distances]) -> tuple[str, ...]:
    by = {d.method: (float(d.l1.mean()), float(d.l2.mean())) for d in found}
    exact, chain = by["exact, ε = 0.5"], by["Algorithm 1, ε = 0.5"]
    fine, coarse, nnl2 = by["noise, ε = 1"], by["noise, ε = 0.5"], by["NNL2, ε = 1"]
    return (
        "**Figure 1.** Here and below, the ε of noise is for one cell: the noise has scale 1/ε. "
        "A substituted record changes two cells, so the ε for a record is twice this. With noise "
        "at ε = 0.5, exact totals and no negative cell, releases by exact conditioning have a "
        f"mean distance of {exact[0]:.1f} (L1) and {exact[1]:.2f} (L2) from their tables. The "
        f"distance of the noise itself is {coarse[0]:.1f} and {coarse[1]:.2f} at ε = 0.5, and "
        f"{fine[0]:.1f} and {fine[1]:.2f} at ε = 1. So the distance by conditioning is between "
        "those of the noise at ε = 1 and at ε = 0.5, as in the paper's box plots. The distance "
        f"by NNL2 at ε = 1 is near that of its own noise: {nnl2[0]:.1f} and {nnl2[1]:.2f}. "
        "Algorithm 1 is the paper's Markov chain. It is made to draw from the same law as exact "
        f"conditioning, and its distances are {chain[0]:.1f} and {chain[1]:.2f}.",
    )


def _on_rates(rates: list[Rates], chains: list[FloatArray], traces: list[Trace]) -> tuple[str, ...]:
    lines = []
    for r in rates:
        best = int(np.argmax(r.rates))
        at = TILDES.index(TILDE)
        lines.append(
            f"- {r.reading.name}: {100 * r.rates[at]:.3g}% ± {100 * r.errors[at]:.1g} at "
            f"ε̃ = {TILDE:g}; the highest is {100 * r.rates[best]:.3g}%, at ε̃ = {TILDES[best]:g}"
        )
    among = [
        reading.name
        for reading, found in zip(READINGS, chains, strict=True)
        if found.min() <= PRINTED_ACCEPTANCE <= found.max()
    ]
    first, chain = chains[0], traces[0]
    return (
        "**Figure 2.** Each step of the chain proposes a change, which is accepted or rejected. "
        "The parameter ε̃ sets the size of proposed changes. The paper states that "
        f"{100 * PRINTED_ACCEPTANCE:.2f}% are accepted at ε̃ = {TILDE:g}, and fewer at every other "
        "ε̃. The text can be read in four ways. For the paper's own Table 1, a chain that has "
        "converged accepts these shares:",
        "\n".join(lines),
        f"Single chains of {chain.steps:,} steps differ much from each other. In the first "
        f"reading, {first.size} such chains accepted from {100 * first.min():.2f}% to "
        f"{100 * first.max():.2f}%. "
        + (
            f"The printed share is within the range of such chains in {len(among)} of the "
            f"{len(READINGS)} readings: {'; '.join(among)}."
            if among
            else "The printed share is not within the range of such chains in any reading."
        ),
        f"**Figure 3.** The chains at ε̃ = {TILDE:g} have {chain.rates.size * chain.steps:,} "
        f"steps in all. Together, they are as precise as {chain.effective[0]:.0f} independent "
        f"draws of cell 2, and {chain.effective[1]:.0f} of cell 1. The largest R-hat is "
        f"{chain.r_hat:.3f}.",
    )


def _on_printed(printed: IntArray, draws: int, source: Randomness) -> tuple[str, ...]:
    """Place the printed release among exact ones."""
    release = np.array(PRINTED_RELEASE, dtype=np.int64)
    exact = condition(methods.mechanism(1.0 / methods.EPSILON), READINGS[0].invariant(printed))
    distance = int(np.abs(release - printed).sum())
    others = np.abs(np.asarray(exact.sample(printed, draws, source)) - printed).sum(axis=1)
    nearer = float((others <= distance).mean())
    return (
        "**Table 1.** The printed release keeps all three totals, and its L1 distance from the "
        f"printed table is {distance}. Of {draws:,} exact draws at ε = 0.5, {100 * nearer:.1f}% "
        "have this distance or a smaller one.",
    )


def _on_counties(counties: Exhibit, theirs: Exhibit) -> tuple[str, ...]:
    means = {(str(row[0])[0], str(row[3])): float(str(row[4])) for row in counties.rows}
    named = ("NNL2, ε = 1", "exact, ε = 1", "exact, ε = 0.5", AT_FINAL)
    small, large = ({m: means[fifth, m] for m in named} for fifth in ("1", "5"))
    truth = theirs.rows[0]
    return (
        "**Real counties.** Mean L1 errors of a county's table, in the fifth of the counties with "
        "the fewest people and in the fifth with the most:\n\n"
        "| method | fewest people | most people |\n| --- | ---: | ---: |\n"
        + "\n".join(
            f"| {text} | {small[name]:.1f} | {large[name]:.1f} |"
            for name, text in (
                ("exact, ε = 0.5", "conditioning, noise at ε = 0.5"),
                ("exact, ε = 1", "conditioning, noise at ε = 1"),
                ("NNL2, ε = 1", "NNL2, noise at ε = 1"),
                (AT_FINAL, f"conditioning, final ε = {FINAL:g}, as NNL2"),
            )
        ),
        "With the same noise, conditioning has the smaller error. But bounds add to the ε of "
        f"conditioning: for a cell, this ε is {cost_of_bounds(1.0):.2f} times the ε of the noise "
        f"at ε = 1, and {cost_of_bounds(0.5):.2f} times at ε = 0.5. The ε of NNL2 is that of its "
        f"noise, {FINAL:g} for a record. In the last row, conditioning has wider noise, so that "
        f"its final ε is also {FINAL:g}.",
        "**California.** The Census Bureau's own release of a county's table has a mean L1 error "
        f"of {truth[3]:.0f}, over 46 cells. It changes the total of "
        f"{int(str(truth[2])) - int(str(truth[6]))} of {truth[2]} counties. Exact conditioning "
        f"has the same mean error if the noise of a cell has about ε = {equal_error(theirs):.2g}, "
        "and it keeps the three totals of every county.",
    )


def _boxes(canvas: Canvas, found: list[Distances]) -> None:
    """Draw the spread over the tables of a method's mean distance."""
    panels = canvas.subplots(1, 2, sharey=True)
    for ax, name, values in zip(
        panels, ("L1", "L2"), ([d.l1 for d in found], [d.l2 for d in found]), strict=True
    ):
        ax.boxplot(
            values,
            orientation="horizontal",
            whis=(0, 100),
            widths=0.6,
            medianprops={"color": INK, "linewidth": 1.6},
            boxprops={"color": BLUE},
            whiskerprops={"color": BLUE},
            capprops={"color": BLUE},
        )
        ax.set_xlim(left=0)
        ax.set_xlabel(f"mean {name} distance of a table's releases")
        frame(ax, grid="x")
    panels[0].set_yticks(range(1, len(found) + 1), [d.method for d in found])


def _curves(canvas: Canvas, rates: list[Rates], chains: list[FloatArray]) -> None:
    """Draw acceptance in equilibrium by proposal, and the range of short chains at one."""
    panels = canvas.subplots(1, 2, sharey=True)
    at = 100 * PRINTED_ACCEPTANCE
    for bounded, axes in zip((True, False), panels, strict=True):
        drawn = [(r, c) for r, c in zip(rates, chains, strict=True) if r.reading.bounded == bounded]
        for place, (r, chain) in enumerate(drawn):
            looks, scale = line(place), r.reading.sensitivity / methods.EPSILON
            axes.errorbar(
                TILDES,
                100 * r.rates,
                yerr=ERRORS * 100 * r.errors,
                capsize=2,
                label=f"noise of scale {scale:g}",
                **looks,
            )
            ends = 100 * float(chain.min()), 100 * float(chain.max())
            axes.plot(
                [TILDE + 0.02 * (2 * place - 1)] * 2,
                ends,
                color=looks["color"],
                linewidth=5,
                alpha=0.4,
                solid_capstyle="butt",
                label=f"range of {chain.size} chains, scale {scale:g}",
            )
        axes.plot([TILDE], [at], "k*", markersize=10, zorder=5, label=f"printed, {at:.2f}%")
        axes.set_title("cells at least 0" if bounded else "totals alone", fontsize="medium")
        axes.set_xlabel("ε̃ of the proposal")
        frame(axes)
    panels[0].set_ylim(bottom=0)
    panels[0].set_ylabel("proposals accepted, %")
    legend_below(canvas, panels[1], 3)


def _paths(canvas: Canvas, traces: list[Trace], table: IntArray) -> None:
    """Draw one chain's values of two cells, and as many exact draws."""
    panels = canvas.subplots(len(traces), 2, sharex=True, sharey=True)
    most = max(int(trace.cells[trace.steps // 50 :].max()) for trace in traces)
    for down, trace in zip(panels, traces, strict=True):
        for c, ax in enumerate(down):
            values = trace.cells[:, 1 - c]
            if trace.rates.size == 1:  # exact draws: nothing connects one with the next
                ax.plot(values, ".", color=BLUE, alpha=0.25, markersize=2, rasterized=True)
            else:
                ax.plot(values, color=BLUE, linewidth=0.8)
            ax.axhline(int(table[c]), color=ORANGE, linewidth=1.2, linestyle="--")
            if values[0] > most:
                text = f"starts at {values[0]}"
                ax.text(0.01, 0.97, text, transform=ax.transAxes, fontsize="small", va="top")
            ax.set_ylim(-0.5, most + 0.5)
            frame(ax)
        down[0].set_ylabel(trace.name.replace(", ", ",\n"), fontsize="small")
    for c, ax in enumerate(panels[0]):
        ax.set_title(
            f"people in cell {c + 1}: females, {AGE_NAMES[c]} (dashed: {table[c]} in the table)",
            fontsize="small",
        )
    for ax in panels[-1]:
        ax.set_xlabel("step of the chain, or draw")
