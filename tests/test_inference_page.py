"""Every code block of the page on inference runs, in order."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

PAGE = Path(__file__).parents[1] / "docs" / "inference.md"


def test_the_blocks_run_and_give_what_the_text_says():
    names: dict[str, object] = {}
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) == 3
    for block in blocks:
        exec(block, names)
    tree, law = names["tree"], names["law"]
    assert tree.is_consistent(law.point("l1"))
    means = law.mean()
    assert np.allclose(tree.roll_up(means[tree.leaves]), means)
    assert np.isfinite(names["curve"]).all()
