"""Parts that Spark draws: what is refused. Tests with Spark itself are in `tests/laws`."""

from __future__ import annotations

import pytest

from congenial.errors import ArgumentError, DataError, ReleaseError
from congenial.releases.making import spark_parts
from congenial.releases.making.drawn_files import RESULTS, Stage
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


def test_each_part_is_drawn_in_exactly_one_way(tmp_path):
    (tmp_path / RESULTS).mkdir()
    for name in ("drawn.0.aa", "drawn.1.bb", "message-1.1.cc", "unfinished-xyz"):
        (tmp_path / RESULTS / name).touch()
    stage = Stage(None, 1, tmp_path, tmp_path)

    def committed(rows):
        return spark_parts.committed(rows, stage.attempts("drawn"), 2)

    assert committed(rows_of("aa", "bb")) == ["aa", "bb"]
    once = "did not work on each part exactly once"
    for rows in (rows_of("aa"), rows_of("aa", "bb", "bb"), [*rows_of("aa"), *rows_of("aa")]):
        with pytest.raises(ReleaseError, match=once):
            committed(rows)
    with pytest.raises(ReleaseError, match="two attempts at a part"):
        committed(rows_of("aa", "bc"))
    # another attempt, whose task was killed later
    (tmp_path / RESULTS / "drawn.1.bc").touch()
    with pytest.raises(ReleaseError, match="two attempts at a part"):
        committed(rows_of("aa", "bb"))


def test_an_error_of_a_worker_is_raised_by_the_driver():
    [first, second] = rows_of("aa", None)
    for kind, expected in (("DataError", DataError), ("Unknown", ReleaseError)):
        failed = second | {"error": kind, "message": "a part is wrong; mend it."}
        with pytest.raises(expected, match="a part is wrong; mend it"):
            spark_parts.committed([first, failed], {}, 2)


def test_a_worker_of_another_version_draws_nothing():
    [row] = spark_parts.done_on_worker(None, "0.0.1", 0).to_pylist()
    assert row["part"] == 0 and row["digest"] is None and row["error"] == "ReleaseError"
    assert "install one version everywhere" in row["message"]
