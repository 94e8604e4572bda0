"""A Spark session as a command needs it: quiet, on this machine alone unless a cluster is named, gone afterwards."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING

from dialoscope.errors import MissingExtraError, UsageError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SETTINGS = {
    "spark.app.name": "dialoscope",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    "spark.driver.maxResultSize": "0",  # what is gathered was asked for
    "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
    "spark.executorEnv.NUMBA_NUM_THREADS": "1",  # Spark runs a task on each core already
}
# On one machine nothing listens beyond the loopback interface.
LOCAL_SETTINGS = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "4g",
    "spark.sql.shuffle.partitions": "16",
}


@contextmanager
def session_at(master: str) -> Iterator[SparkSession]:
    """Start Spark for the length of a block; where the program has a session already, that one, and it stays."""
    try:
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise MissingExtraError("Spark", "spark") from error
    running = SparkSession.getActiveSession()
    if running is not None:
        yield running
        return
    _check_java()
    session = _started(master)
    try:
        yield session
    finally:
        session.stop()


@contextmanager
def no_word_of_pandas() -> Iterator[None]:
    """Spark warns of a new pandas wherever it is given a function; ours take Arrow tables, and pandas has no part."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
        yield


def _check_java() -> None:
    home = os.environ.get("JAVA_HOME")
    found = shutil.which(str(Path(home, "bin", "java"))) if home else shutil.which("java")
    if found is None:
        where = f"in JAVA_HOME ({home})" if home else "on the PATH"
        raise UsageError(f"Spark needs Java 17 or newer, found none {where}: apt-get install default-jre-headless")


def _started(master: str) -> SparkSession:
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    is_local = master.startswith("local")
    builder = SparkSession.builder.master(master)
    for key, value in {**SETTINGS, **(LOCAL_SETTINGS if is_local else {})}.items():
        builder = builder.config(key, value)
    values = {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"} if is_local else {}
    with tempfile.TemporaryFile() as noise, _environment(values), _errors_into(noise):
        try:
            return builder.getOrCreate()
        except (PySparkException, Py4JError) as error:
            told = getattr(getattr(error, "java_exception", None), "getMessage", lambda: _reason(noise))()
            raise UsageError(f"Spark did not start at '{master}': {told}") from error


@contextmanager
def _environment(values: dict[str, str]) -> Iterator[None]:
    """These variables while Spark starts: workers run the Python that we run in."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


@contextmanager
def _errors_into(file: IO[bytes]) -> Iterator[None]:
    """Java inherits a standard error of its own: it greets with warnings that no setting turns off."""
    sys.stderr.flush()
    kept = os.dup(2)
    os.dup2(file.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def _reason(noise: IO[bytes]) -> str:
    """The message of the exception that Java died of, without its class and its stack."""
    noise.seek(0)
    lines = [line for line in noise.read().decode(errors="replace").splitlines() if not line.startswith((" ", "\t"))]
    return lines[-1].rpartition("Exception: ")[2] if lines else "Java gave no reason"
