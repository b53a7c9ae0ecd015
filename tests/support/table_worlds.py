"""Small tables with noise and invariants."""

from __future__ import annotations

import numpy as np

import congenial as cg
from congenial.conditioning.laws.cutset_sampler import CutConditioned
from congenial.conditioning.laws.forest_sampler import Conditioned
from support.table_cases import AGES, PAIR, counts

SMALL = {"sex": ("F", "M"), "age": ("0", "1", "2")}


GROUPS = {"grown": ("age", AGES)}


def small(geography=None, **more):
    return cg.Table(SMALL, GROUPS, geography, **more)


SQUARE = cg.Table({"sex": ("F", "M"), "home": ("own", "rent")}, geography=PAIR, levels=("t", "s"))


CHILDLESS = [{"sex": "M", "age": "0"}]


LAWS = {"laplace": cg.DiscreteLaplace, "gaussian": cg.DiscreteGaussian}


CASES = {
    "nested groups": (
        small(),
        [("sex", "grown"), ("sex",)],
        {("sex", "age"): 0.4, ("sex", "grown"): 0.25},
        cg.exactly(margins=[("sex",)]) & cg.nonnegative(),
        Conditioned,
    ),
    "two rows, both margins exact": (
        small(),
        [("sex",), ("age",)],
        {("sex", "age"): 0.4},
        cg.exactly(margins=[("sex",), ("age",)]),
        Conditioned,
    ),
    "total, women and adults exact": (
        small(),
        [(), ("sex",), ("grown",)],
        {("sex", "age"): 0.4},
        cg.exactly(margins=[(), ("sex",), ("grown",)]) & cg.nonnegative(),
        Conditioned,
    ),
    "exact at different levels": (
        SQUARE,
        {"t": [("sex",)], "s": [("home",)]},
        {("sex", "home"): 0.4},
        cg.exactly(margins=[("sex",)], level="t")
        & cg.exactly(margins=[("home",)], level="s")
        & cg.nonnegative(),
        Conditioned,
    ),
    "exact margins that cross above a measured one": (
        cg.Table({**SQUARE.axes, "age": ("0", "1")}, geography=PAIR, impossible={"age": "0"}),
        {0: [("sex",), ("home",)], 1: [("sex", "home")]},
        {("sex", "home"): 0.3, ("sex", "home", "age"): 0.4},
        cg.exactly(margins=[("sex",), ("home",)]),
        Conditioned,
    ),
    "measured margins that cross": (
        small(),
        [("sex",), ("age",)],
        {("sex", "age"): 0.25, ("sex",): 0.2, ("age",): 0.3},
        cg.nonnegative(),
        CutConditioned,
    ),
    "one margin exact, another measured": (
        small(),
        [("sex",), ("grown",)],
        {("sex", "age"): 0.3, ("grown",): 0.3},
        cg.exactly(margins=[("sex",)]),
        Conditioned,
    ),
    "impossible cells": (
        small(impossible=CHILDLESS),
        [("sex",), ("grown",)],
        {("sex", "age"): 0.4},
        cg.exactly(margins=[("sex",), ("grown",)]) & cg.nonnegative(),
        Conditioned,
    ),
    "bounds on a margin": (
        small(),
        [("sex",), ()],
        {("sex", "age"): 0.4, (): 0.3},
        cg.bounds(3, [5, 9], margin="sex") & cg.nonnegative(),
        Conditioned,
    ),
}


def world(name, kind="laplace", seed=0):
    table, margins, scales, more, _ = CASES[name]
    workload = cg.Workload.of(table, margins)
    data = counts(table, np.random.default_rng(seed))
    if name == "bounds on a margin":
        data = np.array([[1, 1, 2], [3, 0, 2]])
    noise = LAWS[kind](workload.scales(scales))
    return workload, workload.answers(data), cg.Additive(noise, workload), more
