"""The names under which a job reads and writes: its group, its transactional id and its topics."""

from dataclasses import dataclass

from lozenge.contracts import ids
from lozenge.contracts.topics import DetectorTopics, ShadowTopics, Topic, Topics
from lozenge.detector.loader import LoadedDetector
from lozenge.job.settings import JobSettings
from lozenge.streams.definition import StreamDefinition


@dataclass(frozen=True)
class Identity:
    """Names derived from detector and release.

    The live job is the consumer group named after the detector. Any other job (dev, shadow, test) is
    `<name>@<release>` with its own topics. So it can never fence the live job, move its offsets or publish for it.
    """

    detector: str
    release: str
    live: bool
    key: str
    topics: Topics
    stream: StreamDefinition

    @classmethod
    def of(cls, loaded: LoadedDetector, job: JobSettings, topics: Topics) -> "Identity":
        """The identity of `loaded`, started with the settings `job`, among the platform's `topics`."""
        return cls(loaded.name, job.release, job.live, loaded.key, topics, loaded.stream)

    @property
    def app(self) -> str:
        """Consumer group, transactional id, and name in metrics and logs."""
        return self.detector if self.live else f"{self.detector}@{self.release}"

    @property
    def input(self) -> str:
        """The topic of its events, by the detector's key."""
        return self.stream.events(self.topics, self.key)

    @property
    def key_column(self) -> str:
        """The event column that the input topic is keyed by."""
        return self.stream.column(self.key)

    @property
    def alerts(self) -> str:
        """The topic of alerts; the notifier reads only the live one."""
        return self._own.alerts

    @property
    def dead_letters(self) -> str:
        """The topic of records that the detector cannot process."""
        return self.topics.dead_letters(self._own.name)

    @property
    def state(self) -> str:
        """The compacted topic of its state."""
        return self._own.state

    @property
    def changelog(self) -> str:
        """The topic through which an aggregate in Real-Time Mode passes rows from Spark to Python."""
        return self._own.changelog

    @property
    def coverage(self) -> str | None:
        """The topic of its coverage; only a live job writes one."""
        return self.topics.detector(self.detector).coverage if self.live else None

    def alert_id(self, entity: str, dedup_key: str) -> str:
        """The id of the alert about `entity` with this key: the same after any replay, restart or release."""
        return ids.alert_id(self.detector, self.key, entity, dedup_key)

    def own_topics(self) -> list[Topic]:
        """The topics it writes, with their contracts."""
        return self._own.contracts()

    @property
    def _own(self) -> DetectorTopics | ShadowTopics:
        return self.topics.detector(self.detector) if self.live else self.topics.shadow(self.detector, self.release)
