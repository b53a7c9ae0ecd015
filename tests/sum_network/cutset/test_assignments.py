"""Windows grow until nearly all weight is within them."""

from __future__ import annotations

import numpy as np
import pytest

from congenial.sum_network.cutset.assignments import weigh
from congenial.sum_network.cutset.outside import excluded, log_bound
from support.cut_cases import log_weights, open_case
from support.seeds import for_each_seed

pytestmark = pytest.mark.kernels


@for_each_seed(60)
def test_listed_assignments_have_all_weight_but_what_is_bounded(seed):
    case = open_case(seed)
    found = weigh(case.system, case.unary)
    beyond = log_bound(found.box, len(excluded(found.box, found.branches)))
    assert beyond <= found.log_total + np.log(1.001e-12)
    every = np.logaddexp.reduce(log_weights(case.unary, case.solutions))
    # the solutions end where little is left
    assert found.log_total == pytest.approx(every, abs=1e-3)
