"""Named records of the arrays that the kernels of a sum network take.

Classes are numbered 0..c-1 and slots 0..s-1; `congenial.sum_network.network` defines both.
Kernels kept on disk refer to these by name, whichever version reads them: a record that changes
gets another name, and the old name stays.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Classes(NamedTuple):
    """Kind of each class and the classes that it is made of, see `messages`; shapes (c,)."""

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
    """Law codes, scales or their inverses, modes, and ends or tilts of weights."""

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
    """Mean and spread of the left part of each merge given its sum."""

    middle: np.ndarray
    share: np.ndarray
    reach: np.ndarray


class KeptRows(NamedTuple):
    """Rows of cumulated weights that a thread keeps, see `descend.draw`."""

    kept: np.ndarray
    place: np.ndarray
    given: np.ndarray
    rows: np.ndarray
    weights: np.ndarray


class ClassLosses(NamedTuple):
    """Losses of each class to its window, see `certify.certify`."""

    place: np.ndarray
    lost: np.ndarray
    even: np.ndarray
    tails: np.ndarray


class Slots(NamedTuple):
    """Class, twin and more of each slot or node, see `marginals.marginals`."""

    slot_class: np.ndarray
    twin: np.ndarray
    ends: np.ndarray
    dispersion: np.ndarray
    base: np.ndarray


class BranchLinks(NamedTuple):
    """Parts of each table of a forest that a cut set leaves, see `cutset`; int64."""

    row: np.ndarray
    op: np.ndarray
    left: np.ndarray
    right: np.ndarray
    sign: np.ndarray


class TalliedWindows(NamedTuple):
    """Windows of the value and the tally of each such table, and where it begins; int64."""

    lo: np.ndarray
    hi: np.ndarray
    tally_lo: np.ndarray
    tally_hi: np.ndarray
    offset: np.ndarray


class BranchState(NamedTuple):
    """These tables filled for one assignment, from which the next assignment continues."""

    table: np.ndarray
    start: np.ndarray
    stop: np.ndarray
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
    """Weights by number: of each variable, its row, how runs are composed, and its bound."""

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
