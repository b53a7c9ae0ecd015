"""TopDown in parts: the law of the noise."""

from __future__ import annotations

import numpy as np
from scipy import stats

from congenial.releases import directory as files
from support.city import make_city
from support.parts import PARTED, make, table_of


def test_the_noise_of_parts_has_the_law_of_the_plan(tmp_path):
    zones = {zone: f"b{zone // 2_000}" for zone in range(10_000)}
    make_city(tmp_path, zones=zones, trips=dict.fromkeys(zones, 1), **PARTED)
    make(tmp_path, simulate=5, parts="borough")
    rows = [row for row in table_of(tmp_path / "out", files.MEASUREMENTS_CSV) if row["zone"]]
    assert {float(row["scale"]) for row in rows} == {2 / 0.6}
    noise = np.array([int(row["measurement"]) for row in rows]) - 1

    def p_value(scale):
        decay = np.exp(-1 / scale)
        # sizes 0 to 11 of discrete Laplace noise, and all that are larger
        law = (1 - decay) / (1 + decay) * 2 * decay ** np.arange(13)
        law[0] /= 2
        law[12] = 1 - law[:12].sum()
        seen = np.bincount(np.minimum(np.abs(noise), 12), minlength=13)
        return stats.chisquare(seen, law * noise.size).pvalue

    assert p_value(2 / 0.6) > 1e-6
    assert p_value(2 / 0.6 * 1.3) < 1e-6
    assert p_value(2 / 0.6 / 1.3) < 1e-6
