"""What an erasure is about: whom, in which platform, and what it may do."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from lozenge.errors import UsageError
from lozenge.kafka.settings import KafkaSettings
from lozenge.process.waiting import wait_until
from lozenge.protocol.data_subject import DataSubject
from lozenge.streams.project import Streams

POLL_SECONDS = 0.5


@dataclass(frozen=True)
class Plan:
    """An erasure of `subject`. A `dry_run` changes nothing.

    `project` declares the caches, `archive` is the folder of the tables. It waits `seconds` at most for each place, and
    says by `report` what it waits for.
    """

    kafka: KafkaSettings
    streams: Streams
    subject: DataSubject
    project: Path
    archive: Path
    seconds: float
    dry_run: bool
    report: Callable[[str], None] = lambda said: None

    def reaches(self, behind: Callable[[], int], what: str) -> int:
        """Waits until nothing is `behind`, and returns what still is; a dry run looks at what there is."""
        if self.dry_run or not (first := behind()):
            return 0
        self.report(f"waiting for {what}: {first} records")
        wait_until(lambda: not behind(), self.seconds, poll=POLL_SECONDS)
        return behind()


def subject_of(streams: Streams, key: str, value: str) -> DataSubject:
    """The subject; raises UsageError for a key that no stream has, and for a value that is no id."""
    keys = sorted({name for stream in streams.definitions for name in stream.keys})
    if key not in keys:
        raise UsageError(
            f"erasing a {key}: no stream has such a key", hint=f"the keys of streams are {', '.join(keys)}"
        )
    return DataSubject.checked(key, value)
