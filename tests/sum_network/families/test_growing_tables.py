"""Tables that are filled one after another keep what they have been given, however many come."""

from __future__ import annotations

import numpy as np
import pytest

from congenial.kernels.network.family_draws import PARTS
from congenial.sum_network.families import growing_tables
from congenial.sum_network.families.family_records import Doubt

pytestmark = pytest.mark.kernels


def test_tables_grow_and_draws_take_their_running_sums(monkeypatch):
    monkeypatch.setattr(growing_tables, "_ENTRIES", 4)
    monkeypatch.setattr(growing_tables, "_TABLES", 1)
    source, made, given = np.random.default_rng(1), growing_tables.GrowingTables(60), {}
    for v in range(0, 50, 2):
        entries = source.integers(1, 1 << int(source.choice([50, 59])), int(source.integers(1, 9)))
        places = np.array([[made.append(entries)], [v - 20], [entries.size]])
        tails, doubt = source.random((4, 1)), source.random(len(Doubt._fields))
        made.add(np.array([v]), places=places, tails=tails, doubt=Doubt(*doubt))
        made.share(np.array([v + 1]), np.array([v]))
        given[v] = entries, tails[:, 0], doubt
    tables, doubts = made.finished()
    assert (tables.of[50:] == -1).all()
    for v, (entries, tails, doubt) in given.items():
        t = tables.of[v]
        assert tables.of[v + 1] == t
        assert (tables.entries(v + 1) == entries).all()
        assert tables.values(v) == range(v - 20, v - 20 + entries.size)
        assert (tables.tails[:, t] == tails).all()
        assert [column[t] for column in doubts] == doubt.tolist()
        assert (tables.largest[t], tables.total[t]) == (entries.max(), entries.sum())
        below = (np.arange(PARTS)[:, None] << 58) >= np.cumsum(entries)
        assert (tables.guide[t] == below.sum(axis=1)).all()
        share, at = entries / entries.sum(), np.arange(entries.size)
        mean = share @ at
        assert tables.moments[0, t] == pytest.approx(mean)
        assert tables.moments[1, t] == pytest.approx(share @ at**2 - mean**2, abs=1e-9)


@pytest.mark.parametrize("tail", [0.0, 0.5])
def test_a_single_entry_without_tails_is_a_constant(tail):
    made = growing_tables.GrowingTables(1)
    places = np.array([[made.append(np.array([7]))], [0], [1]])
    doubt = Doubt(*np.ones(len(Doubt._fields)))
    tails = np.array([[tail], [1.0], [0.0], [0.0]])
    made.add(np.array([0]), places=places, tails=tails, doubt=doubt)
    _, doubts = made.finished()
    assert (doubts.rounding[0] == doubts.factor[0] == 0.0) == (tail == 0.0)
