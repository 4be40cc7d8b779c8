"""Reads which release of a stream is requested and in force, once or as it becomes."""

import time
from collections.abc import Mapping
from contextlib import suppress

from lozenge.errors import BrokerUnavailable
from lozenge.kafka.compacted_topic import CompactedTopic
from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.topic_admin import partitions
from lozenge.protocol.stream_releases import StreamRow, StreamState, decode, state_of, states_of

LOOK_SECONDS = 10.0
"""How often somebody looks for a topic that there was not: the first deploy of a stream may create it."""


class _FollowedRows:
    """The rows of the control topic, from its present end on; used by one thread. A context manager closes it."""

    def __init__(self, kafka: KafkaSettings) -> None:
        """Reads the topic to its present end; raises BrokerUnavailable."""
        self._kafka = kafka
        self._rows: CompactedTopic[StreamRow] | None = None
        self._look_at = 0.0
        self._begin()

    def close(self) -> None:
        """Closes the connection."""
        if self._rows is not None:
            self._rows.close()

    def _known(self) -> Mapping[str, StreamRow]:
        return self._rows.rows if self._rows is not None else {}

    def _take(self) -> None:
        """Takes what has come, without waiting. A broker that is away brings nothing."""
        if self._rows is None and time.monotonic() >= self._look_at:
            with suppress(BrokerUnavailable):
                self._begin()
        elif self._rows is not None:
            list(self._rows.poll(0.0))

    def _begin(self) -> None:
        self._look_at = time.monotonic() + LOOK_SECONDS
        topic = self._kafka.topics.control.streams
        if topic not in partitions(self._kafka):
            return
        rows = CompactedTopic(self._kafka, topic, decode)
        try:
            for _ in rows.catch_up():
                pass
        except BaseException:
            rows.close()
            raise
        self._rows = rows


class FollowedStream(_FollowedRows):
    """What is requested of one stream, and what became of it."""

    def __init__(self, kafka: KafkaSettings, stream: str) -> None:
        """Reads the topic to its present end; raises BrokerUnavailable."""
        self._stream = stream
        super().__init__(kafka)

    @property
    def state(self) -> StreamState:
        """All that is known by now."""
        return state_of(self._stream, self._known())

    def poll(self) -> StreamState:
        """Takes what has come, without waiting, and returns the state. A broker that is away brings nothing."""
        self._take()
        return self.state


class FollowedStreams(_FollowedRows):
    """The same of every stream."""

    def poll(self) -> list[StreamState]:
        """Takes what has come, without waiting, and returns the states by stream."""
        self._take()
        return states_of(self._known())


def present_state(kafka: KafkaSettings, stream: str) -> StreamState:
    """The state of one stream as it is now; raises BrokerUnavailable."""
    followed = FollowedStream(kafka, stream)
    followed.close()
    return followed.state
