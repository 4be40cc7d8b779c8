"""Instances of one archive share its tables: each table has one of them, and another one after that dies or hangs."""

import itertools
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from lozenge.archive.delta_table import ArchiveTable
from lozenge.archive.verification import totals
from lozenge.errors import ConfigError, Fenced
from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.topic_admin import ensure_topics
from lozenge.sink.table_shares import share_of
from tests.integration.harness import event, send, wait_for
from tests.integration.sink.archiving import declared, proved
from tests.streams import AUTH

ROOT = Path(__file__).parents[3]
SINK = declared("shared_tables", records=["events"])
EVENTS = 60


class Instances:
    """Instances by their number, and what each has logged."""

    def __init__(self, kafka: KafkaSettings, folder: Path) -> None:
        self._kafka, self._folder = kafka, folder
        self.archive, self.processes = folder / "archive", dict[int, "subprocess.Popen[bytes]"]()
        self._sent = itertools.count()
        self._topic = AUTH.events(kafka.topics)

    def start(self, number: int) -> None:
        command = [sys.executable, "-m", "tests.integration.sink.plain_archive", SINK.name, str(self.archive)]
        with self._log(number).open("wb") as log:
            environment = {**os.environ, **self._kafka.variables}
            self.processes[number] = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=log, stderr=log)

    def owner(self, *among: int) -> int:
        """The one of these that has the table."""
        wait_for(lambda: any(map(self._has_the_table, among)), "an owner of the table")
        return next(filter(self._has_the_table, among))

    def archive_more(self) -> None:
        """Sends events, and waits until they are rows."""
        before = self._archived()
        send(self._kafka, [event(next(self._sent), card=f"card_{n % 7}") for n in range(EVENTS)])
        wait_for(lambda: self._archived() >= before + EVENTS, f"rows; {self._said()}")

    def end(self) -> None:
        for process in self.processes.values():
            process.send_signal(signal.SIGCONT)
            process.terminate()
        for process in self.processes.values():
            process.wait(60)

    def _archived(self) -> int:
        with suppress(ConfigError):
            return sum(file.rows for file in ArchiveTable.existing(self.archive / self._topic).files())
        return 0

    def _has_the_table(self, number: int) -> bool:
        lines = [json.loads(line) for line in self._log(number).read_text().splitlines() if line.startswith("{")]
        held = [line["shares"] for line in lines if "shares" in line]
        return bool(held) and share_of(self._topic, self._kafka.partitions) in held[-1]

    def _log(self, number: int) -> Path:
        return self._folder / f"{number}.log"

    def _said(self) -> str:
        return "; ".join(self._log(number).read_text()[-500:] for number in self.processes)


@pytest.fixture
def instances(kafka: KafkaSettings, tmp_path: Path) -> Iterator[Instances]:
    ensure_topics(kafka, [*kafka.topics.platform_topics(), *AUTH.topics(kafka.topics, ())])
    ensure_topics(kafka, [kafka.topics.dead_letter_topic(SINK.app)])
    started = Instances(kafka, tmp_path)
    yield started
    started.end()


def test_the_table_of_an_instance_that_dies_or_hangs_is_continued_by_another_one(
    instances: Instances, kafka: KafkaSettings
) -> None:
    instances.start(1)
    instances.start(2)
    instances.archive_more()
    first = instances.owner(1, 2)
    second = 3 - first
    instances.processes[first].kill()
    instances.archive_more()
    instances.start(3)
    hanging = instances.owner(second, 3)
    instances.processes[hanging].send_signal(signal.SIGSTOP)
    instances.archive_more()
    instances.processes[hanging].send_signal(signal.SIGCONT)
    instances.archive_more()
    instances.end()
    assert instances.processes[hanging].returncode in (0, Fenced.exit_code)
    sums = totals(found := proved(kafka, instances.archive))
    assert all(each.clean for each in found), [each.problems for each in found]
    assert sums["rows"] == 4 * EVENTS
