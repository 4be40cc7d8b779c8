"""The writer of batches: what is committed, what is refused, and how a stop ends a batch."""

import json
import threading
from pathlib import Path
from typing import Any

import pytest

from lozenge.protocol.commit_metadata import CommitMetadata
from lozenge.spark.checkpoint import Offsets
from lozenge_upstream.streaming.micro_batch import Writer

ENDS: Offsets = {"AUTH-JSON": {"0": 7}}
METADATA = CommitMetadata(output_ahead=True)


class Parts:
    """Sink, position and progress of a writer in one object, which notes their calls in order.

    The sink waits for `released` when it commits, and raises `error` then.
    """

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self.error: Exception | None = None
        self.committing, self.released = threading.Event(), threading.Event()
        self.released.set()

    def commit(self, rows: Any, ends: Offsets, metadata: CommitMetadata) -> None:
        self.committing.set()
        assert self.released.wait(10)
        if self.error is not None:
            raise self.error
        self.calls.append(("commit", rows, ends, metadata))

    def abort(self) -> None:
        self.error = ValueError("aborted")
        self.released.set()

    def distance_to(self, ends: Offsets) -> int:
        assert ends == ENDS
        return 5

    def metadata_at(self, ends: Offsets) -> CommitMetadata:
        assert ends == ENDS
        return METADATA

    def advance(self, ends: Offsets) -> None:
        self.calls.append(("advance", ends))

    def started(self, offsets: int) -> None:
        self.calls.append(("started", offsets))

    def committed(self, batch: int, offsets: int, seconds: float) -> None:
        assert seconds >= 0
        self.calls.append(("committed", batch, offsets))


@pytest.fixture
def parts() -> Parts:
    return Parts()


@pytest.fixture
def writer(parts: Any, tmp_path: Path) -> Writer:
    """For a checkpoint in which Spark has planned batch 3."""
    planned = tmp_path / "offsets" / "3"
    planned.parent.mkdir()
    planned.write_text("\n".join(["v1", "{}", json.dumps(ENDS)]))
    return Writer(parts, parts, parts, tmp_path, lambda batch: f"{batch} in order")  # type: ignore[arg-type,return-value]


def write(writer: Writer) -> None:
    batch: Any = "a batch"
    writer(batch, 3)


def test_a_batch_is_committed_in_order_with_the_ends_that_spark_has_planned(parts: Parts, writer: Writer) -> None:
    write(writer)
    assert parts.calls == [
        ("started", 5),
        ("commit", "a batch in order", ENDS, METADATA),
        ("advance", ENDS),
        ("committed", 3, 5),
    ]


def test_a_batch_that_fails_moves_nothing_and_its_error_is_kept(parts: Parts, writer: Writer) -> None:
    parts.error = ValueError("fenced")
    with pytest.raises(ValueError, match="fenced"):
        write(writer)
    assert parts.calls == [("started", 5)]
    assert writer.failure is parts.error


def test_after_a_close_nothing_is_written(parts: Parts, writer: Writer) -> None:
    assert writer.close(0)
    write(writer)
    assert parts.calls == []


def test_a_close_waits_for_the_batch_that_is_being_written(parts: Parts, writer: Writer) -> None:
    parts.released.clear()
    batch = threading.Thread(target=write, args=[writer])
    batch.start()
    assert parts.committing.wait(10)
    threading.Timer(0.05, parts.released.set).start()
    assert writer.close(10)
    assert parts.calls[-1] == ("committed", 3, 5)
    batch.join()


def test_a_close_aborts_a_batch_that_takes_too_long(parts: Parts, writer: Writer) -> None:
    def fail() -> None:
        with pytest.raises(ValueError, match="aborted"):
            write(writer)

    parts.released.clear()
    batch = threading.Thread(target=fail)
    batch.start()
    assert parts.committing.wait(10)
    assert not writer.close(0.01)
    batch.join(10)
    assert parts.calls == [("started", 5)], "an aborted batch must not count as committed"
