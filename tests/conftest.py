"""Settings of all tests: the same examples on every run, and the list of slow tests."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import pytest
from hypothesis import settings

from congenial.preview.comparison import expected

settings.register_profile("fixed", derandomize=True, deadline=None, database=None)
settings.load_profile("fixed")

# Tests that took over `LIMIT` seconds, all their cases and what they set up together.
SLOW = Path(__file__).with_name("slow.txt")
LIMIT = 0.5


@pytest.fixture(autouse=True)
def few_simulated(request, monkeypatch):
    """Let `explain` simulate few releases, where no test is about their errors."""
    if request.node.get_closest_marker("simulated") is None:
        monkeypatch.setattr(expected, "DRAWS", 20)


def pytest_addoption(parser):
    parser.addoption(
        "--record-slow", action="store_true", help="write the slow ones of the tests that run"
    )


def pytest_collection_modifyitems(items):
    slow = set(SLOW.read_text(encoding="utf-8").split())
    for item in items:
        if _function(item.nodeid) in slow:
            item.add_marker(pytest.mark.slow)


def pytest_terminal_summary(terminalreporter, config):
    if not config.getoption("--record-slow"):
        return
    took = defaultdict(float)
    for reports in terminalreporter.stats.values():
        for report in reports:
            if isinstance(report, pytest.TestReport):
                took[_function(report.nodeid)] += report.duration
    files = {name.partition("::")[0] for name in took}
    kept = [n for n in SLOW.read_text().split() if n.partition("::")[0] not in files]
    slow = sorted([*kept, *(name for name, seconds in took.items() if seconds > LIMIT)])
    SLOW.write_text("".join(f"{name}\n" for name in slow), encoding="utf-8")


def _function(nodeid):
    return nodeid.partition("[")[0]
