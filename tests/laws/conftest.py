"""A session of Spark, for the tests of a file."""

from __future__ import annotations

import pytest

from support.spark import WORKERS, free_port, make_session


@pytest.fixture(scope="module")
def logs(tmp_path_factory):
    return tmp_path_factory.mktemp("events")


@pytest.fixture(scope="module")
def port():
    return free_port()


@pytest.fixture(scope="module")
def spark(logs, port):
    """One session with two threads, which writes event logs and also serves Spark Connect."""
    with pytest.MonkeyPatch.context() as patch:
        # Java is started once for all sessions of a process, with these variables
        for name, value in WORKERS.items():
            patch.setenv(name, value)
        session = make_session(
            **{
                "spark.eventLog.enabled": "true",
                "spark.eventLog.dir": logs.as_uri(),
                "spark.eventLog.compress": "false",
                "spark.eventLog.rolling.enabled": "false",
                "spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin",
                "spark.connect.grpc.binding.address": "127.0.0.1",
                "spark.connect.grpc.binding.port": str(port),
            }
        )
        yield session
        session.stop()
