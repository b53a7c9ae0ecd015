"""The notebook runs from top to bottom, and shows each object as a table or a plot."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from matplotlib import pyplot as plt
from matplotlib.axes import Axes

import congenial as cg
from congenial.auditing.finding import Audit
from congenial.exhibits.exhibit import Exhibit
from congenial.inference.posteriors import Posterior
from support.notebook import parsed, texts
from support.notebooks import run_cells
from support.plots import drawn

NOTEBOOK = Path(__file__).parents[2] / "examples" / "notebook" / "release.ipynb"
TABLES = (cg.Release, cg.Workload, cg.Table, cg.Tree, Exhibit, cg.Guarantee, Posterior, Audit)


@pytest.fixture
def shown(tmp_path, monkeypatch):
    """Return what the cells show; figures are closed at the end."""
    monkeypatch.chdir(tmp_path)
    plt.switch_backend("agg")  # no window
    yield run_cells(NOTEBOOK)
    plt.close("all")


def test_every_object_is_shown_as_a_table_or_a_plot(shown):
    tables = [value for value in shown if not isinstance(value, Axes)]
    assert tuple(map(type, tables)) == TABLES
    for value in tables:
        html = value._repr_html_()
        assert parsed(html).find(".//table") is not None
        assert len(repr(value).splitlines()) == 1 or isinstance(value, Exhibit)
    release, *_, audit = tables
    assert release.certificate.sentence in texts(release._repr_html_())
    assert audit.passed
    plots = [value for value in shown if isinstance(value, Axes)]
    assert len(plots) == 5
    for ax in plots:
        assert ax.get_title(loc="left")
        assert drawn(ax).get_xlabel() or ax.get_ylabel()


def test_the_notebook_stores_no_output():
    cells = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    assert len(code) > 10
    assert not any(cell["outputs"] or cell["execution_count"] for cell in code)
