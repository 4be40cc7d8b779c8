"""Who a running job is on the bus: its group, its writer and its topics."""

from dataclasses import dataclass

from lozenge.contracts import ids, topics
from lozenge.contracts.topics import Topic
from lozenge.detector.loader import LoadedDetector
from lozenge.job.settings import JobSettings


@dataclass(frozen=True)
class Identity:
    """Names derived from detector and release.

    The live job is the consumer group named after the detector. Any other (dev, shadow, test) is
    `<name>@<release>` with topics of its own, so it can never fence, advance or speak for the live one.
    """

    detector: str
    release: str
    live: bool
    key: str

    @classmethod
    def of(cls, loaded: LoadedDetector, job: JobSettings) -> "Identity":
        """The identity of `loaded` under the start order `job`."""
        return cls(loaded.name, job.release, job.live, loaded.declaration.key)

    @property
    def app(self) -> str:
        """Consumer group, transactional id and name in metrics and logs."""
        return self.detector if self.live else f"{self.detector}@{self.release}"

    @property
    def input(self) -> str:
        """The canonical topic that is keyed as the detector needs it."""
        return topics.events_by(self.key)

    @property
    def alerts(self) -> str:
        """Where alerts go; the notifier reads only the live form."""
        return topics.alerts(self.detector) if self.live else topics.shadow_alerts(self.detector, self.release)

    @property
    def dead_letters(self) -> str:
        """Where records go that the detector's code cannot judge."""
        return topics.dead_letters(self._topic_name)

    @property
    def state(self) -> str:
        """The compacted topic of its state."""
        return topics.state(self._topic_name)

    @property
    def candidates(self) -> str:
        """Where an aggregate in Real-Time Mode hands its rows from Spark to Python."""
        return topics.candidates(self._topic_name)

    @property
    def coverage(self) -> str | None:
        """Where it says which events it judges; nobody asks that of one that is not live."""
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
