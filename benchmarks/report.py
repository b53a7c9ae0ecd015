"""The results as a table for the terminal and as the page docs/benchmarks.md."""

from __future__ import annotations

from importlib import import_module

from benchmarks.record import Line
from benchmarks.rows import ROWS

TITLES = {
    "noise": "Noise alone with its exact law, beside OpenDP's exact samplers",
    "flat": "One draw under one pinned total, equalities only",
    "everywhere": "One draw, tree 1-50-2,000-50,000-1,000,000, noise at every node, root pinned",
    "bounded": "The same with every count ≥ 0",
    "rare": "Draws that doubles do not decide",
    "taxi": "Independent draws of the 270-node taxi tree",
    "peers": "Chains on the same tree",
    "memory": "Peak memory at a million leaves",
    "table": "Sex by 23 ages at 3,143 counties, state totals exact, every count ≥ 0",
    "crossing": "A table with two crossing margins exact",
    "summaries": "Marginal laws of all nodes",
    "margins": "Error margins at 3.33 million counts, equalities only, root exact",
    "wide": "Wide noise on few counts",
    "imaging": "Closest point in L2, leaves ≥ 0, root exact",
    "topdown": "TopDown, every count ≥ 0, root exact",
    "cells": "TopDown and the closest point where margins cross, every count ≥ 0",
    "rounding": "Whole-tree rounding to integers of least summed change",
    "posterior": "Laws of all counts under a fitted prior",
    "point_table": "Table of least expected error",
    "growth": "Growth from 10^4 to 10^7 leaves",
    "pipeline": "The whole job, rows to files and back, beside plain counting",
    "trying": "A plan tried out: `compare`, `audit` and `calibrate`",
}
MET = {True: "met", False: "**not met**", None: ""}
_INTRO = """\
# Benchmarks

Written by `make benchmark`; do not edit. Each number was measured in the run that is described
under "The machine". Its target is beside it.

## How it is measured

- Every case runs in its own process on one core and one thread, with a limit of time. Kernels
  (compiled loops) are loaded before the clock starts. Times are processor time, which excludes
  other processes.
- A number with "×" is a ratio of times: congenial's time divided by the time of plain noise for as
  many leaves, unless the line names other times. numpy draws plain noise as the difference of two
  geometric variables, in the same process. In each round, congenial ("ours") and the other program
  ("peer") take turns. The number is the median of the rounds' ratios, followed by the smallest and
  the largest. If there are three or more rounds, the first is left out.
- The time of a first draw is from `condition(M, C)` to the released vector. It includes the upward
  pass, which fills the tables from the leaves to the root. If bounds make the law depend on the
  data, further draws are those of one call with `size`, which needs one upward pass. All random
  words come from the operating system, as in a release. The noise is discrete Laplace of scale 2
  unless another is named.
- The section on growth takes the fastest rounds, in memory that the process already has. A virtual
  machine may take longer to provide gigabytes than a draw takes to fill them.
- Markov chains draw from the continuous law of the same scale, without the rounding to integers.
  Their number of effective draws is the smallest bulk effective sample size of any leaf, from four
  chains with different starts. Their time excludes warm-up, tuning and compiling.
"""


def shown(value: float | None) -> str:
    """Return a number with three digits that matter, grouped by thousands."""
    if value is None:
        return "–"
    if abs(value) >= 100.0:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def result(line: Line) -> str:
    """Return a line's number with its unit and range, or why there is none."""
    if line.value is None:
        return line.note
    unit = "×" if line.unit.startswith("×") else f" {line.unit}"
    text = f"{shown(line.value)}{unit}"
    if line.low is not None and line.high is not None:
        text += f" ({shown(line.low)} to {shown(line.high)})"
    return text + (f"; {line.note}" if line.note else "")


def wanted(line: Line) -> str:
    """Return a line's target, empty where there is none."""
    if line.target is None:
        return ""
    sign = "≤" if line.better == "lower" else "≥"
    unit = "×" if line.unit.startswith("×") else f" {line.unit}"
    return f"{sign} {shown(line.target)}{unit}"


def table(lines: list[Line]) -> str:
    """Return all lines as text for a terminal."""
    out = []
    for row in ROWS:
        own = [line for line in lines if line.row == row]
        if own:
            out += ["", TITLES[row]]
        last = ""
        for line in own:
            out += [f"  {line.case}"] if line.case != last else []
            last = line.case
            verdict = MET[line.met].replace("*", "")
            goal = f"  [{wanted(line)}: {verdict}]" if line.target is not None else ""
            out.append(f"    {line.measure}: {result(line)}{goal}")
    met = [line.met for line in lines if line.met is not None]
    return "\n".join([*out, "", f"{sum(met)} of {len(met)} targets met."])


def page(lines: list[Line], machine: dict[str, str], *, plot: str | None) -> str:
    """Return the page, with a link to the plot where there is one."""
    met = [line.met for line in lines if line.met is not None]
    out = [_INTRO, "## The machine\n", "| what | which |", "| --- | --- |"]
    out += [f"| {name} | {value} |" for name, value in machine.items()]
    out += ["", "## Results", "", f"{sum(met)} of {len(met)} targets met."]
    for row in ROWS:
        own = [line for line in lines if line.row == row]
        if not own:
            continue
        about = (import_module(f"benchmarks.rows.{row}").__doc__ or "").strip()
        out += ["", f"### {TITLES[row]}", "", about, ""]
        out += ["| case | measure | seen | target | |", "| --- | --- | --- | --- | --- |"]
        out += [
            f"| {line.case} | {line.measure} | {_cell(result(line))} | {wanted(line)} "
            f"| {MET[line.met]} |"
            for line in own
        ]
        if row == "growth" and plot:
            out += ["", f"![Time of the first draw against the number of leaves]({plot})"]
        best = [line for line in own if "ours_best_s" in line.detail and line.value is not None]
        if best:
            out += ["", "Best times behind these ratios, in milliseconds:", ""]
            out += ["| case | measure | ours | peer | rounds |", "| --- | --- | --- | --- | --- |"]
            out += [
                f"| {line.case} | {line.measure} | {shown(1e3 * line.detail['ours_best_s'])} "
                f"| {shown(1e3 * line.detail['peer_best_s'])} | {line.detail['rounds']:.0f} |"
                for line in best
            ]
    return "\n".join(out) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
