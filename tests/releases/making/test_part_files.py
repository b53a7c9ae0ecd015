"""A release in parts has the files and the claims of a release drawn at once."""

from __future__ import annotations

import csv
import json
import re

import numpy as np
import pytest

from congenial.accounting.amounts import amount_of
from congenial.errors import CongenialError, DataError, PlanError
from congenial.ledger.debits import read_ledger
from congenial.ledger.ledger_file import init_ledger
from congenial.releases import directory as files
from congenial.verification.verdict import verify
from support.city import make_city
from support.parts import PARTED, make, table_of

NAMES = ("plain", "a,b", 'q"q', "=1+1", " blank", "Ä", "x/y", "7", "-3", "o'clock")


def keys_of(place):
    rows = table_of(place)
    names = [name for name in rows[0] if name not in ("value", "lower", "upper", "truth", "note")]
    return [[row[name] for name in names] for row in rows]


def stated_in(place):
    """Return what a certificate states, apart from its time and its files."""
    found = json.loads((place / files.CERTIFICATE).read_text())
    return {key: value for key, value in found.items() if key not in ("made", "files")}


def make_world(place, rng):
    """Write random rows, places and a plan; return the levels at which it may be cut."""
    depth = int(rng.integers(2, 5))
    levels = [f"l{i}" for i in range(1, depth + 1)]
    paths = [()]
    for level in range(depth):
        most = 4 if level < 2 else 3
        paths = [
            (*path, f"{name}{level}" if rng.random() < 0.5 else f"{name} {len(path)}")
            for path in paths
            for name in rng.permutation(NAMES)[: rng.integers(2 if level < 2 else 1, most + 1)]
        ]

    def write(name, rows):
        with (place / name).open("w", newline="") as file:
            csv.writer(file).writerows([[*levels, "hour", "people"], *rows])

    write("places.csv", [(*path, 0, 0) for path in paths])
    counted = rng.integers(0, len(paths), size=int(rng.integers(20, 300))).tolist()
    write("rows.csv", [(*paths[i], int(rng.integers(24)), int(rng.integers(4))) for i in counted])
    cut = int(rng.integers(1, depth)) if depth > 1 else 1
    exact = [[], ["root"], ["root", "l1"], ["root", levels[cut - 1]], ["root", paths[0][0]]]
    exact = exact[rng.integers(len(exact))]
    relation = "substitute" if exact else rng.choice(["substitute", "add-remove"])
    privacy = f'neighbours = "{relation}"\nepsilon = {rng.choice([0.5, 1.0, 3.0])}'
    if rng.random() < 0.3:
        privacy += '\nnoise = "discrete-gaussian"\ndelta = 1e-6'
    free = [v for v in ("root", *levels) if v not in exact and (not exact or v != "root")]
    if "l1" in exact or levels[cut - 1] in exact:
        free = [v for v in free if levels.index(v) > max(levels.index(e) for e in exact[1:])]
    if rng.random() < 0.5:
        kept = [v for v in free if rng.random() < 0.6 or v in (levels[cut - 1], levels[-1])]
        privacy += f"\nsplit = {{ {', '.join(f'{v} = {1 / len(kept)}' for v in kept)} }}"
    elif rng.random() < 0.3:
        privacy += f"\ngoal = {{ {', '.join(f'{v} = {i + 1}' for i, v in enumerate(free))} }}"
    bounded = [v for v in levels[:cut] if v not in exact]
    more = ""
    if bounded and rng.random() < 0.4:
        more = f"\nat_least = {{ {bounded[-1]} = 1 }}\nat_most = {{ {bounded[-1]} = 4000 }}"
    published = rng.choice(['["table"]', '["table", "measurements"]'])
    where = rng.choice(["", "\nwhere = 'hour < 20'"])
    weight = rng.choice(["", "\nweight = 'people'"])
    domain = rng.choice(["places.csv", "data"]) if "people" not in weight else "places.csv"
    (place / "plan.toml").write_text(
        f"""
        [data]
        source = "rows.csv"
        types = {{ hour = "INTEGER" }}{where}{weight}
        [hierarchy]
        root = "all, =\\"all\\""
        levels = {json.dumps(levels)}
        domain = "{domain}"
        names_repeat = true
        [privacy]
        {privacy}
        [invariants]
        nonnegative = true
        publish_exactly = {json.dumps(exact, ensure_ascii=False)}{more}
        [method]
        name = "topdown"
        [release]
        publish = {published}
        [accuracy]
        required = {{ {levels[0]} = 30.0 }}
        """
    )
    return levels[cut - 1]


@pytest.mark.parametrize("seed", range(24))
def test_random_releases_have_the_rows_and_claims_of_those_made_at_once(seed, tmp_path):
    level = make_world(tmp_path, np.random.default_rng([seed, 2026]))
    problems = [refused(tmp_path, "whole", seed), refused(tmp_path, "parts", seed, parts=level)]
    if any(problems):
        # of nodes from the rows, an exact one may have one part; a path may look like a longer one
        assert problems[0] == problems[1] or re.search("has one part|/.* no path", problems[1])
        return
    assert keys_of(tmp_path / "parts") == keys_of(tmp_path / "whole")
    whole, parts = (table_of(tmp_path / name) for name in ("whole", "parts"))
    assert [row["truth"] for row in parts] == [row["truth"] for row in whole]
    assert stated_in(tmp_path / "parts") == stated_in(tmp_path / "whole")
    assert [check for check in verify(tmp_path / "parts") if not check.passed] == []


def refused(place, out, seed, **options):
    """Simulate a release with its truth; return why it was refused, empty if it was not."""
    try:
        make(place, out, simulate=seed, with_truth=True, **options)
    except CongenialError as error:
        return str(error)
    return ""


def test_rows_that_change_between_two_parts_are_refused_and_stay_debited(tmp_path):
    make_city(
        tmp_path,
        **PARTED,
        privacy='neighbours = "substitute"\nepsilon = 1.0\nledger = "budget.ledger"',
    )
    init_ledger(tmp_path / "budget.ledger", budget=amount_of(3.0, 0.1), neighbours="substitute")

    def change(step):
        if step.startswith("part 2"):
            (tmp_path / "rows.csv").write_text("hour,zone\n1,1\n")

    with pytest.raises(DataError, match="the rows changed") as caught:
        make(tmp_path, parts="borough", notify=change)
    assert not re.search("[0-9]", str(caught.value))
    assert not (tmp_path / "out").exists()
    [account] = read_ledger(tmp_path / "budget.ledger").accounts
    assert [debit.state for debit in account.entries] == ["reserved"]


def test_noise_with_a_numerical_error_is_refused(tmp_path):
    make_city(
        tmp_path,
        **PARTED,
        privacy='neighbours = "substitute"\nepsilon = 1e-4\ndelta = 1e-6\n'
        'noise = "discrete-gaussian"',
    )
    with pytest.raises(PlanError, match="give a larger epsilon, or leave parts out"):
        make(tmp_path, parts="borough")


def test_a_frame_is_counted_part_by_part(tmp_path):
    pandas = pytest.importorskip("pandas")
    make_city(tmp_path, **PARTED)
    frame = pandas.DataFrame({"zone": [1, 1, 4, 6, 6, 6]})
    make(tmp_path, parts="borough", frame=frame, simulate=1, with_truth=True)
    truth = {row["zone"]: row["truth"] for row in table_of(tmp_path / "out") if row["zone"]}
    assert truth == {"1": "2", "2": "0", "3": "0", "4": "1", "5": "0", "6": "3"}
