"""A sink's own process under kills, while events come and another process merges files all the time.

`make archive-kills` runs it longer: SINK_EVENTS and SINK_KILLS say how many.
"""

import os
import random
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from lozenge.archive.compaction import merged, to_merge
from lozenge.archive.delta_table import ArchiveTable
from lozenge.archive.queries import ArchiveQueries
from lozenge.archive.verification import totals
from lozenge.errors import ConfigError
from lozenge.kafka.group_offsets import committed
from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.topic_admin import ensure_topics
from lozenge.process.waiting import wait_until
from tests.bench.backlog import write
from tests.integration.harness import EVENT, event
from tests.integration.job.killing import process_of
from tests.integration.sink.archiving import proved
from tests.sinks import deployed, sink_folder
from tests.streams import AUTH

EVENTS, KILLS = int(os.environ.get("SINK_EVENTS", "100000")), int(os.environ.get("SINK_KILLS", "5"))
SEED = 7
PATIENCE_SECONDS, SECONDS = 240.0, 5_400.0
POISON = 97
"""One record of so many is no event."""
DECLARED = """
kind = "archive"
title = "Under kills"
owner = "tests"
records = ["events"]
buckets = 4
commit_every = "1s"
"""
COMMIT_MB = 4 if EVENTS <= 2_000_000 else 16
"""Several commits of each portion."""
PORTION = -(-EVENTS // (KILLS + 1))
"""So many records come with each start, so that no kill finds a sink at rest."""
CARDS = 1009

pytestmark = pytest.mark.nightly


def records(more: threading.Semaphore) -> Iterator[tuple[bytes, bytes | None]]:
    """A portion for each time that `more` is released."""
    cards = [f"card_{number}" for number in range(CARDS)]
    made = [(card.encode(), EVENT.encode(event(number, card=card))) for number, card in enumerate(cards)]
    for number in range(EVENTS):
        if number % PORTION == 0:
            more.acquire()
        key, value = made[number % CARDS]
        yield key, value if number % POISON else b"no event"


def merge_for_ever(folder: Path, stop: threading.Event) -> None:
    """Merges whatever files there are, as if every day were over."""
    while not stop.wait(0.2):
        with suppress(ConfigError):  # there is no table yet
            table = ArchiveTable.existing(folder)
            for small in to_merge(table.files(), (datetime.now(UTC) + timedelta(days=2)).date()):
                table.replace(small.files, merged(folder, small, table.columns))
                table.refresh()


def test_a_sink_that_is_killed_again_and_again_has_every_record_once(kafka: KafkaSettings, tmp_path: Path) -> None:
    ensure_topics(kafka, kafka.topics.platform_topics())
    topic, rng = AUTH.events(kafka.topics), random.Random(SEED)
    sink = sink_folder(tmp_path, "campaign", f"{DECLARED}commit_mb = {COMMIT_MB}\n")
    command = deployed(kafka, sink)
    archive, log = tmp_path / "archive", tmp_path / "log"
    stop, more = threading.Event(), threading.Semaphore(0)
    producer = threading.Thread(target=write, args=(kafka, topic, kafka.partitions, records(more)))
    merger = threading.Thread(target=merge_for_ever, args=(archive / topic, stop))
    producer.start()
    merger.start()

    def archived() -> int:
        with suppress(ConfigError):
            return sum(ArchiveTable.existing(archive / topic).ends(range(kafka.partitions)).values())
        return 0

    started, deadline = 0, time.monotonic() + SECONDS
    try:
        for number in range(1, KILLS + 1):
            more.release()
            before = archived()
            wanted = min(before + rng.uniform(1, 2 * PORTION), number * PORTION)
            with process_of(kafka, command, tmp_path, 1, log, LOZENGE_ARCHIVE=str(archive)) as run:
                assert wait_until(lambda: archived() >= wanted or run.poll() is not None, PATIENCE_SECONDS)  # noqa: B023
                assert run.poll() is None, log.read_text()
                time.sleep(rng.uniform(0.0, 2.0))
                started += 1
                print(f"{started} kills, {archived()} of {EVENTS} records", file=sys.stderr, flush=True)
        more.release()
        producer.join()
        with process_of(kafka, command, tmp_path, 1, log, LOZENGE_ARCHIVE=str(archive)) as run:
            assert wait_until(lambda: archived() >= EVENTS or run.poll() is not None, deadline - time.monotonic())
            run.terminate()
            assert run.wait(60) == 0, log.read_text()
    finally:
        stop.set()
        more.release(KILLS + 1)
        producer.join()
        merger.join()
    sums = totals(found := proved(kafka, archive))
    assert started == KILLS
    assert all(each.clean for each in found), [each.problems for each in found]
    bad = len(range(0, EVENTS, POISON))
    assert (sums["rows"], sums["dead_letters"]) == (EVENTS - bad, bad)
    assert sum(p.offset for p in committed(kafka, "sink-campaign")) == EVENTS
    assert counted(archive / topic) == (EVENTS - bad, EVENTS - bad)
    with_version = ArchiveTable.existing(archive / topic)
    print(f"{KILLS} kills, {EVENTS} records, {with_version.version} commits: 0 lost, 0 twice", file=sys.stderr)


def counted(folder: Path) -> tuple[int, int]:
    """Rows, and different positions, as DuckDB counts them."""
    table = ArchiveTable.existing(folder)
    with ArchiveQueries([table]) as queries:
        query = f'SELECT count(*) AS n, count(DISTINCT ("partition", "offset")) AS d FROM {table.view}'
        found: list[dict[str, Any]] = queries.read(query).read_all().to_pylist()
    return found[0]["n"], found[0]["d"]
