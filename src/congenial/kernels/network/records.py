"""Named records of the arrays that the kernels of a sum network take.

Classes are numbered 0..c-1 and slots 0..s-1; `congenial.sum_network.network` defines both.
Compiled kernels on disk refer to records by name, across versions: a record that changes gets a
new name, and the old record stays.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Classes(NamedTuple):
    """Kind and parts of each class, see `messages`; shapes (c,)."""

    ctype: np.ndarray
    left: np.ndarray
    right: np.ndarray
    sign: np.ndarray


class Windows(NamedTuple):
    """First and last value of each class, and where its table begins; int64, shapes (c,)."""

    lo: np.ndarray
    hi: np.ndarray
    offset: np.ndarray


class Weights(NamedTuple):
    """Law code, scale, mode and support of each distinct weight."""

    kind: np.ndarray
    scale: np.ndarray
    center: np.ndarray
    lo: np.ndarray
    hi: np.ndarray


class TiltedWeights(NamedTuple):
    """Law code, inverse scale, mode and tilt of each UNARY class; shapes (c,)."""

    kind: np.ndarray
    inverse: np.ndarray
    center: np.ndarray
    tilt: np.ndarray


class LeafWeights(NamedTuple):
    """Tilted weights and the prior of each leaf, see `priors`; shapes (c,)."""

    kind: np.ndarray
    inverse: np.ndarray
    center: np.ndarray
    a: np.ndarray
    b: np.ndarray
    base: np.ndarray
    zero: np.ndarray
    tilt: np.ndarray


class Moments(NamedTuple):
    """Mean, variance and decay of each class's message downwards and upwards; shapes (c,)."""

    mean: np.ndarray
    var: np.ndarray
    rate_lo: np.ndarray
    rate_hi: np.ndarray


class Program(NamedTuple):
    """Operations that draw from a network, see `descend.draw`; shapes (p,)."""

    op: np.ndarray
    first: np.ndarray
    second: np.ndarray
    third: np.ndarray
    cls: np.ndarray


class Near(NamedTuple):
    """Mean of a merge's left part, middle + share * sum, and half-width of a row; shapes (c,)."""

    middle: np.ndarray
    share: np.ndarray
    reach: np.ndarray


class OpenChoices(NamedTuple):
    """First operation that a draw leaves open, and a bound on its doubt; shapes (draws,)."""

    at: np.ndarray
    doubt: np.ndarray


class WeighedTables(NamedTuple):
    """Tables, their factors, and what the tables of roots lack; see `descend.draw`."""

    table: np.ndarray
    factor: np.ndarray
    lacking: np.ndarray


class FilledTables(NamedTuple):
    """Tables, their factors, and the logarithms by which weights were divided."""

    table: np.ndarray
    factor: np.ndarray
    log_scale: np.ndarray


class Enveloped(NamedTuple):
    """Tails, the part added from beyond windows, and the part by which weights were raised."""

    tails: np.ndarray
    rise: np.ndarray
    raised: np.ndarray


class KeptRows(NamedTuple):
    """A thread's cache of rows of cumulated weights, see `descend.draw`."""

    kept: np.ndarray
    place: np.ndarray
    given: np.ndarray
    rows: np.ndarray
    weights: np.ndarray


class ClassLosses(NamedTuple):
    """Truncation losses of each class, see `certify.certify`."""

    place: np.ndarray
    lost: np.ndarray
    even: np.ndarray
    tails: np.ndarray


class Slots(NamedTuple):
    """Class and twin of each slot, and properties of each node, see `marginals.marginals`."""

    slot_class: np.ndarray
    twin: np.ndarray
    ends: np.ndarray
    dispersion: np.ndarray
    base: np.ndarray


class BranchLinks(NamedTuple):
    """Parts of each table of a forest that a cut set leaves, see `cutset`; int64.

    `terms` is the largest number of products that are added up to an entry.
    """

    row: np.ndarray
    op: np.ndarray
    left: np.ndarray
    right: np.ndarray
    sign: np.ndarray
    terms: np.ndarray


class TalliedWindows(NamedTuple):
    """Windows of the value and the tally of each table, and its start; int64."""

    lo: np.ndarray
    hi: np.ndarray
    tally_lo: np.ndarray
    tally_hi: np.ndarray
    offset: np.ndarray


class BranchState(NamedTuple):
    """Tables filled for one assignment of the cut set; the next assignment continues from them.

    A table is its sums over `factor`, a power of two; `log_scale` also has those of its parts.
    """

    table: np.ndarray
    start: np.ndarray
    stop: np.ndarray
    factor: np.ndarray
    log_scale: np.ndarray
    shifts: np.ndarray


class BranchTables(NamedTuple):
    """Tables of a forest left by a cut set."""

    links: BranchLinks
    windows: TalliedWindows
    state: BranchState


class Families(NamedTuple):
    """A forest, with the members of every sum side by side; see `consing.compile_program`."""

    above: np.ndarray
    owner: np.ndarray
    sign: np.ndarray
    start: np.ndarray
    member: np.ndarray
    bottom_up: np.ndarray


class Listed(NamedTuple):
    """Number of each variable's weight; row, kind of composition and bound of each weight."""

    code: np.ndarray
    row: np.ndarray
    way: np.ndarray
    bound: np.ndarray


class CompiledClasses(NamedTuple):
    """Results of `consing.compile_program`."""

    slot_class: np.ndarray
    sum_class: np.ndarray
    members: np.ndarray
    op: np.ndarray
    program: np.ndarray
    keys: np.ndarray
    held: np.ndarray
    state: np.ndarray
