"""What becomes of an error under which Spark's JVM may have ended."""

import pytest
from pyspark.sql import SparkSession

from lozenge.errors import SparkGone
from lozenge.spark import jvm_watch
from lozenge.spark.internals import driver_jvm
from lozenge.spark.jvm_watch import require_running, watched


class Session(SparkSession):
    """A session without a JVM behind it, which cannot be stopped in order."""

    def __init__(self) -> None:
        self.stops = 0

    def stop(self) -> None:
        self.stops += 1
        raise ConnectionRefusedError


@pytest.fixture
def spark(monkeypatch: pytest.MonkeyPatch) -> Session:
    monkeypatch.setattr(jvm_watch, "_SIGNAL_SECONDS", 0.0)
    monkeypatch.setattr(jvm_watch, "_END_SECONDS", 0.2)
    return Session()


def jvm_ends(monkeypatch: pytest.MonkeyPatch, *, after_looks: int) -> None:
    """Lets the JVM end after so many looks at it."""
    looks = iter([False] * after_looks)
    monkeypatch.setattr(driver_jvm, "has_stopped", lambda _: next(looks, True))


def run(spark: Session, *, stopping: bool) -> None:
    with watched(spark, "normalising", lambda: stopping):
        raise ConnectionError("a call failed")


@pytest.mark.parametrize("looks", [0, 1], ids=["it is gone", "it is about to go"])
def test_an_ended_jvm_is_named_unless_this_process_is_stopping(
    spark: Session, looks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    jvm_ends(monkeypatch, after_looks=looks)
    with pytest.raises(SparkGone, match="normalising: Spark's JVM has ended") as caught:
        run(spark, stopping=False)
    assert caught.value.exit_code == 1
    jvm_ends(monkeypatch, after_looks=looks)
    run(spark, stopping=True)
    assert spark.stops == 2


def test_another_error_stays_as_it_is(spark: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    jvm_ends(monkeypatch, after_looks=1000)
    with pytest.raises(ConnectionError, match="a call failed"):
        run(spark, stopping=True)
    assert spark.stops == 1


def test_the_session_is_stopped_after_a_regular_end(spark: Session) -> None:
    with watched(spark, "normalising", lambda: False):
        pass
    assert spark.stops == 1


def test_an_ended_jvm_is_named_before_it_is_called(spark: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    jvm_ends(monkeypatch, after_looks=1)
    require_running(spark, "normalising")
    with pytest.raises(SparkGone, match="normalising: Spark's JVM has ended"):
        require_running(spark, "normalising")
