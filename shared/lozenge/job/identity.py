"""The names under which a job reads and writes: its group, its transactional id and its topics."""

from dataclasses import dataclass

from lozenge.contracts import ids, topics
from lozenge.contracts.topics import Topic
from lozenge.detector.loader import LoadedDetector
from lozenge.job.settings import JobSettings


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

    @classmethod
    def of(cls, loaded: LoadedDetector, job: JobSettings) -> "Identity":
        """The identity of `loaded`, started with the settings `job`."""
        return cls(loaded.name, job.release, job.live, loaded.declaration.key)

    @property
    def app(self) -> str:
        """Consumer group, transactional id, and name in metrics and logs."""
        return self.detector if self.live else f"{self.detector}@{self.release}"

    @property
    def input(self) -> str:
        """The canonical topic with the detector's key."""
        return topics.events_by(self.key)

    @property
    def alerts(self) -> str:
        """The topic of alerts; the notifier reads only the live one."""
        return topics.alerts(self.detector) if self.live else topics.shadow_alerts(self.detector, self.release)

    @property
    def dead_letters(self) -> str:
        """The topic of records that the detector cannot process."""
        return topics.dead_letters(self._topic_name)

    @property
    def state(self) -> str:
        """The compacted topic of its state."""
        return topics.state(self._topic_name)

    @property
    def candidates(self) -> str:
        """The topic through which an aggregate in Real-Time Mode passes rows from Spark to Python."""
        return topics.candidates(self._topic_name)

    @property
    def coverage(self) -> str | None:
        """The topic of its coverage; only a live job writes one."""
        return topics.coverage(self.detector) if self.live else None

    def alert_id(self, entity: str, dedup_key: str) -> str:
        """The id of the alert about `entity` with this key: the same after any replay, restart or release."""
        return ids.alert_id(self.detector, self.key, entity, dedup_key)

    def topics(self) -> list[Topic]:
        """The topics it writes, with their contracts."""
        if self.live:
            return topics.detector_topics(self.detector)
        return topics.shadow_topics(self.detector, self.release)

    @property
    def _topic_name(self) -> str:
        return self.detector if self.live else topics.shadow_name(self.detector, self.release)
