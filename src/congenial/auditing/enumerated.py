"""The largest privacy loss over all small neighbouring datasets, by enumeration.

Conditional laws come from the mechanism's own `log_prob`, whose normaliser comes from the tables
that draw releases. The law of an image comes from noisy values in a box, each moved by the
mechanism's own projection. Mass outside the box counts in the claim's favour.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from congenial.accounting.guarantee import Guarantee, Neighbours
from congenial.accounting.mechanism import Mechanism
from congenial.auditing.finding import Finding, Pair
from congenial.auditing.space import Space, moved_at_once
from congenial.conditioning.mixtures import Mixture
from congenial.errors import ArgumentError, UnsupportedError
from congenial.imaging.top_down import TopDown
from congenial.imaging.update import Imaged
from congenial.invariants.resolved import hull
from congenial.noise.additive import Additive
from congenial.randomness import seeded
from congenial.types import FloatArray, IntArray, Values

# Most entries, datasets, outputs of a group of datasets, and projections of a group.
ENTRIES, DATASETS, OUTPUTS, PROJECTIONS = 10, 400, 20_000, 4_000
# Relative rounding error up to which losses are compared.
ROUNDING = 1e-9
# Decimals to which images are compared: equal images may differ by rounding.
_DIGITS = 9
# Most mass of noisy values outside the enumeration; it counts in the claim's favour.
_MOST_OUTSIDE = 0.02
# Number of seeds for the random words that break the ties of an integer image.
_TAPES = 2


def can_enumerate(mechanism: Mechanism, space: Space, datasets: Values) -> bool:
    """Whether the laws at datasets, shape (size, n), can be enumerated."""
    if not space.mechanism.noise.discrete or space.entries.size > ENTRIES:
        return False
    if isinstance(mechanism, Imaged | TopDown):
        # estimated mass of noisy values outside the box whose images are enumerated
        scales = space.mechanism.scales[_measured(space)]
        width = PROJECTIONS ** (1.0 / max(1, scales.size)) - 1.0
        outside = np.exp(-0.5 * width * space.mechanism.granularity / scales).sum()
        return bool(outside <= _MOST_OUTSIDE)
    log_prob: Callable[..., object] | None = getattr(mechanism, "log_prob", None)
    if log_prob is None:
        return False
    x = datasets[0]
    if _size(_box(space, x[None]).spans(1)) > OUTPUTS:
        return False
    try:
        log_prob(x, x)
    except UnsupportedError:
        return False
    pinned = _pinned(space)
    _, group = np.unique(datasets[:, pinned], axis=0, return_inverse=True)
    groups = (datasets[group.ravel() == g] for g in range(int(group.max()) + 1))
    return all(len(x) * _size(_box(space, x).spans(1)) <= OUTPUTS * DATASETS for x in groups)


def enumerated(
    mechanism: Mechanism,
    space: Space,
    guarantee: Guarantee,
    neighbours: Neighbours,
    *,
    total: int,
    pairs: Sequence[Pair] | None = None,
) -> tuple[Finding, ...]:
    """Compare the laws at every pair of neighbours, and check that each adds up to 1."""
    datasets: list[Values]
    if pairs is None:
        datasets = [*space.datasets(total)]
        joined = space.pairs(datasets, neighbours, moved_at_once(guarantee))
    else:
        datasets = [x for pair in pairs for x in pair]
        joined = [(i, i + 1) for i in range(0, len(datasets), 2)]
    if not joined:
        raise ArgumentError(
            f"total is {total}, and no two neighbouring datasets of so few records satisfy the "
            "invariant; raise it, or give pairs."
        )
    # a mixture of Gaussian noise states no rho, and its losses are unbounded
    relaxed_claim = guarantee.rho is not None or space.mechanism.noise.measure == "zcdp"
    delta = guarantee.delta if relaxed_claim else None
    pinned = _pinned(space)
    groups: dict[bytes, list[tuple[int, int]]] = {}
    for i, j in joined:
        groups.setdefault(datasets[i][pinned].tobytes(), []).append((i, j))
    found, worst, outputs, relaxed, heaviest = 0.0, joined[0], 0, 0.0, 0.0
    for members in groups.values():
        used = sorted({i for pair in members for i in pair})
        for laws, missing in _laws(mechanism, space, np.array([datasets[i] for i in used])):
            outputs += laws.shape[1]
            heaviest = max(heaviest, float(np.exp(laws).sum(axis=1).max()))
            row = {i: at for at, i in enumerate(used)}
            for one, other in [*members, *((j, i) for i, j in members)]:
                p, q, out = laws[row[one]], laws[row[other]], float(missing[row[other]])
                lost = _largest(p, q, out) if delta is None else at_delta(p, q, delta, out)
                if lost > found:
                    found, worst = lost, (one, other)
                    relaxed = at_delta(p, q, guarantee.delta, out)
    stated, compared = guarantee.epsilon, len(joined)
    which = f"{len(datasets)} datasets"
    which += f" of at most {total} records" if pairs is None else " that were given"
    text = (
        f"all pairs of neighbours among {which}; at delta {guarantee.delta:.2g} the worst pair "
        f"needs epsilon {relaxed:.6g}."
    )
    passed = found <= stated + ROUNDING * (1.0 + stated)
    pair = datasets[worst[0]], datasets[worst[1]]
    loss = Finding("loss, enumerated", passed, found, stated, compared, outputs, pair, text)
    if isinstance(mechanism, Mixture):  # the parts' densities may be of different queries
        return (loss,)
    text = (
        "the largest sum of the probabilities of all outputs compared, for one dataset; a sum "
        "above 1 shows that they are wrong."
    )
    passed = heaviest <= 1.0 + ROUNDING
    mass = Finding("mass, enumerated", passed, heaviest, 1.0, compared, outputs, None, text)
    return loss, mass


def at_delta(p: FloatArray, q: FloatArray, delta: float, missing: float = 0.0) -> float:
    """Smallest epsilon at a given delta of one law against another, from below.

    References
    ----------
    Barthe and Olmedo (2013), for the hockey-stick divergence.
    """
    high = _largest(p, q, 0.0)
    low, first, second = 0.0, np.exp(p), np.exp(q)

    def excess(epsilon: float) -> float:
        factor = math.exp(min(epsilon, 700.0))
        return float(np.maximum(first - factor * second, 0.0).sum()) - factor * missing

    if excess(0.0) <= delta:
        return 0.0
    if math.isinf(high):
        high = 700.0
        if excess(high) > delta:
            return math.inf
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if excess(middle) <= delta else (middle, high)
    return low


def _largest(p: FloatArray, q: FloatArray, missing: float) -> float:
    """Largest log ratio of p over q, from below."""
    possible = p > -np.inf
    if missing > 0.0:
        q = np.logaddexp(q, math.log(missing))
    return float((p[possible] - q[possible]).max(initial=-np.inf))


def _laws(
    mechanism: Mechanism, space: Space, datasets: Values
) -> list[tuple[FloatArray, FloatArray]]:
    """Log probabilities, (datasets, outputs), and the mass left out of them, (datasets,)."""
    if isinstance(mechanism, Imaged | TopDown):
        return _imaged(mechanism, space, datasets)
    outputs = _outputs(space, datasets)
    log_prob: Callable[..., FloatArray] = mechanism.log_prob  # type: ignore[attr-defined]
    laws = np.array([log_prob(outputs, x) for x in datasets])
    return [(laws, np.zeros(len(datasets)))]


@dataclass(frozen=True, eq=False)
class _Box:
    """Releases near datasets, as sums of a basis; some coefficients determine the others."""

    basis: IntArray
    solved: list[int]
    rest: IntArray
    values: FloatArray
    spans: Callable[[int], list[FloatArray]]


def _box(space: Space, datasets: Values) -> _Box:
    """Return the releases near datasets that agree on the exact counts."""
    x = datasets[0]
    alternatives = [other.with_pins(x) for other in space.alternatives]
    resolved, ends = alternatives[0], hull(alternatives)
    basis = np.eye(resolved.n, dtype=np.int64)
    columns = np.arange(resolved.n)
    if resolved.sums is not None:
        basis, columns = space.incidence, space.entries
    low, high = datasets[:, columns].min(axis=0), datasets[:, columns].max(axis=0)
    fixed = resolved.pinned[columns]
    # sums of the basis's coefficients that every output has, and their values
    matrix, sums = space.alternatives[0].equalities
    pins = space.alternatives[0].pinned
    rows = np.vstack((basis[:, pins].T, np.rint(basis @ matrix.T).astype(np.int64).T))
    solved, rest, values = _solved(rows, np.concatenate((x[pins], sums)), fixed)
    step = space.mechanism.granularity

    def spans(width: int) -> list[FloatArray]:
        out = []
        for at, column in enumerate(columns):
            first = max(ends.lo[column], low[at] - width * step)
            last = min(ends.hi[column], high[at] + width * step)
            if fixed[at] or at in solved:
                first = last = float(x[column])
            out.append(np.arange(math.ceil(first / step), math.floor(last / step) + 1) * step)
        return out

    return _Box(basis, solved, rest, values, spans)


def _outputs(space: Space, datasets: Values) -> Values:
    """Releases to compare: all near the datasets, which agree on the exact counts."""
    box, step = _box(space, datasets), space.mechanism.granularity
    finite = space.mechanism.scales[np.isfinite(space.mechanism.scales)]
    cells = _grid(box.spans, float(finite.max(initial=1.0)) / step, OUTPUTS)
    cells[:, box.solved] = box.values - cells @ box.rest.T
    z = cells @ box.basis
    z = z.astype(np.int64) if step == 1.0 else z
    return np.asarray(z[space.satisfied(z, datasets[0])])


def _pinned(space: Space) -> npt.NDArray[np.bool_]:
    """Whether each count is published exactly by some alternative of the invariant."""
    return np.asarray(np.logical_or.reduce([resolved.pinned for resolved in space.alternatives]))


def _solved(
    rows: IntArray, values: FloatArray, fixed: npt.NDArray[np.bool_]
) -> tuple[list[int], IntArray, FloatArray]:
    """Solve sums for as many columns as can be without fractions.

    Returns the columns, the coefficients of the others in each (solved, columns), and the values.
    """
    rows, values = rows.copy(), values.astype(np.float64)
    solved: list[int] = []
    used: list[int] = []
    for r in range(len(rows)):
        can = np.flatnonzero((np.abs(rows[r]) == 1) & ~fixed)
        if not can.size:
            continue
        at = int(can[-1])
        sign = int(rows[r, at])
        rows[r] *= sign
        values[r] *= sign
        times = rows[:, at].copy()
        times[r] = 0
        rows -= times[:, None] * rows[r]
        values -= times * values[r]
        solved.append(at)
        used.append(r)
    rest = rows[used]
    rest[:, solved] = 0
    return solved, rest, values[used]


def _imaged(
    mechanism: Imaged | TopDown, space: Space, datasets: Values
) -> list[tuple[FloatArray, FloatArray]]:
    """Laws of an image, one for each seed of the words that break ties."""
    queries: Additive = mechanism.mechanism
    free, step = _measured(space), queries.granularity
    low, high = datasets[:, free].min(axis=0), datasets[:, free].max(axis=0)

    def spans(width: int) -> list[FloatArray]:
        ends = zip(low / step - width, high / step + width, strict=True)
        return [np.arange(a, b + 1) * step for a, b in ends]

    noisy = _grid(spans, float(queries.scales[free].max()) / step, PROJECTIONS)
    y = np.tile(datasets[0].astype(np.float64), (len(noisy), 1))
    y[:, free] = noisy
    scales = queries.scales[free]
    log_pmf = np.array([queries.noise.log_pmf(noisy - x[free], scales).sum(1) for x in datasets])
    missing = np.maximum(1.0 - np.exp(log_pmf).sum(axis=1), 0.0)
    out = []
    move = mechanism.apply if isinstance(mechanism, TopDown) else mechanism.projector.apply
    for tape in range(_TAPES if mechanism.whole else 1):
        images = np.array([move(row, seeded(tape)) for row in y])
        _, cell = np.unique(np.round(images, _DIGITS) + 0.0, axis=0, return_inverse=True)
        cell = cell.ravel()
        mass = np.array([np.bincount(cell, weights=np.exp(row)) for row in log_pmf])
        with np.errstate(divide="ignore"):
            out.append((np.log(mass), missing))
    return out


def _measured(space: Space) -> IntArray:
    """Entries whose noisy values an image uses."""
    return np.flatnonzero(np.isfinite(space.mechanism.scales) & ~space.alternatives[0].pinned)


def _size(spans: list[FloatArray]) -> int:
    return math.prod(span.size for span in spans)


def _grid(spans: Callable[[int], list[FloatArray]], scale: float, limit: int) -> FloatArray:
    """Return all points of a box, at most 30 scales wide to each side and within the limit."""
    most = range(1, math.ceil(30.0 * scale) + 2)
    width = max(1, bisect_right(most, limit, key=lambda width: _size(spans(width))))
    axes = spans(width)
    return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(axes))
