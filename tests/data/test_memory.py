"""How much memory counting may take."""

from __future__ import annotations

import os

from congenial.data.memory import allowance


def test_half_of_what_is_free_may_be_taken():
    found = allowance()
    if found is not None:
        whole = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        assert 2**20 < found <= whole // 2
