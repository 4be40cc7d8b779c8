"""Two file sources, four instances each, whose speed is changed, under kills, a broker that restarts, replaced files.

`make file-kills` runs it longer: FILE_ROWS, FILE_FILES and FILE_KILLS say how many. A reader of its own (kafka-python)
looks at every record: each row of each file is there once, and the rows of a file are in order within a partition. By
the times of the records it prints how fast rows were copied while a rate was in force, and how soon after a kill. The
rate of FILE_RATE rows a second is doubled, halved and removed while the sources run, each for FILE_SECONDS.
"""

import os
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from lozenge.contracts.topics import Topic
from lozenge.file_sources.definition import FileSource, Format
from lozenge.file_sources.topics import topics_of
from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.topic_admin import ensure_topics
from lozenge.kafka.writers import AcknowledgedWriter
from lozenge.process.waiting import wait_until
from lozenge.protocol.file_positions import FilePosition, FileState
from lozenge.protocol.source_requests import SOURCES, SourceRelease, SourceRequest
from lozenge_deploy.local.embedded_broker import EmbeddedBroker
from lozenge_deploy.operations.file_sources.changes import rate_changed
from lozenge_deploy.operations.file_sources.requests import positions_of, requests_of_sources
from lozenge_upstream.files.copying import ROW_HEADER
from tests.faults.copied_rows import CopiedRows, Kill, Phase
from tests.faults.verify import committed
from tests.streams import every_topic
from tests.upstream.files.samples import SUFFIXES, rows_of, source_of, write

ROWS = int(os.environ.get("FILE_ROWS", "100000"))
FILES = int(os.environ.get("FILE_FILES", "20"))
KILLS = int(os.environ.get("FILE_KILLS", "10"))
MEASURED_KILLS = max(3, KILLS // 3)
"""So many more are measured: each waits until the files of the one before are copied again."""
RATE = float(os.environ.get("FILE_RATE", str(min(2_000, ROWS // 400))))
PHASE_SECONDS = float(os.environ.get("FILE_SECONDS", "8"))
SETTLED_SECONDS = 3.0
"""A piece that was begun at the rate of before has at most a second's rows."""
REBALANCED_SECONDS = 10.0
"""By then the instances that were killed last have their files again: a member that died is missed after 6 s."""
SEED, PARTITIONS, INSTANCES = 7, 4, 4
SECONDS = 3_600.0
FORMATS = (Format.PARQUET, Format.AVRO)

pytestmark = pytest.mark.nightly


class Instances:
    """The processes of one file source, each of which is started again after it ends."""

    def __init__(self, kafka: KafkaSettings, source: FileSource, log: Path) -> None:
        self._source, self._log = source, log
        self._environment = {**os.environ, **kafka.variables, "LOZENGE_FILES_SOURCE": source.name}
        self._starts = 0
        self.names = [""] * INSTANCES
        self.processes = [self._start(number) for number in range(INSTANCES)]

    def kill(self, number: int) -> None:
        self.processes[number].kill()
        self.processes[number].wait()
        self.revive()

    def revive(self) -> None:
        """Starts those again that have ended, as the platform does."""
        self.processes = [
            each if each.poll() is None else self._start(number) for number, each in enumerate(self.processes)
        ]

    def end(self) -> None:
        for process in self.processes:
            process.terminate()
        for process in self.processes:
            process.wait(60)

    def _start(self, number: int) -> "subprocess.Popen[bytes]":
        self._starts += 1
        self.names[number] = f"start-{self._starts}"
        environment = {**self._environment, "LOZENGE_FILES_INSTANCE": self.names[number]}
        with self._log.open("ab") as log:
            command = [sys.executable, "-m", "lozenge_upstream.files"]
            return subprocess.Popen(command, env=environment, stdout=log, stderr=log)


Running = tuple[FileSource, Instances]


@contextmanager
def copying(kafka: KafkaSettings, folder: Path, format: Format) -> Iterator[Running]:
    """A deployed source over files of a format, and its instances, at the first rate."""
    files, name = folder / format, f"campaign_{SUFFIXES[format]}"
    files.mkdir()
    each = ROWS // FILES
    for number in range(FILES):
        write(files / f"{number:03d}.{SUFFIXES[format]}", format, rows_of(str(number), each), group=max(10, each // 7))
    source = source_of(
        files, format, name=name, topic=f"RAW-{SUFFIXES[format]}", rows=max(10, each // 25), poll="200ms"
    )
    ensure_topics(kafka, [Topic(source.topic, PARTITIONS), *topics_of(kafka.topics, name)])
    release = SourceRelease(name, 1, source.model_dump(mode="json"))
    rows = (release, SourceRequest(name, 1, instances=INSTANCES, rate=RATE))
    AcknowledgedWriter(kafka).write([SOURCES.record(kafka.topics.control.sources, row) for row in rows])
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
            both = (one, two)
            for source, _ in both:
                assert wait_until(lambda: _all_copy(kafka, source), SECONDS, poll=0.5)  # noqa: B023
            phases = [_phase(kafka, both, rate) for rate in (RATE, 2 * RATE, RATE / 2)]
            _set_rate(kafka, both, RATE)
            kills = [[_kill_one_that_copies(kafka, each, chance) for each in both] for _ in range(MEASURED_KILLS)]
            for kill in range(KILLS):
                for _, instances in both:
                    time.sleep(chance.uniform(0.1, 1.0))
                    instances.kill(chance.randrange(INSTANCES))
                if kill == KILLS // 2:
                    broker.kill()
                    broker.start()
                    _replace(tmp_path / FORMATS[0], chance)
            time.sleep(REBALANCED_SECONDS)
            phases.append(Phase(0, _set_rate(kafka, both, 0), float("inf")))
            for source, instances in both:
                assert wait_until(lambda: _settled(kafka, source, instances), SECONDS, poll=0.5)  # noqa: B023
        for (source, _), killed in zip(both, zip(*kills, strict=True), strict=True):
            copied = CopiedRows(phases, killed)
            _assert_each_row_once(kafka, source, copied)
            _show(source, phases, copied)


def _all_copy(kafka: KafkaSettings, source: FileSource) -> bool:
    """Whether every instance has copied rows; there are enough files that each has one."""
    return len({position.instance for position in positions_of(kafka, source.name)}) == INSTANCES


def _set_rate(kafka: KafkaSettings, both: Iterable[Running], rate: float) -> float:
    """Sets it as `lozenge source set --rate` does; Unix time when both sources have the request."""
    for source, _ in both:
        requests_of_sources(kafka).make(
            source.name, lambda state: rate_changed(state, rate), action="source set", detail={"rate": rate}
        )
    return time.time()


def _phase(kafka: KafkaSettings, both: Iterable[Running], rate: float) -> Phase:
    began = _set_rate(kafka, both, rate) + SETTLED_SECONDS
    time.sleep(SETTLED_SECONDS + PHASE_SECONDS)
    return Phase(rate, began, began + PHASE_SECONDS)


def _kill_one_that_copies(kafka: KafkaSettings, running: Running, chance: random.Random) -> Kill:
    """Kills an instance within a file, and waits until all files that it was copying are copied again."""
    source, instances = running
    files = dict[str, list[str]]()

    def some_copy() -> bool:
        for each in positions_of(kafka, source.name):
            if each.state is FileState.COPYING and each.instance in instances.names:
                files.setdefault(each.instance, []).append(each.path)
        return bool(files)

    assert wait_until(some_copy, SECONDS)
    victim, at = chance.choice(sorted(files)), time.time()
    instances.kill(instances.names.index(victim))

    def are_continued() -> bool:
        now = {each.path: each for each in positions_of(kafka, source.name)}
        left = [now[path] for path in files[victim] if now[path].state is FileState.COPYING]
        return all(each.instance != victim for each in left)

    assert wait_until(are_continued, SECONDS)
    return Kill(at, files[victim])


def _settled(kafka: KafkaSettings, source: FileSource, instances: Instances) -> bool:
    instances.revive()
    positions = positions_of(kafka, source.name)
    return len(positions) == FILES and all(each.state is not FileState.COPYING for each in positions)


def _replace(folder: Path, chance: random.Random) -> None:
    """Another file takes the place of one of them, which is copied, waits, or is read now."""
    file = chance.choice(sorted(folder.iterdir()))
    write(file, FORMATS[0], rows_of("replaced", ROWS // FILES))


def _show(source: FileSource, phases: Sequence[Phase], copied: CopiedRows) -> None:
    """Prints what was measured; a busy machine may be slower, so nothing of it is asserted."""
    for phase, speed in zip(phases, copied.speeds(), strict=True):
        wanted = f"{phase.requested:,.0f} rows a second requested" if phase.requested else "no limit requested"
        ratio = f", {speed / phase.requested:.2f} of it" if phase.requested else ""
        print(f"{source.name}: {wanted}, {speed:,.0f} copied{ratio}", flush=True)
    resumed = copied.resumed()
    if resumed:
        median = f"{statistics.median(resumed):.1f} s median, {resumed[-1]:.1f} s at most"
        print(f"{source.name}: from a kill to the next row of the file: {median}, of {len(resumed)} files", flush=True)


def _assert_each_row_once(kafka: KafkaSettings, source: FileSource, copied_rows: CopiedRows) -> None:
    positions = {each.path: each for each in positions_of(kafka, source.name)}
    last: dict[tuple[str, int], int] = {}
    seen = {path: bytearray(ROWS // FILES) for path in positions}
    for record in committed(kafka.bootstrap, source.topic):
        path, _, number = dict(record.headers)[ROW_HEADER].decode().rpartition(":")
        copied_rows.take(path, record.timestamp / 1000)
        place = path, record.partition
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
