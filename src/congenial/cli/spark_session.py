"""The session of Spark that draws a release for the command line."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from congenial.durability.signals import ENDING
from congenial.errors import ReleaseError, UnsupportedError

# Settings that drawing needs. A remote Spark has its own, which are checked.
_SETTINGS = {
    "spark.io.encryption.enabled": "true",
    "spark.speculation": "false",
    "spark.ui.showConsoleProgress": "false",
}


@contextmanager
def spark_session() -> Iterator[Any]:
    """Start Spark, or connect to a remote one, as its own settings say; stop it at the end."""
    try:
        from pyspark.errors import PySparkException
        from pyspark.sql import SparkSession
    except ImportError:
        raise UnsupportedError(
            "Spark needs the package pyspark; run pip install 'pyspark[connect]'."
        ) from None
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder: Any = SparkSession.builder.appName("congenial")
    if "SPARK_REMOTE" not in os.environ:
        for name, value in _SETTINGS.items():
            builder = builder.config(name, value)
    before = {each: signal.getsignal(each) for each in ENDING}
    session = None
    try:
        session = builder.getOrCreate()
    except PySparkException:
        pass
    finally:
        for each, handler in before.items():  # Spark's own would not erase the staged counts
            signal.signal(each, handler)
    if session is None:
        raise ReleaseError(
            "Spark could not be started; see that Java is installed, and that SPARK_REMOTE or "
            "spark-defaults.conf names a Spark that runs."
        )
    try:
        yield session
    finally:
        session.stop()
