"""Sessions of Spark, for its tests."""

from __future__ import annotations

import os
import shutil
import socket
import sys

import pytest

# Marks of tests that need Spark. The warnings are PySpark's own, about the libraries beside it.
NEEDS_SPARK = [
    pytest.mark.skipif(
        shutil.which("java") is None and "JAVA_HOME" not in os.environ,
        reason="Java, which Spark runs on, is not installed",
    ),
    pytest.mark.filterwarnings("ignore:.*pandas:FutureWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning:pyspark"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]
SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.io.encryption.enabled": "true",
}
# Python of the workers.
WORKERS = {"PYSPARK_PYTHON": sys.executable}


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def make_session(master="local[2]", **settings):
    """Start a session of Spark."""
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master(master)
    for name, value in (SETTINGS | settings).items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    return session


def events_of(session, folder):
    """Return the text of the event log so far, a line an event."""
    session.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
    (file,) = (f for f in folder.rglob("*") if f.is_file() and not f.name.startswith("."))
    return file.read_text()
