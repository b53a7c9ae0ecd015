"""How much memory counting may take."""

from __future__ import annotations

import os

from congenial.data.memory import allowance


def test_half_of_the_free_memory_may_be_used():
    found = allowance()
    if found is not None:
        whole = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        assert 2**20 < found <= whole // 2
