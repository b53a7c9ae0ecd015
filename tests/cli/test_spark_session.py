"""Starting Spark for the command line. Tests with Spark itself are in `tests/laws`."""

from __future__ import annotations

import signal
import sys
from types import ModuleType

import pytest

from congenial.cli.spark_session import spark_session
from congenial.errors import ReleaseError, UnsupportedError


class FailedError(Exception):
    """An error of Spark."""


class Builder:
    """Stands for Spark's builder of sessions."""

    def __init__(self, fails):
        self.fails, self.settings, self.stopped = fails, {}, False

    def appName(self, name):  # noqa: N802
        return self

    def config(self, name, value):
        self.settings[name] = value
        return self

    def getOrCreate(self):  # noqa: N802
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # as Spark takes it
        if self.fails:
            raise FailedError("java said a secret")
        return self

    def stop(self):
        self.stopped = True


@pytest.fixture
def started(monkeypatch):
    def start(*, fails=False):
        builder = Builder(fails)
        package, found, errors = (
            ModuleType(name) for name in ("pyspark", "pyspark.sql", "pyspark.errors")
        )
        found.SparkSession = type("SparkSession", (), {"builder": builder})
        errors.PySparkException = FailedError
        for module in (package, found, errors):
            monkeypatch.setitem(sys.modules, module.__name__, module)
        return builder

    monkeypatch.delenv("SPARK_REMOTE", raising=False)
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    return start


def test_a_session_encrypts_and_does_not_speculate_and_is_stopped(started):
    builder, before = started(), signal.getsignal(signal.SIGINT)
    with spark_session() as session:
        assert session is builder and not builder.stopped
        assert signal.getsignal(signal.SIGINT) is before
    assert builder.stopped
    assert builder.settings["spark.io.encryption.enabled"] == "true"
    assert builder.settings["spark.speculation"] == "false"


def test_a_remote_session_has_settings_of_its_own(started, monkeypatch):
    monkeypatch.setenv("SPARK_REMOTE", "sc://127.0.0.1")
    builder = started()
    with spark_session():
        assert builder.settings == {}


def test_a_spark_that_does_not_start_or_is_not_installed_is_refused(started, monkeypatch):
    started(fails=True)
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(ReleaseError, match="Spark could not be started") as caught, spark_session():
        pass
    assert "secret" not in str(caught.value) and caught.value.__context__ is None
    assert signal.getsignal(signal.SIGINT) is before
    monkeypatch.setitem(sys.modules, "pyspark.errors", None)
    with pytest.raises(UnsupportedError, match=r"install 'pyspark\[connect\]'"), spark_session():
        pass
