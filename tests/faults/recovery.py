"""When the platform is back: all that had been sent by a moment has gone through every stage, offsets committed."""

import time
from collections.abc import Callable, Iterable, Mapping

from confluent_kafka import ConsumerGroupTopicPartitions, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from lozenge.contracts.record import Partition
from lozenge.contracts.topics import Topics
from lozenge.errors import BrokerUnavailable
from lozenge.kafka.settings import KafkaSettings
from tests.faults.file_flow import FileFailed, FileFlow, is_copied
from tests.faults.scene import Scene
from tests.streams import RAW_JSON

TOPICS = Topics()

CALL_SECONDS = 10.0
LOOK_SECONDS = 0.3
QUIET_SECONDS = 10.0


class NotBack(Exception):
    """The platform did not come back in time, or never will."""


class Recovery:
    """Asks the broker, directly, how far every stage is."""

    def __init__(self, scene: Scene, kafka: KafkaSettings, quiet: float = QUIET_SECONDS) -> None:
        self._scene, self._kafka, self._quiet = scene, kafka, quiet
        self._admin = AdminClient(kafka.client())
        self._replaced: list[AdminClient] = []  # a client that ends with a request under way may crash the process

    def wait(self, seconds: float) -> None:
        """Until all of it runs, and each stage has done what the stage before had done by now; raises NotBack."""
        deadline = time.monotonic() + seconds
        flow = self._scene.flow
        self._until(self._scene.complete, "all of it runs", deadline)
        self._until(lambda: not flow.requested, "the broker takes what is sent", deadline)
        sent = flow.sent
        self._until(lambda: flow.acknowledged >= sent, "the broker acknowledges what was sent", deadline)
        if self._scene.files:
            self._copied(self._scene.files, deadline)
        self._passed("upstream", [TOPICS.prefixed(RAW_JSON)], deadline)
        for detector in self._scene.detectors:
            self._passed(detector, [TOPICS.events("auth")], deadline)
        self._passed("downstream", [TOPICS.detector(detector).alerts for detector in self._scene.detectors], deadline)
        self._pass_sinks(deadline)

    def settle(self, seconds: float) -> None:
        """Until for a while nothing more comes, neither notifications nor webhooks; raises NotBack."""
        self.wait(seconds)
        deadline = time.monotonic() + seconds
        seen, since = self._outputs(), time.monotonic()
        while time.monotonic() < since + self._quiet:
            if time.monotonic() > deadline:
                raise NotBack(f"after {seconds:.0f} s there are still notifications or webhooks to come")
            time.sleep(LOOK_SECONDS)
            if (now := self._outputs()) != seen:
                seen, since = now, time.monotonic()
        self._pass_sinks(deadline)

    def _copied(self, files: FileFlow, deadline: float) -> None:
        self._until(lambda: not files.requested, "the files are written", deadline)
        written = [*files.written]
        try:
            self._until(lambda: is_copied(self._kafka, written), f"{len(written)} files are copied", deadline)
        except FileFailed as error:
            raise NotBack(str(error)) from error

    def _pass_sinks(self, deadline: float) -> None:
        running = self._scene.sinks.running
        inputs: dict[str, list[str]] = {}

        def known() -> bool:
            inputs.update(running.inputs(self._kafka))
            return True

        if running.apps:
            self._until(known, "the broker has its topics", deadline)
        for sink in running.apps:
            self._passed(sink, inputs[sink], deadline)

    def _outputs(self) -> object:
        return self._ends([TOPICS.notifications]), self._scene.receiver.count()

    def _passed(self, group: str, inputs: Iterable[str], deadline: float) -> None:
        ends: Mapping[Partition, int] = {}

        def known() -> bool:
            nonlocal ends
            ends = self._ends(inputs)
            return True

        def behind() -> int:
            done = self._committed(group, ends)
            return sum(max(0, end - max(0, done[partition])) for partition, end in ends.items())

        self._until(known, "the broker answers", deadline)
        self._until(lambda: behind() == 0, f"{group} has done what there was to do", deadline)

    def _until(self, condition: Callable[[], bool], what: str, deadline: float) -> None:
        """A broker that does not answer, as it may for a while, has not said yes."""
        why = ""
        while time.monotonic() < deadline:
            try:
                if condition():
                    return
            except (KafkaException, BrokerUnavailable, TimeoutError) as error:
                why = str(error)
                self._replaced.append(self._admin)
                self._admin = AdminClient(self._kafka.client())  # the old one asks the leader of before, for ever
            if failed := self._scene.failed():
                raise NotBack(f"given up by the supervisor: {failed}")
            self._scene.revive()
            time.sleep(LOOK_SECONDS)
        raise NotBack(f"waited in vain until {what} {why}".strip())

    def _committed(self, group: str, partitions: Iterable[Partition]) -> Mapping[Partition, int]:
        request = ConsumerGroupTopicPartitions(group, [TopicPartition(*partition) for partition in partitions])
        answer = self._admin.list_consumer_group_offsets([request])[group].result(CALL_SECONDS)
        return {(p.topic, p.partition): p.offset for p in answer.topic_partitions}

    def _ends(self, names: Iterable[str]) -> dict[Partition, int]:
        partitions = [TopicPartition(name, number) for name in names for number in range(TOPICS.partitions)]
        latest = OffsetSpec.latest()  # type: ignore[no-untyped-call]
        asked = self._admin.list_offsets(dict.fromkeys(partitions, latest))
        return {(p.topic, p.partition): future.result(CALL_SECONDS).offset for p, future in asked.items()}
