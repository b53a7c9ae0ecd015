"""Tables: their cells by column."""

from __future__ import annotations

import pytest

from congenial.exhibits.exhibit import Exhibit

TABLE = Exhibit("loss", "A title", ("name", "x"), (("a", 0.25), ("c", None), ("d", 3)))


def test_a_column_is_found_by_its_name():
    assert TABLE.column("x") == (0.25, None, 3)
    assert TABLE.column("name") == ("a", "c", "d")
    with pytest.raises(ValueError, match="not in tuple"):
        TABLE.column("y")
