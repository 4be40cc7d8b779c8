"""The session of a process, with a stand-in for Spark; the real one is used by every integration test."""

import os
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from unittest.mock import MagicMock

import pytest

from lozenge.spark import session


@pytest.fixture(autouse=True)
def _zone_as_before(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def test_a_process_with_spark_has_utc_as_its_local_time(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("JAVA_HOME", "SPARK_LAUNCHER_OPTS", "PYSPARK_PYTHON", "SPARK_LOCAL_IP"):
        monkeypatch.setenv(name, "")
    monkeypatch.setattr(session, "SparkSession", MagicMock())
    monkeypatch.setattr(session, "jars", lambda _: [Path("/nowhere/connector.jar")])
    monkeypatch.setattr(session, "start_bounded", MagicMock())
    monkeypatch.setattr(session, "_import_ahead", lambda: None)
    noon = datetime(2026, 3, 1, 12)
    assert noon.astimezone(UTC).hour == 17
    session.spark_session("test")
    assert (noon.astimezone(UTC).hour, os.environ["TZ"]) == (12, "UTC")
