"""Priors of counts, against scipy's laws."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

import congenial as cg

COUNTS = np.arange(40)


@pytest.mark.parametrize("zeros", [0.0, 0.3])
@pytest.mark.parametrize("dispersion", [0.5, 3.0, math.inf])
def test_the_law_is_negative_binomial_or_poisson_with_more_zeros(dispersion, zeros):
    mean = 4.0
    prior = cg.inference.Prior(mean, dispersion, zeros)
    inner = mean  # of the leaves that may have records
    if dispersion == math.inf:
        law = stats.poisson(inner)
    else:
        law = stats.nbinom(dispersion, dispersion / (dispersion + inner))
    wanted = (1 - zeros) * law.pmf(COUNTS) + zeros * (COUNTS == 0)
    found = np.exp([float(prior.log_pmf(np.array([k]))[0]) for k in COUNTS])
    np.testing.assert_allclose(found, wanted, rtol=1e-10)
    assert prior.log_pmf(np.array([-1]))[0] == -math.inf
    # the ratios of Panjer's recursion, and what a zero has more
    a, b = (float(part[0]) for part in prior.panjer(1))
    ratio = (a + b * COUNTS[:-1]) / (COUNTS[:-1] + 1)
    np.testing.assert_allclose(law.pmf(COUNTS)[1:] / law.pmf(COUNTS)[:-1], ratio, rtol=1e-8)
    more = wanted[0] / ((1 - zeros) * law.pmf(0))
    assert prior.log_zero(1)[0] == pytest.approx(math.log(more), abs=1e-12)


@pytest.mark.parametrize(
    "given", [(0.0, 1.0), (-1.0, 1.0), (1.0, 0.0), (1.0, 1.0, 1.0), ("x", 1.0)]
)
def test_invalid_parameters_are_refused(given):
    with pytest.raises(cg.errors.ArgumentError):
        cg.inference.Prior(*given)
