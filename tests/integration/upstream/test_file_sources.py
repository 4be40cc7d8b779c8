"""Files into a raw topic: each row once and in order, whatever is killed, changed, bad, paused or moved meanwhile."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

import pytest
from confluent_kafka import Message

from lozenge.contracts.dead_letters import MESSAGE
from lozenge.contracts.topics import Topic
from lozenge.file_sources.definition import Format
from lozenge.file_sources.topics import topics_of
from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.topic_admin import ensure_topics
from lozenge.kafka.topic_reader import retained
from lozenge.kafka.writers import AcknowledgedWriter
from lozenge.protocol.file_positions import FilePosition, FileState
from lozenge.protocol.source_requests import SOURCES, FileRetry, SourceRelease, SourceRequest, SourceRow
from lozenge_deploy.operations.file_sources.requests import positions_of
from lozenge_upstream.files.copying import ROW_HEADER
from tests.full_disk import COMPILES_NOTHING, folder_on_another_disk, limit_files_of
from tests.upstream.files.samples import SUFFIXES, rows_of, source_of, write
from tests.waiting import until

RAW_PARTITIONS = 3
KILLS_ON_A_FULL_DISK = 2


class Copied:
    """A file source in a project of its own, the processes that copy its files, and what they have written."""

    def __init__(self, kafka: KafkaSettings, folder: Path, format: Format, **declared: Any) -> None:
        self.kafka, self.files, self.suffix = kafka, folder / "in", SUFFIXES[format]
        name = f"s{random.SystemRandom().randrange(10**9)}"
        source = source_of(self.files, format, name=name, poll="200ms", topic=f"ROWS-{name}", **declared)
        self.source, self.format, self.release = source, format, 0
        self.raw = kafka.topics.prefixed(source.topic)
        self.files.mkdir()
        ensure_topics(kafka, [Topic(self.raw, RAW_PARTITIONS), *topics_of(kafka.topics, name)])
        self.deploy()

    def write(self, name: str, count: int, **given: Any) -> None:
        write(self.files / f"{name}.{self.suffix}", self.format, rows_of(name, count), **given)

    def start(self, log: IO[bytes] | None = None, variables: Mapping[str, str] = {}) -> subprocess.Popen[bytes]:
        environment = {**os.environ, **self.kafka.variables, **variables, "LOZENGE_FILES_SOURCE": self.source.name}
        return subprocess.Popen([sys.executable, "-m", "lozenge_upstream.files"], env=environment, stderr=log)

    @contextmanager
    def running(self) -> Iterator[subprocess.Popen[bytes]]:
        process = self.start()
        try:
            yield process
        finally:
            process.terminate()
            assert process.wait(60) == 0

    def deploy(self, **changes: Any) -> None:
        self.release += 1
        self.source = self.source.model_copy(update=changes)
        self._send(SourceRelease(self.source.name, self.release, self.source.model_dump(mode="json")))
        self.request()

    def request(self, **wanted: Any) -> None:
        self._send(SourceRequest(self.source.name, self.release, **wanted))

    def _send(self, row: SourceRow) -> None:
        AcknowledgedWriter(self.kafka).write([SOURCES.record(self.kafka.topics.control.sources, row)])

    def rows(self) -> list[Message]:
        return [*retained(self.kafka, self.raw, RAW_PARTITIONS)]

    def ids(self) -> list[str]:
        return [json.loads(row.value() or b"")["id"] for row in self.rows()]

    def dead_letters(self) -> list[dict[str, bytes]]:
        topic = self.kafka.topics.dead_letters(self.source.app)
        return [_headers(each) for each in retained(self.kafka, topic, self.kafka.partitions)]

    def positions(self) -> dict[str, FilePosition]:
        return {position.path: position for position in positions_of(self.kafka, self.source.name)}

    def states(self) -> dict[str, FileState]:
        return {path.split(".")[0]: position.state for path, position in self.positions().items()}

    def until_all(self, state: FileState, *names: str) -> None:
        until(lambda: self.states() == dict.fromkeys(names, state), f"{names} are {state}")


def _until_it_says(log: Path, words: str) -> None:
    until(lambda: words in log.read_text(), f"{log} has {words}")


def _kill(processes: list[subprocess.Popen[bytes]]) -> None:
    for process in processes:
        process.kill()
        process.wait()


def _headers(row: Message) -> dict[str, bytes]:
    return dict(row.headers() or ())  # type: ignore[arg-type]


def _number(row: Message) -> int:
    return int(_headers(row)[ROW_HEADER].rpartition(b":")[2])


def _ids(counts: Mapping[str, int]) -> Counter[str]:
    return Counter(f"{name}-{n}" for name, count in counts.items() for n in range(count))


@pytest.mark.parametrize("format", [Format.PARQUET, pytest.param(Format.CSV, marks=pytest.mark.nightly)])
def test_killed_instances_leave_each_row_once_in_the_order_of_its_file(
    kafka: KafkaSettings, tmp_path: Path, format: Format
) -> None:
    copied, chance, counts = Copied(kafka, tmp_path, format, rows=50), random.Random(7), {}
    for n in range(10):
        counts[f"f{n}"] = 900
        copied.write(f"f{n}", 900, group=333)
    copied.request(rate=3_000)  # so that there is something to kill
    with ExitStack() as ends:
        running = [copied.start() for _ in range(3)]
        ends.callback(lambda: _kill(running))
        for kill in range(5):
            seen = len(copied.ids())
            until(lambda: len(copied.ids()) > seen or len(copied.ids()) == 9_000, f"rows before kill {kill}")  # noqa: B023
            victim = chance.randrange(3)
            running[victim].send_signal(signal.SIGKILL)
            running[victim].wait()
            running[victim] = copied.start()
        copied.request(rate=0)
        copied.until_all(FileState.DONE, *counts)
        for process in running:
            process.terminate()
        # one that has just begun knows no signal yet
        assert {process.wait(60) for process in running} <= {0, -signal.SIGTERM}
    rows = copied.rows()
    assert Counter(json.loads(row.value() or b"")["id"] for row in rows) == _ids(counts)
    last: dict[tuple[int | None, bytes], int] = {}
    for row in rows:
        number, place = _number(row), (row.partition(), _headers(row)[ROW_HEADER].rpartition(b":")[0])
        assert number > last.get(place, -1)
        last[place] = number


def test_a_file_that_changes_fails_others_continue_and_an_operator_copies_it_again(
    kafka: KafkaSettings, tmp_path: Path
) -> None:
    copied = Copied(kafka, tmp_path, Format.PARQUET)
    copied.write("a", 20)
    with copied.running():
        copied.until_all(FileState.DONE, "a")
        copied.write("a", 30)
        copied.write("b", 10)
        until(lambda: copied.states() == {"a": FileState.FAILED, "b": FileState.DONE})
        assert "changed after 20" in copied.positions()["a.parquet"].reason
        assert Counter(copied.ids()) == _ids({"a": 20, "b": 10})
        copied.request(retries={"a.parquet": FileRetry(from_start=True)})
        copied.until_all(FileState.DONE, "a", "b")
    assert Counter(copied.ids()) == _ids({"a": 20, "b": 10}) + _ids({"a": 30})


def test_a_file_that_is_replaced_while_it_is_copied_gives_no_row_of_the_other(
    kafka: KafkaSettings, tmp_path: Path
) -> None:
    copied = Copied(kafka, tmp_path, Format.PARQUET, rows=10)
    copied.write("a", 500)
    copied.request(rate=100)
    with copied.running():
        until(lambda: copied.ids())
        write(copied.files / "a.parquet", Format.PARQUET, rows_of("other", 500))
        copied.until_all(FileState.FAILED, "a")
    found = copied.ids()
    assert found
    assert sorted(found, key=lambda id: int(id[2:])) == [f"a-{n}" for n in range(len(found))]


def test_bad_rows_are_dead_letters_with_their_place_and_too_many_park_the_file(
    kafka: KafkaSettings, tmp_path: Path
) -> None:
    copied = Copied(kafka, tmp_path, Format.JSON_LINES, max_bad=0.1)
    good = [json.dumps(row) for row in rows_of("a", 19)]
    for name, bad in {"few": 1, "many": 9}.items():
        (copied.files / f".{name}").write_text("\n".join([*good[:9], *["{"] * bad, *good[9:]]))
        (copied.files / f".{name}").rename(copied.files / f"{name}.jsonl")
    with copied.running():
        until(lambda: copied.states() == {"few": FileState.DONE, "many": FileState.FAILED})
    positions, dead = copied.positions(), copied.dead_letters()
    assert (positions["few.jsonl"].bad, positions["few.jsonl"].place.rows) == (1, 20)
    assert "9 of 28 rows cannot be read" in positions["many.jsonl"].reason
    found = {each[ROW_HEADER]: each[MESSAGE] for each in dead}
    assert b"reading row 9 of few.jsonl: the line is not JSON" in found[b"few.jsonl:9"]
    assert len(dead) == 10


def test_a_file_whose_columns_differ_fails_with_the_difference(kafka: KafkaSettings, tmp_path: Path) -> None:
    copied = Copied(kafka, tmp_path, Format.CSV)
    (copied.files / "a.csv").write_text("id,cardd,amount\n1,c,2\n")
    copied.write("b", 3)
    with copied.running():
        until(lambda: copied.states() == {"a": FileState.FAILED, "b": FileState.DONE})
    reason = copied.positions()["a.csv"].reason
    assert "card: it is missing" in reason
    assert "cardd (text): it is not declared" in reason


def test_a_file_that_may_grow_gives_its_new_rows(kafka: KafkaSettings, tmp_path: Path) -> None:
    copied = Copied(kafka, tmp_path, Format.JSON_LINES, appendable=True)
    lines = [json.dumps(row) + "\n" for row in rows_of("a", 50)]
    with copied.running():
        for count in (20, 21, 50):
            with (copied.files / "a.jsonl").open("a") as file:
                file.write("".join(lines[len(copied.ids()) : count]))
            until(lambda: len(copied.ids()) == count)  # noqa: B023
    assert Counter(copied.ids()) == _ids({"a": 50})


def test_a_copied_file_is_moved_or_deleted(kafka: KafkaSettings, tmp_path: Path) -> None:
    moved = Copied(kafka, tmp_path, Format.AVRO, after="move", move_to=str(tmp_path / "done"))
    moved.write("a", 20)
    with moved.running():
        until(lambda: not [*moved.files.iterdir()])
    assert (tmp_path / "done" / "a.avro").exists()
    assert Counter(moved.ids()) == _ids({"a": 20})


def test_a_file_that_a_full_disk_does_not_take_stays_and_is_moved_once_there_is_space(
    kafka: KafkaSettings, tmp_path: Path
) -> None:
    with folder_on_another_disk(tmp_path) as done:
        moved = Copied(kafka, tmp_path, Format.CSV, after="move", move_to=str(done), rows=100)
        moved.write("a", 2_000)
        for kill in range(KILLS_ON_A_FULL_DISK):
            log = tmp_path / f"log-{kill}"
            with log.open("wb") as file:
                limited = moved.start(file, COMPILES_NOTHING)
            limit_files_of(limited.pid, (moved.files / "a.csv").stat().st_size // 2)
            _until_it_says(log, "copying a.csv: ")
            _kill([limited])
            assert "it is tried again after 30 s" in log.read_text()
            assert moved.states() == {"a": FileState.DONE}
            assert [file.name for file in moved.files.iterdir()] == ["a.csv"]
            assert [*done.iterdir()] == []
        with moved.running():
            until(lambda: [file.name for file in done.iterdir()] == ["a.csv"], "it is moved")
        assert [*moved.files.iterdir()] == []
        assert Counter(moved.ids()) == _ids({"a": 2_000})


def test_a_paused_source_copies_nothing_and_continues_at_the_next_row(kafka: KafkaSettings, tmp_path: Path) -> None:
    copied = Copied(kafka, tmp_path, Format.CSV, rows=10)
    copied.write("a", 2_000)
    copied.request(rate=50)

    def rests() -> bool:
        seen = len(copied.ids())
        time.sleep(2)
        return len(copied.ids()) == seen

    with copied.running():
        until(lambda: copied.ids())
        copied.request(rate=50, paused=True)
        until(rests)
        assert len(copied.ids()) < 2_000
        copied.request()
        copied.until_all(FileState.DONE, "a")
    assert Counter(copied.ids()) == _ids({"a": 2_000})
    assert copied.positions()["a.csv"].at < datetime.now(UTC)


def test_a_new_release_continues_at_the_next_row(kafka: KafkaSettings, tmp_path: Path) -> None:
    copied = Copied(kafka, tmp_path, Format.CSV, rows=10)
    copied.write("a", 400)
    copied.request(rate=50)
    with copied.running():
        until(lambda: copied.ids())
        copied.deploy(rows=100, key="id")
        copied.until_all(FileState.DONE, "a")
    assert Counter(copied.ids()) == _ids({"a": 400})
    keys = [row.key() for row in sorted(copied.rows(), key=_number)]
    changed = next(n for n, key in enumerate(keys) if key == f"a-{n}".encode())
    assert 0 < changed < 400
    assert keys[changed:] == [f"a-{n}".encode() for n in range(changed, 400)]
