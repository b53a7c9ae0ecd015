"""The likelihood of true counts, or of a model's parameters, given a release."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from congenial.conditioning.laws.forest_sampler import Conditioned
from congenial.errors import ArgumentError, InfeasibleError, UnsupportedError
from congenial.inference.evidence import Gradient
from congenial.inference.measured import pose
from congenial.inference.posteriors import Posterior
from congenial.inference.priors import Prior
from congenial.invariants.written import bounds, consistent, exactly


def log_likelihood(
    z: npt.ArrayLike, conditioned: Conditioned, x: npt.ArrayLike | Prior
) -> float | npt.NDArray[np.float64]:
    """Log probability of a release, normalised.

    Parameters
    ----------
    z : array_like of int, shape (n,)
        The release.
    conditioned : Conditioned
        The mechanism that drew it, `congenial.condition(M, C)` of the plan's noise and invariant.
    x : array_like of int, shape (n,) or (k, n), or Prior
        True counts; or a model, which is a law of independent leaf counts. With a model, the
        likelihood is summed over all counts, exactly.

    Returns
    -------
    float, or ndarray of float64, shape (k,)
        -inf if the counts or the model make the release impossible.

    Raises
    ------
    ArgumentError
        If shapes do not fit, or counts do not add up.
    UnsupportedError
        If a model is given and the invariant has bounds, which make the normaliser depend on the
        counts, or has `linear` conditions, which a model's counts may violate.

    Notes
    -----
    Under inequalities, the probability that the noise satisfies the invariant depends on `x`. The
    noise law at ``z - x`` alone lacks this factor, so it is not the likelihood. Under equalities,
    the factor is the same for all counts, ``exp(conditioned.log_mass)``.

    References
    ----------
    Gong and Meng (2020), Section 5.

    Examples
    --------
    >>> import congenial as cg
    >>> tree = cg.Tree.from_parents([-1, 0, 0])
    >>> K = cg.condition(cg.Additive(cg.DiscreteLaplace(1.0), tree), cg.consistent(tree))
    >>> round(float(log_likelihood([5, 2, 3], K, [4, 1, 3])), 4)
    -2.7353
    >>> round(float(log_likelihood([5, 2, 3], K, cg.inference.Prior([1.5, 3.0]))), 4)
    -3.0197
    """
    released = _checked(z, conditioned)
    if not isinstance(x, Prior):
        rows = np.asarray(x)
        if rows.ndim == 2:
            return np.array([float(conditioned.log_prob(released, row)) for row in rows])
        return float(conditioned.log_prob(released, rows))
    law = _counts_given(released, conditioned, x)
    if law is None:
        return -np.inf
    # the normaliser, too, has noise 0 for counts published exactly
    exact = law.problem.pinned & np.isfinite(conditioned.mechanism.scales)
    noise, scales = conditioned.mechanism.noise, conditioned.mechanism.scales
    at_pins = float(noise.log_pmf(np.zeros(exact.size), scales)[exact].sum())
    return law.log_evidence() + at_pins - conditioned.log_mass


def log_likelihood_gradient(z: npt.ArrayLike, conditioned: Conditioned, prior: Prior) -> Gradient:
    """Exact derivatives of `log_likelihood` with respect to a model's means and dispersions.

    Parameters
    ----------
    z, conditioned, prior
        As for `log_likelihood`.

    Returns
    -------
    Gradient
        ``mean`` and ``dispersion``, each of shape (leaves,); 0 for an infinite dispersion.

    Raises
    ------
    ArgumentError, UnsupportedError
        As `log_likelihood`; the first also if the release is impossible.

    Notes
    -----
    Each derivative is the posterior mean of the derivative of the log prior, because the normaliser
    is the same for all counts.

    Examples
    --------
    >>> import congenial as cg
    >>> tree = cg.Tree.from_parents([-1, 0, 0])
    >>> K = cg.condition(cg.Additive(cg.DiscreteLaplace(1.0), tree), cg.consistent(tree))
    >>> log_likelihood_gradient([5, 2, 3], K, cg.inference.Prior([1.5, 3.0])).mean.round(4).tolist()
    [0.2369, 0.0062]
    """
    law = _counts_given(_checked(z, conditioned), conditioned, prior)
    if law is None:
        raise ArgumentError(
            "no counts can give z, which does not add up or has an impossible exact count; give a "
            "release."
        )
    found = law.log_evidence_gradient()
    if not isinstance(found, Gradient):
        raise ArgumentError("the prior is one of a tree; give a congenial.inference.Prior.")
    return found


def _checked(z: npt.ArrayLike, conditioned: Conditioned) -> npt.NDArray[np.int64]:
    if not isinstance(conditioned, Conditioned):
        raise ArgumentError(
            f"a {type(conditioned).__name__} was given; give a result of congenial.condition()."
        )
    released = np.asarray(z)
    if released.shape != (conditioned.mechanism.n,):
        raise ArgumentError(
            f"z has shape {released.shape}; give one release, {conditioned.mechanism.n} values."
        )
    return released


def _counts_given(
    released: npt.NDArray[np.int64], conditioned: Conditioned, prior: Prior
) -> Posterior | None:
    """Return the law of the counts given a release; None if the release is impossible."""
    if not conditioned.data_free:
        raise UnsupportedError(
            "under bounds, the normaliser depends on the counts, so a model has no likelihood "
            "here; give counts, or use congenial.posterior(...).log_evidence() of measurements "
            "that imaging or topdown publish."
        )
    resolved = conditioned.resolved
    if resolved.tree is None:
        raise UnsupportedError("models are for releases on a tree; impose consistent(tree).")
    if resolved.equalities[1].size:
        raise UnsupportedError(
            "a model's counts may violate the linear() conditions of the release; publish nodes "
            "with exactly() instead, or give counts."
        )
    if not resolved.tree.is_consistent(released):
        return None
    # the true counts satisfy the bounds, so the values published exactly do too
    known = resolved.with_pins(released)
    if ((released < known.lo) | (released > known.hi))[resolved.pinned].any():
        return None
    imposed = consistent(resolved.tree) & bounds(-np.inf, np.inf)
    if resolved.pinned.any():
        imposed = imposed & exactly(np.flatnonzero(resolved.pinned).tolist())
    prior.panjer(resolved.tree.leaves.size)
    try:
        problem = pose(released, conditioned.mechanism, imposed, nonnegative_leaves=True)
    except InfeasibleError:  # no nonnegative counts have the values published exactly
        return None
    return Posterior(problem, prior)
