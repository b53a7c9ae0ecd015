"""The sections of a plan on files and their accuracy: defaults and refusals."""

from __future__ import annotations

import msgspec
import pytest

from congenial.errors import PlanError
from congenial.plan.outputs import OWN_COLUMNS, Accuracy, Publication
from congenial.releases import directory as files


def test_a_table_is_always_published_and_measurements_on_request():
    assert not Publication().measurements
    assert Publication(("table", "measurements")).measurements
    for publish in (("measurements",), ()):
        with pytest.raises(PlanError, match="does not hold 'table'"):
            Publication(publish)
    with pytest.raises(PlanError, match=r"release\.publish"):
        Publication(("table", "table"))


def test_the_share_of_misses_is_what_confidence_leaves():
    assert Accuracy().alpha == pytest.approx(0.1, abs=1e-15)
    for confidence in (0.499, 0.9991, float("nan")):
        with pytest.raises(msgspec.ValidationError, match=r"confidence"):
            msgspec.convert({"confidence": confidence}, Accuracy)


def test_sums_have_names_and_name_each_node_once():
    Accuracy(sums={"both": ("North", "South")})
    with pytest.raises(PlanError, match="a sum called ' '"):
        Accuracy(sums={" ": ("North",)})
    with pytest.raises(PlanError, match=r"accuracy\.sums\.both"):
        Accuracy(sums={"both": ("North", "North")})


def test_a_level_may_not_have_the_name_of_a_column_of_the_files():
    made = {
        name
        for simultaneous in (("lower", "upper"), ("lower", "upper", "level_lower", "level_upper"))
        for name, _ in (
            *files.table_columns((), intervals=simultaneous, truth=True, stamped=True),
            *files.measurement_columns((), stamped=True),
        )
    }
    assert made == set(OWN_COLUMNS)
