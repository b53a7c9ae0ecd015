"""Each fact is computed once: in a release, and in its verification."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import pytest

from congenial.plan.plan import read_plan
from congenial.releases.making.make_release import release
from congenial.verification.verdict import verify
from support.city import make_city

# What is worked out, and the function that does it.
FACTS = {
    "the model": ("model.py", "build_model"),
    "the domain": ("public_domain.py", "domain_paths"),
    "the invariant": ("written.py", "resolve_invariant"),
    "the determined nodes": ("resolved.py", "determined"),
    "the worst pair": ("single_moves.py", "worst_move"),
    "the guarantee": ("guarantee.py", "_guarantee"),
    "the margins": ("accuracy.py", "margins"),
    "the connection": ("sources.py", "connect"),
}
# Functions that ask for some of them of something else than the release.
ELSEWHERE = {
    "level_scales": ("the worst pair", "the guarantee"),  # noise of other scales
    "_check_data_free": ("the determined nodes",),  # what follows where bounds pin more
}


def worked_out(act):
    """Count what is worked out of the release itself."""
    found, inside = Counter(), Counter()

    def watch(frame, event, _):
        code = frame.f_code
        if "congenial" not in code.co_filename:
            return
        if code.co_name in ELSEWHERE:
            inside[code.co_name] += {"call": 1, "return": -1}.get(event, 0)
        if event == "call":
            apart = {fact for name in ELSEWHERE if inside[name] for fact in ELSEWHERE[name]}
            name = Path(code.co_filename).name, code.co_name
            for fact, function in FACTS.items():
                found[fact] += name == function and fact not in apart

    sys.setprofile(watch)
    try:
        act()
    finally:
        sys.setprofile(None)
    return dict(found)


@pytest.mark.parametrize(
    "sections",
    [
        {},
        {"invariants": 'publish_exactly = ["root"]'},
        {"method": 'name = "imaging"', "invariants": 'publish_exactly = ["root", "Brook"]'},
        {"method": 'name = "topdown"', "release": 'publish = ["table", "measurements"]'},
    ],
)
def test_each_fact_is_computed_once(tmp_path, sections):
    plan = read_plan(make_city(tmp_path, **sections))
    made = worked_out(lambda: release(plan, tmp_path / "out", base=tmp_path))
    # the context manager of the connection is entered, and left
    assert made == dict.fromkeys(FACTS, 1) | {"the connection": 2}
    checked = worked_out(lambda: verify(tmp_path / "out"))
    unread = {"the domain": 0, "the connection": 0}
    assert checked == dict.fromkeys(FACTS, 1) | unread
