"""`congenial audit`: a plan's claim is tested on made-up counts only."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import congenial as cg
from congenial.auditing import simulation
from congenial.cli import command_line as cli
from congenial.data.counts import build_domain
from congenial.inference.best_table import most_work
from congenial.plan.plan import read_plan
from congenial.preview import plan_audit as audit_plan
from congenial.releases.model import Model, build_model, claim
from support.city import make_city
from support.claims import guaranteed

SURE = 1.0 - 1e-6
WHERE = """
    source = "rows.csv"
    where = "hour < 12"
    types = { hour = "INTEGER" }
    lookup = { source = "zones.csv", key = "zone_id", on = "zone" }
    """
FREE = "nonnegative = true"
EQUAL = 'publish_exactly = ["root"]\nnonnegative = false'


def model_of(place: Path, **sections: str) -> Model:
    plan = read_plan(make_city(place, **sections))
    return build_model(plan, build_domain(plan, base=place))


def run(*arguments: object) -> int:
    return cli.run([str(argument) for argument in arguments])


@pytest.mark.parametrize(
    "sections",
    [
        {},
        {"invariants": FREE},
        {"invariants": EQUAL},
        {"invariants": 'publish_exactly = ["root", "City/Arden"]\nnonnegative = true'},
        {"invariants": FREE, "data": WHERE},
        {"privacy": 'neighbours = "add-remove"\nepsilon = 0.7', "invariants": FREE},
    ],
    ids=["demo", "no pin", "no bounds", "a borough pinned", "a rule", "add-remove"],
)
def test_honest_plans_pass(tmp_path, sections):
    found = audit_plan.audit_model(model_of(tmp_path, **sections), draws=4000, confidence=SURE)
    assert found.passed, audit_plan.as_text(found)
    assert found.exact is not None
    assert found.part is not None
    assert found.part.leaves.size <= 4
    exact = found.exact.findings[0]
    computed, loss = found.drawn.findings[:2]
    assert computed.check == "loss, computed"
    assert computed.pairs > 20
    assert 0.3 * exact.stated < exact.found <= exact.stated * (1 + 1e-9)
    assert loss.pairs >= 4 + ("data" in sections)


def test_equalities_attain_the_stated_epsilon(tmp_path):
    found = audit_plan.audit_model(model_of(tmp_path, invariants=EQUAL), draws=100)
    assert found.exact is not None
    assert found.exact.findings[0].slack == pytest.approx(0.0, abs=1e-9)


def test_a_plan_with_imaging_is_audited_by_draws(tmp_path):
    model = model_of(tmp_path, method='name = "imaging"')
    found = audit_plan.audit_model(model, draws=300, confidence=SURE)
    assert found.passed
    assert found.exact is None
    assert found.drawn.findings[0].check == "loss, computed"
    assert found.drawn.findings[0].slack == pytest.approx(0.0, abs=1e-9)
    assert "used only computed losses and draws" in audit_plan.as_text(found)


def test_tables_that_take_long_are_not_worked_out(tmp_path, monkeypatch):
    model = model_of(tmp_path, method='name = "posterior"')
    pairs = []
    for many in (1e3, 1.0, 0.9):
        monkeypatch.setattr(simulation, "_TABLE_WORK", many * 2 * 4 * most_work(model.mechanism))
        found = {f.check: f for f in audit_plan.audit_model(model, draws=200).drawn.findings}
        checked = found.get("invariant, from draws")
        pairs.append(0 if checked is None else checked.pairs)
        assert ("slowly" in found["loss, from draws"].text) == (checked is None)
    assert pairs[0] > 1
    assert pairs[1:] == [1, 0]


def weakened(model: Model, share: float) -> Model:
    noise = cg.DiscreteLaplace(share * model.mechanism.scales)
    return replace(model, mechanism=cg.Additive(noise, model.tree))


@pytest.mark.parametrize("share", [0.7, 1.0])
def test_noise_too_small_is_found(tmp_path, share):
    model = model_of(tmp_path, invariants=EQUAL)
    stated = guaranteed(model)
    found = audit_plan.audit_model(weakened(model, share), guarantee=stated, confidence=SURE)
    assert found.exact is not None
    assert found.exact.passed is (share == 1.0)
    # sure of 30% that are spread over two levels would take more draws
    assert found.drawn.passed or share < 1.0


def test_half_the_noise_is_found_by_draws(tmp_path):
    model = model_of(tmp_path, invariants=EQUAL)
    stated = guaranteed(model)
    found = audit_plan.audit_model(weakened(model, 0.4), guarantee=stated, confidence=SURE)
    assert not found.drawn.passed


def test_the_command(tmp_path, capsys, monkeypatch):
    plan = make_city(tmp_path)
    (tmp_path / "rows.csv").unlink()  # no row is read
    assert run("audit", plan, "--draws", 500, "--seed", 4) == 0
    said = capsys.readouterr().out
    assert "No fault was found" in said
    assert "simulations from seed 4" in said
    assert "never prove" in said
    assert "loss, enumerated" in said
    assert "one record moves from 'City/" in said
    assert sorted(p.name for p in tmp_path.iterdir()) == ["plan.toml", "zones.csv"]

    def weak(model, error):
        return replace(claim(model, error), epsilon=0.2)

    monkeypatch.setattr(audit_plan, "claim", weak)
    assert run("audit", plan, "--draws", 500) == 1
    assert "A CHECK FAILED" in capsys.readouterr().out


def test_the_command_refuses_what_it_cannot_use(tmp_path, capsys):
    assert run("audit", tmp_path / "none.toml") == 2
    assert run("audit", make_city(tmp_path), "--draws", 5) == 2
    assert run("audit", make_city(tmp_path), "--confidence", 1) == 2
    assert capsys.readouterr().err.count("Error") == 3


def test_an_audit_says_how_far_it_is(tmp_path):
    said = []
    plan = read_plan(make_city(tmp_path))
    found = audit_plan.audit_plan(plan, tmp_path, draws=100, notify=said.append)
    computed, drawn = found.drawn.findings[:2]
    for step, pairs in (("computing losses of", computed.pairs), ("drawing at", drawn.pairs)):
        numbered = [text for text in said if text.startswith(f"{step} pair ")]
        assert numbered == [f"{step} pair {k} of {pairs}" for k in range(1, pairs + 1)]
    assert said[0] == "reading the domain"
    assert said[-1] == "enumerating releases of small datasets"


def test_large_trees_are_not_tabulated(tmp_path):
    """Datasets of many leaves are added up along the tree."""
    zones = {i: f"B{i % 40}" for i in range(3000)}
    plan = read_plan(make_city(tmp_path, zones=zones, trips={0: 1}))
    found = audit_plan.audit_plan(plan, tmp_path, draws=100)
    assert found.passed
    assert np.isfinite([f.found for f in found.drawn.findings]).all()
