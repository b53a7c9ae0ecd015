"""A plan that is no TOML is refused with its file, the line and a remedy."""

from __future__ import annotations

import pytest

from congenial.errors import PlanError
from congenial.plan.plan import read_plan


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a = 1\nb = x", "line 2, column 5"),
        ("a = 1\nb = [1,\n", "line 2, the end of the document"),
        ("[data", "line 1, the end of the document"),
    ],
)
def test_bad_toml_is_found_in_its_file(tmp_path, text, line):
    path = tmp_path / "odd plan.toml"
    path.write_text(text)
    with pytest.raises(PlanError) as caught:
        read_plan(path)
    message = str(caught.value)
    assert message.startswith(f"the plan {str(path)!r} is not valid TOML: ")
    assert f"(at {line}); correct that line, with text in quotes" in message
    assert message.count("\n") == 0


def test_a_value_that_is_too_long_is_found_in_its_file(tmp_path):
    path = tmp_path / "plan.toml"
    path.write_text(f"a = 1{'0' * 5000}")
    with pytest.raises(PlanError, match=r"plan\.toml' is not valid TOML: a value is too long"):
        read_plan(path)
