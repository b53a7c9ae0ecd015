"""Progress: nothing is printed without a terminal."""

from __future__ import annotations

import pytest

from congenial.cli.progress import progress


@pytest.mark.parametrize("quiet", [True, False])
def test_nothing_is_shown_without_a_terminal(quiet, capsys):
    with progress(quiet=quiet, patience=0.0) as step:
        step("reading")
    assert capsys.readouterr() == ("", "")


def test_a_step_is_shown_on_a_terminal_and_gone_in_the_end(capsys, monkeypatch):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    with progress(patience=60.0) as step:
        step("reading")  # done before anybody lost patience
    assert capsys.readouterr().out == ""
