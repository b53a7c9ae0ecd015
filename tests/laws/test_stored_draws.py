"""A seed gives the stored draws, by every method and route."""

from __future__ import annotations

import json
from types import SimpleNamespace

import numpy as np
import pytest

import congenial as cg
from support import stored_readers
from support.stored_cases import CASES
from support.stored_draws import FILE, TOLERANCE, answers, differences, stored

pytestmark = pytest.mark.kernels

THEN = json.loads(FILE.read_text())
# One case for each way of drawing.
WAYS = (
    "noise: laplace, wide",
    "noise: gaussian, one scale",
    "continuous_noise: gaussian, one scale",
    "tree_with_pins: laplace, the root",
    "like_siblings: laplace, pinned",
    "families_split_directly: 1, 2",
    "bounded_counts_under_wide_noise: 13.0",
    "cut_set: laplace, 0, 1.0",
    "wide_crossing_table: gaussian",
    "union: gaussian",
    "by_proposals: perfect, laplace, False, given",
    "tree_mh: gaussian, False",
    "gibbs_on_a_tree: laplace, one scale",
    "lattice_moves: gaussian, 1.0, 1",
    "laplace_chains: tree",
    "image: laplace, tree, l1, True",
    "topdown_image: laplace, table",
    "posterior: laplace, poisson, 0",
)


def changes(name):
    """List how a case differs from what is stored of it."""
    now, then = answers(name), THEN[name]
    assert now.keys() == then.keys()
    return [f"{part}: {told}" for part in now for told in differences(now[part], then[part])]


def test_every_case_is_stored_and_nothing_else():
    assert THEN.keys() == CASES.keys()


@pytest.mark.parametrize("name", CASES)
def test_a_seed_gives_what_it_gave(name):
    assert changes(name) == []


@pytest.mark.parametrize("name", WAYS)
def test_words_that_start_one_later_are_noticed(name, monkeypatch):
    plain = cg.seeded

    def shifted(seed):
        words = plain(seed)
        words.bits(1)
        return words

    monkeypatch.setattr(cg, "seeded", shifted)
    assert changes(name) != []


@pytest.mark.parametrize("seed", [7, 8])
def test_a_whole_release_by_another_seed_is_noticed(seed, monkeypatch):
    plain = stored_readers.release

    def release(*args, simulate, **options):
        assert simulate == 7
        return plain(*args, simulate=seed, **options)

    monkeypatch.setattr(stored_readers, "release", release)
    name = "released: laplace, conditioning, root and bounds, substitute"
    assert (changes(name) == []) == (seed == 7)


def test_a_release_that_does_not_verify_is_noticed(monkeypatch):
    monkeypatch.setattr(stored_readers, "verify", lambda _: [SimpleNamespace(passed=False)])
    with pytest.raises(AssertionError):
        answers("released: laplace, conditioning, root and bounds, substitute")


@pytest.mark.parametrize("size", [3, 24, 25, 4000])
@pytest.mark.parametrize("at", [0, -1])
def test_one_changed_entry_is_noticed_and_a_rounding_is_not(size, at):
    whole = np.arange(size) - 5
    other = whole.copy()
    other[at] += 1
    assert differences(stored(whole), stored(whole)) == []
    assert differences(stored(other), stored(whole)) != []
    assert differences(stored(whole.reshape(1, -1)), stored(whole)) != []
    real = whole / 7
    largest = np.abs(real).max()
    for share, seen in ((0.01 * TOLERANCE, False), (2000 * size * TOLERANCE, True)):
        other = real.copy()
        other[at] += share * largest
        assert bool(differences(stored(other), stored(real))) == seen
    odd = np.where(whole == 0, np.nan, real)
    assert differences(stored(odd), stored(odd)) == []
    assert bool(differences(stored(odd), stored(real))) == (size > 5)
