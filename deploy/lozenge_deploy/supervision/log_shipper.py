"""Ships the log files of jobs to the topic `lozenge.logs.v1`, line by line.

The file is the buffer: a line is read once the lines before it are in Kafka, so nothing is read while the broker is
down. The position is in `<file>.shipped`, next to the file; the next shipper continues from it, at least once. There
are two limits. Lines are dropped when too many bytes wait, and a log line reports how many. A file is truncated once
it is read completely: a line that its writer adds at that instant, or that a crash loses on its way, is lost.
"""

import json
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from lozenge.contracts.partitioner import partition_of
from lozenge.contracts.topics import LOG_PARTITIONS
from lozenge.kafka.settings import KafkaSettings
from lozenge_deploy.supervision.log_lines import LINE_BYTES, dropped, fields, whole

LINES = 1000
"""How many lines of a file one call ships; their total is at most `LINE_BYTES`."""


class Shipper:
    """Ships the lines of any number of files. Used by one thread, and never blocks it.

    A file is truncated when it has more than `cap` bytes and all are read, or when more than `cap` bytes wait. It
    never uses more than twice that space. Its writer must open it for appending.
    """

    def __init__(self, kafka: KafkaSettings, cap: int = 32_000_000) -> None:
        self._topic = kafka.topics.logs
        self._cap = cap
        self._files: dict[Path, _File] = {}
        self._producer = Producer(
            kafka.client(
                message_timeout_ms=0,  # a line waits for the broker without a limit; there are few, see LINES
                max_in_flight=1,  # in order
                message_max_bytes=2 * 1024 * 1024,
                linger_ms=50,
                compression_type="gzip",
            )
        )

    def follow(
        self,
        file: Path,
        app: str,
        instance: str,
        release: str,
        app_of: Callable[[Mapping[str, Any]], str] | None = None,
    ) -> None:
        """Ships `file` from its recorded position on; it need not exist yet.

        `app_of` gives the app of each line of a file that several apps write to.
        """
        self._files[file] = _File(file, {"app": app, "instance": instance, "release": release}, app_of)

    def unfollow(self, file: Path) -> None:
        """Forgets `file`, whose writer has ended, once the rest of it is shipped."""
        if file in self._files:
            self._files[file].ended = True

    def following(self) -> list[Path]:
        """The files that may have more to ship."""
        return list(self._files)

    def ship(self) -> None:
        """Ships a part of each file; call it about ten times a second. Raises nothing."""
        self._producer.poll(0)
        for file in list(self._files.values()):
            try:
                self._advance(file)
            except OSError:  # it does not exist yet, or not any more
                file.gone = True
            if file.done:
                del self._files[file.path]

    def close(self, seconds: float = 5.0) -> None:
        """Waits up to `seconds` for unconfirmed lines; the next shipper ships the others again."""
        self._producer.flush(seconds)
        for file in self._files.values():
            file.land()

    def _advance(self, file: "_File") -> None:
        file.land()
        file.measure()
        if file.unread > self._cap:
            file.empty(file.unread)
        elif file.flight is None:
            self._take(file)
            file.measure()
            if file.size > self._cap and not file.unread:
                file.empty(0)

    def _take(self, file: "_File") -> None:
        """Hands the next lines to the producer, as many as it accepts."""
        flight = _Flight(file.position)
        if file.dropped:
            flight.reported = file.dropped if self._send(file, flight, dropped(file.dropped)) else 0
        for line in file.next_lines():
            if line.strip() and not self._send(file, flight, fields(line)):
                break  # it waits in its file
            flight.end += len(line)
        if flight.reported or flight.end > file.position:
            file.flight = flight

    def _send(self, file: "_File", flight: "_Flight", line: Mapping[str, Any]) -> bool:
        who = file.who_wrote(line)
        key = who["app"].encode()
        value = json.dumps({**line, **who}).encode()
        partition = partition_of(key, LOG_PARTITIONS)
        try:
            self._producer.produce(self._topic, value, key, partition, on_delivery=flight.landed)
        except (BufferError, KafkaException):
            return False
        flight.left += 1
        return True


@dataclass
class _Flight:
    """Lines up to the file's byte `end`, of which the broker has not confirmed `left`.

    They report `reported` dropped bytes; `alone` bytes of them are in no file any more.
    """

    end: int
    alone: int = 0
    left: int = 0
    reported: int = 0
    failed: bool = False

    def landed(self, error: KafkaError | None, _: Message) -> None:
        self.left -= 1
        self.failed = self.failed or error is not None


class _File:
    """A followed file: everything before `position` is shipped, `dropped` bytes are still to be reported."""

    def __init__(self, path: Path, who: Mapping[str, str], app_of: Callable[[Mapping[str, Any]], str] | None) -> None:
        self.path, self._who, self._app_of = path, who, app_of
        self.flight: _Flight | None = None
        self.ended = self.gone = False
        self.size = self.position = self.dropped = 0
        self._note = path.with_name(f"{path.name}.shipped")
        with suppress(OSError, ValueError):  # nothing of it was shipped, or a crash cut the note short
            self.position, self.dropped = map(int, self._note.read_text().split())

    @property
    def unread(self) -> int:
        return self.size - (self.flight.end if self.flight else self.position)

    @property
    def done(self) -> bool:
        waits = not self.gone and (self.unread or self.dropped)
        return self.ended and self.flight is None and not waits

    def who_wrote(self, line: Mapping[str, Any]) -> Mapping[str, str]:
        return self._who if self._app_of is None else {**self._who, "app": self._app_of(line)}

    def measure(self) -> None:
        """Reads its size; raises OSError if it does not exist."""
        self.size, self.gone = self.path.stat().st_size, False
        if self.unread < 0:  # another process has truncated it
            self._move(0)

    def next_lines(self) -> list[bytes]:
        with self.path.open("rb") as file:
            file.seek(self.position)
            return whole(file.read(LINE_BYTES), ended=self.ended)[:LINES]

    def land(self) -> None:
        """Records what the broker has confirmed; failed lines are read again."""
        if self.flight and not self.flight.left:
            flight, self.flight = self.flight, None
            if flight.failed:
                self.dropped += flight.alone
            else:
                self.dropped -= flight.reported
                self._move(flight.end)

    def empty(self, lost: int) -> None:
        """Truncates it; `lost` bytes of it were not read."""
        self.dropped += lost
        if self.flight:
            self.flight.alone += self.flight.end - self.position
        self._move(0)
        os.truncate(self.path, 0)
        self.size = 0

    def _move(self, position: int) -> None:
        self.position = position
        if self.flight:
            self.flight.end = position  # its lines are no longer in the file
        with suppress(OSError):  # a full disk: an older note only means duplicate lines
            new = self._note.with_name(f"{self._note.name}.new")
            new.write_text(f"{position} {self.dropped}")
            new.replace(self._note)
