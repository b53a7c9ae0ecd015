"""Parts that Spark draws: what is refused. Tests with Spark itself are in `tests/laws`."""

from __future__ import annotations

import pytest

from congenial.errors import ArgumentError, DataError, ReleaseError
from congenial.releases.making import spark_parts
from congenial.releases.making.drawn_files import DRAWN, Drawing
from support.city import make_city
from support.parts import PARTED, make

GOOD = {"spark.io.encryption.enabled": "true"}


class Session:
    """A session of Spark, by its settings alone."""

    __module__ = "pyspark.sql.session"

    def __init__(self, **settings):
        self.settings = settings

    @property
    def conf(self):
        return self

    def get(self, name, default):
        return self.settings.get(name, default)


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({}, "start Spark with spark.io.encryption.enabled=true"),
        ({"spark.io.encryption.enabled": "false"}, "would write counts to disks unencrypted"),
        (GOOD | {"spark.speculation": "true"}, "start Spark with spark.speculation=false"),
        (GOOD | {"spark.speculation": "TRUE"}, "would draw a part twice"),
    ],
)
def test_a_session_with_other_settings_is_refused(settings, told, tmp_path):
    make_city(tmp_path, **PARTED)
    with pytest.raises(ReleaseError, match=told):
        make(tmp_path, parts="borough", on=Session(**settings))
    assert not list(tmp_path.glob(".*"))


def test_what_is_no_session_is_refused_and_so_are_files_that_are_not_parquet(tmp_path):
    make_city(tmp_path, **PARTED)
    with pytest.raises(ArgumentError, match="on is a dict"):
        make(tmp_path, parts="borough", on=GOOD)
    with pytest.raises(DataError, match="Spark reads Parquet files only"):
        make(tmp_path, parts="borough", on=Session(**GOOD))


def rows_of(*digests):
    return [
        {"part": part, "digest": digest, "error": None, "message": None}
        for part, digest in enumerate(digests)
    ]


@pytest.fixture
def drawing(tmp_path):
    (tmp_path / DRAWN).mkdir()
    for name in ("0.aa", "1.bb", "unfinished-xyz"):
        (tmp_path / DRAWN / name).touch()
    return Drawing(None, tmp_path, tmp_path, private=True)


def test_each_part_is_drawn_in_exactly_one_way(drawing):
    assert spark_parts.committed(rows_of("aa", "bb"), drawing, 2) == ["aa", "bb"]
    once = "did not draw each part exactly once"
    for rows in (rows_of("aa"), rows_of("aa", "bb", "bb"), [*rows_of("aa"), *rows_of("aa")]):
        with pytest.raises(ReleaseError, match=once):
            spark_parts.committed(rows, drawing, 2)
    with pytest.raises(ReleaseError, match="two attempts at a part"):
        spark_parts.committed(rows_of("aa", "bc"), drawing, 2)
    (drawing.stage / DRAWN / "1.bc").touch()  # another attempt, whose task was killed later
    with pytest.raises(ReleaseError, match="two attempts at a part"):
        spark_parts.committed(rows_of("aa", "bb"), drawing, 2)


def test_an_error_of_a_worker_is_raised_by_the_driver(drawing):
    [first, second] = rows_of("aa", None)
    for kind, expected in (("DataError", DataError), ("Unknown", ReleaseError)):
        failed = second | {"error": kind, "message": "a part is wrong; mend it."}
        with pytest.raises(expected, match="a part is wrong; mend it"):
            spark_parts.committed([first, failed], drawing, 2)


def test_a_worker_of_another_version_draws_nothing(drawing):
    [row] = spark_parts.drawn_on_worker(drawing, "0.0.1", 0).to_pylist()
    assert row["part"] == 0 and row["digest"] is None and row["error"] == "ReleaseError"
    assert "install one version everywhere" in row["message"]
