"""Facts about counts that are added up part by part, and the names of counts."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

import congenial as cg
from congenial.domain.workload import Workload
from congenial.releases.file_table import Numbers, every
from congenial.report.shown_counts import (
    NodeLabels,
    QueryLabels,
    ShownCounts,
    level_facts,
    searched,
)
from support.city import make_city
from support.cross_tables import plan_of, random_rows, write_rows


@pytest.mark.parametrize("cut", [True, False])
@pytest.mark.parametrize("seed", range(5))
def test_the_facts_about_parts_add_up(seed, cut):
    rng = np.random.default_rng(seed)
    size = int(rng.integers(1, 300))
    value = every(rng.integers(-3, 20, size))
    known, exact = rng.random(size) < 0.8, rng.random(size) < 0.3
    lower = Numbers(value.values - rng.integers(0, 6, size), known)
    upper = Numbers(value.values + rng.integers(0, 6, size), known)

    def facts(at):
        ends = (column.take(at) for column in (value, lower, upper))
        return level_facts(exact[at], *ends, cut=cut)

    whole = facts(slice(None))
    cuts = [0, *sorted(rng.integers(0, size, 3).tolist()), size]
    parts = [facts(slice(a, b)) for a, b in pairwise(cuts)]
    added = parts[0] + parts[1] + parts[2] + parts[3]
    assert added.exact == whole.exact == exact.sum()
    assert added.known == whole.known == known.sum()
    assert (added.widths == whole.widths).all() and (added.times == whole.times).all()
    assert added.quantiles == whole.quantiles

    # the same by sorting
    reach = np.maximum(value.values - lower.values, upper.values - value.values)
    assert np.isinf(whole.widths).any() == (~known & ~exact).any()
    finite = whole.widths[np.isfinite(whole.widths)]
    assert finite.tolist() == sorted({*reach[known & ~exact].tolist()})
    with np.errstate(divide="ignore", invalid="ignore"):
        none = np.where(exact | (value.values != 0) | (not cut), 0.0, np.inf)
        share = np.sort(np.where(reach == 0, none, reach / np.abs(value.values))[known])
    at = np.linspace(0, share.size - 1, 201).astype(int)
    wanted = [None if np.isinf(s) else round(s, 6) for s in share[at].tolist()]
    assert whole.quantiles == wanted


def test_no_count_of_a_level_has_an_interval():
    none = Numbers(np.zeros(2, dtype=np.int64), np.zeros(2, dtype=np.bool_))
    facts = level_facts(none.known, every(np.array([1, 2])), none, none, cut=True)
    assert (facts.known, facts.quantiles, facts.widths.tolist()) == (0, [], [np.inf])


def shown_of(release):
    level = release.domain.level
    exact = np.zeros(level.size, dtype=np.bool_)
    return ShownCounts(np.arange(level.size), level, exact, release.rows, None)


def test_nodes_have_their_paths(tmp_path):
    cg.release(cg.read_plan(make_city(tmp_path)), tmp_path / "out", base=tmp_path, simulate=1)
    found = cg.read_release(tmp_path / "out")
    some = np.array([0, 3, 7])
    labels = NodeLabels(found.plan.place_names, {1: 1, 2: 1})
    made = [*labels.of(shown_of(found).take(some))]
    assert [label.path for label in made] == [found.tree.path(v) for v in some]
    assert [label.name for label in made] == [found.tree.names[v] for v in some]
    assert labels.place(("City", "Arden", "1"), 2) == "arden"


def test_labels_of_a_table_list_its_counts_at_most_once(tmp_path, monkeypatch):
    """A listing for each label took hours for the page of 160,000 counts."""
    write_rows(tmp_path, random_rows(1))
    cg.release(plan_of(), tmp_path / "out", base=tmp_path, simulate=2)
    found = cg.read_release(tmp_path / "out")
    listed, paths = [], Workload.paths.fget
    monkeypatch.setattr(Workload, "paths", property(lambda w: listed.append(w) or paths(w)))
    assert len([*QueryLabels(found.domain).of(shown_of(found))]) == len(found.domain)
    assert len(listed) == 1


def test_cells_of_a_table_are_below_the_total_of_their_place(tmp_path):
    write_rows(tmp_path, random_rows(1))
    cg.release(plan_of(), tmp_path / "out", base=tmp_path, simulate=2)
    found = cg.read_release(tmp_path / "out")
    labels, paths = QueryLabels(found.domain), found.domain.paths
    totals = {path for path in paths if "=" not in path[-1]}
    for v, label in enumerate(labels.of(shown_of(found))):
        assert label.path == paths[v]
        assert not label.start or label.path[: label.start] in totals
        assert label.name == "/".join(label.path[label.start :])
        place = paths[v][-2 if "=" in paths[v][-1] else -1]
        assert labels.place(paths[v], int(found.domain.level[v])) == place.lower()


@pytest.mark.parametrize(
    ("name", "found"), [("Do\u00f1a Ana", "dona ana"), ("\u00c9LAN", "elan"), ("A_1", "a_1")]
)
def test_names_are_searched_for_without_accents(name, found):
    assert searched(name) == searched(found) == found
