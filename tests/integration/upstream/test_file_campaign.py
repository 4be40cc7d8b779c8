"""Two file sources, four instances each, under kills, a broker that restarts, and files that are replaced.

`make file-kills` runs it longer: FILE_ROWS, FILE_FILES and FILE_KILLS say how many. A reader of its own looks at every
record: each row of each file is there once, and the rows of a file are in order within a partition.
"""

import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from lozenge.contracts.topics import Topic
from lozenge.file_sources.definition import FileSource, Format
from lozenge.file_sources.topics import topics_of
from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.topic_admin import ensure_topics
from lozenge.kafka.topic_reader import retained
from lozenge.kafka.writers import AcknowledgedWriter
from lozenge.process.waiting import wait_until
from lozenge.protocol import source_requests
from lozenge.protocol.file_positions import FilePosition, FileState
from lozenge.protocol.source_requests import SourceRelease, SourceRequest
from lozenge_deploy.local.embedded_broker import EmbeddedBroker
from lozenge_deploy.operations.file_sources.requests import positions_of
from lozenge_upstream.files.copying import ROW_HEADER
from tests.streams import every_topic
from tests.upstream.files.samples import SUFFIXES, rows_of, source_of, write

ROWS = int(os.environ.get("FILE_ROWS", "100000"))
FILES = int(os.environ.get("FILE_FILES", "20"))
KILLS = int(os.environ.get("FILE_KILLS", "10"))
SEED, PARTITIONS, INSTANCES = 7, 4, 4
SECONDS = 3_600.0
FORMATS = (Format.PARQUET, Format.AVRO)

pytestmark = pytest.mark.nightly


class Instances:
    """The processes of one file source, each of which is started again after it ends."""

    def __init__(self, kafka: KafkaSettings, source: FileSource, log: Path) -> None:
        self._source, self._log = source, log
        self._environment = {**os.environ, **kafka.variables, "LOZENGE_FILES_SOURCE": source.name}
        self.processes = [self._start() for _ in range(INSTANCES)]

    def kill(self, number: int) -> None:
        self.processes[number].kill()
        self.processes[number].wait()
        self.revive()

    def revive(self) -> None:
        """Starts those again that have ended, as the platform does."""
        self.processes = [each if each.poll() is None else self._start() for each in self.processes]

    def end(self) -> None:
        for process in self.processes:
            process.terminate()
        for process in self.processes:
            process.wait(60)

    def _start(self) -> "subprocess.Popen[bytes]":
        with self._log.open("ab") as log:
            command = [sys.executable, "-m", "lozenge_upstream.files"]
            return subprocess.Popen(command, env=self._environment, stdout=log, stderr=log)


@contextmanager
def copying(kafka: KafkaSettings, folder: Path, format: Format) -> Iterator[tuple[FileSource, Instances]]:
    """A deployed source over files of a format, and its instances."""
    files, name = folder / format, f"campaign_{SUFFIXES[format]}"
    files.mkdir()
    each = ROWS // FILES
    for number in range(FILES):
        write(files / f"{number}.{SUFFIXES[format]}", format, rows_of(str(number), each), group=max(10, each // 7))
    source = source_of(
        files, format, name=name, topic=f"RAW-{SUFFIXES[format]}", rows=max(10, each // 25), poll="200ms"
    )
    ensure_topics(kafka, [Topic(source.topic, PARTITIONS), *topics_of(kafka.topics, name)])
    rows = (SourceRelease(name, 1, source.model_dump(mode="json")), SourceRequest(name, 1, instances=INSTANCES))
    AcknowledgedWriter(kafka).write([source_requests.record(kafka.topics.control.sources, row) for row in rows])
    instances = Instances(kafka, source, folder / f"{name}.log")
    try:
        yield source, instances
    finally:
        instances.end()


def test_each_row_of_each_file_is_there_once_whatever_is_killed(tmp_path: Path) -> None:
    chance = random.Random(SEED)
    with EmbeddedBroker(tmp_path / "broker", heap_mb=512) as broker:
        kafka = KafkaSettings(bootstrap=broker.bootstrap)
        ensure_topics(kafka, every_topic(kafka.topics))
        with copying(kafka, tmp_path, FORMATS[0]) as one, copying(kafka, tmp_path, FORMATS[1]) as two:
            for kill in range(KILLS):
                for _, instances in (one, two):
                    time.sleep(chance.uniform(0.1, 1.0))
                    instances.kill(chance.randrange(INSTANCES))
                if kill == KILLS // 2:
                    broker.kill()
                    broker.start()
                    _replace(tmp_path / FORMATS[0], chance)
            for source, instances in (one, two):
                assert wait_until(lambda: _settled(kafka, source, instances), SECONDS, poll=0.5)  # noqa: B023
        for source in (one[0], two[0]):
            _assert_each_row_once(kafka, source)


def _settled(kafka: KafkaSettings, source: FileSource, instances: Instances) -> bool:
    instances.revive()
    positions = positions_of(kafka, source.name)
    return len(positions) == FILES and all(each.state is not FileState.COPYING for each in positions)


def _replace(folder: Path, chance: random.Random) -> None:
    """Another file takes the place of one of them, which is copied, waits, or is read now."""
    file = chance.choice(sorted(folder.iterdir()))
    write(file, FORMATS[0], rows_of("replaced", ROWS // FILES))


def _assert_each_row_once(kafka: KafkaSettings, source: FileSource) -> None:
    positions = {each.path: each for each in positions_of(kafka, source.name)}
    last: dict[tuple[str, int], int] = {}
    seen = {path: bytearray(ROWS // FILES) for path in positions}
    for message in retained(kafka, source.topic, PARTITIONS):
        header = dict(message.headers() or ())[ROW_HEADER]
        assert isinstance(header, bytes)
        path, _, number = header.decode().rpartition(":")
        place = path, message.partition() or 0
        assert int(number) > last.get(place, -1), f"{path}: row {number} comes after row {last[place]}"
        last[place] = int(number)
        seen[path][int(number)] += 1
    for path, position in positions.items():
        copied = _copied(position)
        assert seen[path] == bytes([1] * copied + [0] * (ROWS // FILES - copied)), path
    failed = [path for path, position in positions.items() if position.state is FileState.FAILED]
    print(f"{source.name}: {sum(map(sum, seen.values())):,} rows once; failed: {failed or 'none'}", flush=True)
    assert len(failed) <= 1


def _copied(position: FilePosition) -> int:
    assert position.state is FileState.FAILED or position.place.rows == ROWS // FILES
    return position.place.rows
