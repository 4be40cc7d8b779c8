"""The releases of all detectors, kept in Kafka for every host that runs them.

One compacted topic: `<detector>/r<N>` is a release, `lozenge/<digest>` the library's wheel, once for
all releases that were built against it. One that is larger than a record is several records (`record_parts`).
So a host needs the broker and uv to run any release, and no folder.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path

from lozenge.contracts.record import Record
from lozenge.errors import BrokerUnavailable, Fenced, UsageError
from lozenge.kafka.compacted_topic import read_latest
from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.topic_admin import ensure_topics, partitions
from lozenge.kafka.writers import TransactionalWriter
from lozenge.process.retries import retry
from lozenge.process.waiting import wait_until
from lozenge_deploy.releases.build import LIBRARY, Parts, Wheel
from lozenge_deploy.releases.environments import environment
from lozenge_deploy.releases.record_parts import is_of_parts, joined, split
from lozenge_deploy.releases.release import Built, Release

ATTEMPTS = 20
VISIBLE_SECONDS = 30.0
"""Within this time readers see a release that is committed."""


def environment_for(release: Release, releases: "Releases") -> Path:
    """The Python that runs `release`, made from what is kept of it; raises as `environment` does."""
    library = releases.library(release.library)
    return environment(Parts(release.detector, release.wheel, release.lock, library, release.stream, release.python))


class Releases:
    """The releases of all detectors. Every call reads the topic; raises BrokerUnavailable."""

    def __init__(self, kafka: KafkaSettings) -> None:
        self._kafka = kafka

    def add(self, built: Built, *, by: str) -> Release:
        """The release of `built`, made by `by`; an existing one with the same contents.

        The numbers of a detector are consecutive, also with concurrent callers. Returns once every reader sees it.
        Raises BrokerUnavailable.
        """
        ensure_topics(self._kafka, self._kafka.topics.control.contracts())
        # fenced: another process adds a release; the jitter keeps two from fencing each other again and again
        return retry(
            lambda: self._add(built, by),
            lambda error: isinstance(error, Fenced),
            seconds=0,
            attempts=ATTEMPTS,
            pause=0.1,
            jitter=1.0,
        )

    def of(self, detector: str) -> list[Release]:
        """Every release of `detector`, in order; none if it has none."""
        return _in_order(self._records(f"{detector}/").values())

    def get(self, detector: str, name: str) -> Release:
        """The release "r7"; raises UsageError with the existing ones."""
        found = {release.name: release for release in self.of(detector)}
        if name not in found:
            raise UsageError(
                f"looking for release {name} of {detector}: releases: {', '.join(found) or 'none'}",
                hint="name one of those" if found else "nothing of this name has been released yet",
            )
        return found[name]

    def named(self, names: Mapping[str, str]) -> dict[str, Release]:
        """The releases of these `names` by detector, by one reading; without those that are not kept."""
        keys = {detector: f"{detector}/{name}" for detector, name in names.items()}
        kept = self._records(*keys.values())
        return {detector: Release.model_validate_json(kept[key]) for detector, key in keys.items() if key in kept}

    def library(self, digest: str) -> Wheel:
        """The library's wheel that a release was built against; raises UsageError if it is not kept."""
        key = _library_key(digest)
        if (value := self._records(key).get(key)) is None:
            raise UsageError(
                f"looking for the library {digest}: {self._kafka.topics.control.releases} does not have it",
                hint="release the detector again",
            )
        return Wheel.model_validate_json(value)

    def _add(self, built: Built, by: str) -> Release:
        # One writer for all detectors: its claim ends whatever another has begun, so that what is read
        # after it is all there is. An open transaction of a writer of its own would hide what comes after.
        writer = TransactionalWriter(self._kafka, "lozenge-releases")
        writer.fence()
        parts = built.parts
        key = _library_key(parts.library.digest)
        kept = self._records(f"{parts.detector}/", key)
        records = [] if kept.pop(key, None) else self._record(key, parts.library.model_dump_json())
        earlier = _in_order(kept.values())
        for release in earlier:
            if release.digest == parts.digest:
                return release
        release = built.numbered(earlier[-1].number + 1 if earlier else 1, by=by)
        key = f"{release.detector}/{release.name}"
        records += self._record(key, release.model_dump_json())
        writer.write(records)
        # the broker answers a commit a moment before readers see it
        if not wait_until(lambda: key in self._records(key), VISIBLE_SECONDS):
            topic = self._kafka.topics.control.releases
            raise BrokerUnavailable(
                f"adding {key}: it is written, and no reader sees it after {VISIBLE_SECONDS:g} s",
                hint=f"a transaction may be open in {topic}; then run the same command again",
            )
        return release

    def _records(self, *prefixes: str) -> dict[str, bytes]:
        """The newest value of every key that starts with one of `prefixes`."""
        if self._kafka.topics.control.releases not in partitions(self._kafka):
            return {}
        found = read_latest(
            self._kafka,
            self._kafka.topics.control.releases,
            check=check_release,
            wanted=lambda key: key.decode(errors="replace").startswith(prefixes),
        )
        return joined({stored.key.decode(): stored.value for stored in found})

    def _record(self, key: str, text: str) -> list[Record]:
        topic = self._kafka.topics.control.releases
        return [Record(topic, 0, each.encode(), value) for each, value in split(key, text.encode()).items()]


def check_release(key: bytes, value: bytes) -> None:
    """Raises for a record that is neither a library's wheel, nor a release under its own key, nor a part of one."""
    if is_of_parts(key.decode(), value):
        return
    if key.decode().startswith(f"{LIBRARY}/"):
        Wheel.model_validate_json(value)
        return
    release = Release.model_validate_json(value)
    if key.decode() != f"{release.detector}/{release.name}":
        raise ValueError(f"its key is {key!r}, but it is {release.detector} {release.name}")


def _library_key(digest: str) -> str:
    return f"{LIBRARY}/{digest}"  # no detector can have this name


def _in_order(values: Iterable[bytes]) -> list[Release]:
    return sorted(map(Release.model_validate_json, values), key=lambda release: release.number)
