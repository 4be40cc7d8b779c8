"""A disk that is full ends no sink: it says so, loses nothing, and continues when there is space."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from lozenge.archive.verification import totals
from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.topic_admin import ensure_topics
from lozenge.metrics.app_metrics import SinkMetrics
from lozenge.process.waiting import wait_until
from lozenge.sink import sink_loop
from lozenge.sink.sink_loop import SinkLoop
from lozenge.sink.table_shares import TableShares
from lozenge.sink.topic_sink import ArchiveReading
from tests.full_disk import files_of_at_most
from tests.integration.harness import event, group_offsets, send
from tests.integration.sink.archiving import declared, ends_of, proved, sharing, topics_of
from tests.plain_loop import PlainLoop
from tests.streams import AUTH

SECONDS = 60.0
SINK = declared("full_disk", records=["events"])
EPISODES, EVENTS = 4, 50
HINT = "free space on its disk, or check its permissions; nothing is lost, and the sink tries it again"


@contextmanager
def archiving(kafka: KafkaSettings, archive: Path) -> Iterator[None]:
    """The loop of the sink in a thread, which ends in order."""
    stop = threading.Event()
    with sharing(kafka, SINK, PlainLoop(kafka)) as shared:
        shares = TableShares(kafka, SINK.app)
        loop = SinkLoop(SINK, [AUTH], archive, ArchiveReading(*shared[:-1]), shares, SinkMetrics(SINK.app))
        thread = threading.Thread(target=loop.run, args=(stop,))
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join(SECONDS)
        assert not thread.is_alive()


def test_a_sink_waits_while_its_disk_is_full_and_then_has_every_record_once(
    kafka: KafkaSettings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sink_loop, "UNWRITABLE_SECONDS", 0.2)
    monkeypatch.setattr(sink_loop, "DISCOVER_SECONDS", 0.2)
    ensure_topics(kafka, [*kafka.topics.platform_topics(), *AUTH.topics(kafka.topics, ())])

    def moved() -> int:
        return sum(max(0, o) for o, _ in group_offsets(kafka, SINK.app, AUTH.events(kafka.topics)).values())

    def full_for_a_while(episode: int) -> None:
        """The first time there is no table yet; later there are files that fit, and others that do not."""
        with capture_logs() as said:
            before = moved()
            with files_of_at_most(500 * episode):
                send(kafka, [event(episode * EVENTS + n, card=f"card_{n % 7}") for n in range(EVENTS)])
                assert wait_until(lambda: any(line["log_level"] == "error" for line in said), SECONDS)
                assert moved() == before
            assert wait_until(lambda: moved() > before, SECONDS)
        assert {line["hint"] for line in said if line["log_level"] == "error"} == {HINT}

    for episode in range(EPISODES):
        with archiving(kafka, tmp_path):
            full_for_a_while(episode)
    with archiving(kafka, tmp_path), files_of_at_most(0):  # it ends while the disk is full
        send(kafka, [event(EPISODES * EVENTS)])
    with archiving(kafka, tmp_path):
        assert wait_until(
            lambda: moved() == sum(ends_of(kafka, topics_of(kafka, SINK)["events_auth"]).values()), SECONDS
        )
    sums = totals(found := proved(kafka, tmp_path))
    assert all(each.clean for each in found), [each.problems for each in found]
    assert sums["rows"] == EPISODES * EVENTS + 1
