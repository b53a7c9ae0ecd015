"""Diagnostics of chains."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

import congenial as cg
from congenial.conditioning.chains import Info, arviz_for, check_lengths, in_turn
from congenial.errors import ArgumentError, UnsupportedError
from support.sum_networks import table_case

SQUARE = [1, 2, 0, 0, 3, 1, 2, 2, 1]


def chained(case):
    mechanism = cg.Additive(
        {"laplace": cg.DiscreteLaplace, "gaussian": cg.DiscreteGaussian}[case.kind](case.scales),
        case.n,
    )
    rows = np.array(case.rows)
    return cg.condition(mechanism, cg.linear(rows, rows @ case.x) & cg.bounds(case.lo), "gibbs")


CASES = {
    "laplace": table_case((3, 3), 0.6, SQUARE),
    "nonnegative": table_case((3, 3), 0.8, SQUARE, lo=0),
    "gaussian": table_case((3, 3), 0.8, SQUARE, kind="gaussian"),
}


def test_diagnostics_take_entries_one_by_one():
    both = cg.seeded(1).bits(2 * 40 * 2).reshape(2, 40, 2) % np.uint64(5)
    both = np.concatenate([both, np.ones((2, 40, 1))], axis=2).astype(np.float64)
    info = Info(0, 1, both)
    for measure in ("r_hat", "bulk_ess", "tail_ess"):
        together = getattr(info, measure)
        alone = [getattr(Info(0, 1, both[:, :, [i]]), measure)[0] for i in range(3)]
        np.testing.assert_allclose(together, alone, rtol=1e-12)
        assert np.isfinite(together[:2]).all() and np.isnan(together[2])
        assert np.isnan(getattr(Info(0, 1, both[:, :7]), measure)).all()


def test_diagnostics_say_that_they_need_arviz(monkeypatch):
    monkeypatch.setitem(sys.modules, "arviz", None)
    _, info = chained(CASES["laplace"]).run(CASES["laplace"].x, 3, 2, cg.seeded(1))
    with pytest.raises(UnsupportedError, match=r"run pip install arviz"):
        _ = info.worst


def folder_of_arviz(monkeypatch, tmp_path, error):
    """Put a package called arviz first, whose first import fails with `error`."""
    failing = f"if not seen.exists():\n    seen.touch()\n    raise {error}\n"
    text = f"from pathlib import Path\nseen = Path(__file__).with_name('seen')\n{failing}"
    (tmp_path / "arviz.py").write_text(text)
    monkeypatch.delitem(sys.modules, "arviz", raising=False)
    monkeypatch.syspath_prepend(tmp_path)


def test_arviz_may_be_imported_by_two_processes_at_once(monkeypatch, tmp_path):
    folder_of_arviz(monkeypatch, tmp_path, "FileNotFoundError(2, 'no such file', 'daily.tmp')")
    arviz, _ = arviz_for("r_hat")
    assert Path(arviz.__file__).parent == tmp_path
    sys.modules.pop("arviz")


def test_arviz_that_cannot_write_its_notice_is_said(monkeypatch, tmp_path):
    folder_of_arviz(monkeypatch, tmp_path, "PermissionError(13, 'denied', '/cache/arviz')")
    with pytest.raises(UnsupportedError, match=r"write /cache/arviz\. Set .* XDG_CACHE_HOME"):
        arviz_for("r_hat")


def test_draws_come_from_all_chains_in_turn():
    values = np.arange(24).reshape(2, 6, 2)  # chains, draws, entries
    assert in_turn(values, 3).tolist() == [[0, 1], [12, 13], [2, 3]]


def test_a_chain_that_accepts_nothing_has_no_diagnostics():
    noise = np.random.default_rng(0).normal(size=(3, 50, 2))
    assert Info(10, 1, noise, acceptance=np.array([0.2, 0.0, 0.3])).worst == (np.inf, 0.0)
    still = Info(10, 1, np.zeros((3, 50, 2)), acceptance=np.ones(3))
    assert np.isnan(still.worst).all()


def test_numbers_of_steps_are_counts():
    check_lengths({"draws": 3, "warmup": 0}, least=0)
    for wrong in ({"draws": 0}, {"draws": None}, {"draws": 4, "chains": 0}):
        with pytest.raises(ArgumentError, match="give at least 1 each"):
            check_lengths(wrong)
