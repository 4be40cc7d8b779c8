"""Whether everything that was sent has been processed: files by their positions, records by the lags of groups."""

import time
from collections.abc import Mapping, Sequence

from confluent_kafka import ConsumerGroupTopicPartitions, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from lozenge.contracts.record import Partition
from lozenge.kafka import topic_admin
from lozenge.kafka.settings import KafkaSettings
from lozenge.streams.definition import StreamDefinition
from lozenge_deploy.demo.running_extras import RunningExtras
from lozenge_deploy.releases.detector_catalog import DetectorFolder

QUIET_SECONDS = 3.0
_CALL_SECONDS = 10.0


class Drain:
    """The groups from first to last, each with its input topics; used by one thread."""

    def __init__(
        self,
        kafka: KafkaSettings,
        streams: Sequence[StreamDefinition],
        detectors: Sequence[DetectorFolder],
        extras: RunningExtras,
    ) -> None:
        self._kafka, self._sources = kafka, extras.sources
        self._topics = kafka.topics
        self._admin = AdminClient(kafka.client())
        self._partitions = topic_admin.partitions(kafka)
        # in the order of the flow: once a group has no lag, the next one gets no more input
        self._inputs: dict[str, Sequence[str]] = {
            **{stream.app: [*map(kafka.topics.prefixed, stream.raw_topics)] for stream in streams},
            **{d.name: [d.input(kafka.topics)] for d in detectors},
            "downstream": [kafka.topics.detector(d.name).alerts for d in detectors],
            **extras.sinks.inputs(kafka),
        }
        self._outputs = [kafka.topics.notifications, *self._inputs["downstream"]]
        self._seen: object = None
        self._since = 0.0

    def lags(self) -> dict[str, int]:
        """The groups that have a lag, with its offsets, and the sources of files with the number of those left."""
        files = self._sources.left(self._kafka)
        lags = {group: self._lag(group, inputs) for group, inputs in self._inputs.items()}
        return files | {group: lag for group, lag in lags.items() if lag}

    def settled(self, delivered: int) -> bool:
        """Whether neither the outputs nor `delivered` (the webhooks received) have changed for a while.

        Offsets do not show the notifier's outbox, nor a window that closes after its last event.
        """
        seen = (self._ends(self._outputs), delivered)
        if seen != self._seen:
            self._seen, self._since = seen, time.monotonic()
        return time.monotonic() - self._since >= QUIET_SECONDS

    def _lag(self, group: str, inputs: Sequence[str]) -> int:
        ends = self._ends(inputs)
        partitions = [TopicPartition(*partition) for partition in ends]
        group_id = self._topics.prefixed(group)
        requests = self._admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group_id, partitions)])
        try:
            committed = requests[group_id].result(_CALL_SECONDS).topic_partitions
        except KafkaException:  # its coordinator is still loading: no offset is known
            return sum(ends.values())
        return sum(ends[p.topic, p.partition] - max(0, p.offset) for p in committed)

    def _ends(self, names: Sequence[str]) -> Mapping[Partition, int]:
        partitions = [TopicPartition(name, number) for name in names for number in range(self._partitions[name])]
        latest = OffsetSpec.latest()  # type: ignore[no-untyped-call]
        requests = self._admin.list_offsets(dict.fromkeys(partitions, latest))
        return {(p.topic, p.partition): future.result(_CALL_SECONDS).offset for p, future in requests.items()}
