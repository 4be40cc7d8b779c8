"""Reads which release of a stream is requested and in force, once or as it becomes."""

import time
from contextlib import suppress

from lozenge.errors import BrokerUnavailable
from lozenge.kafka.compacted_topic import CompactedTopic
from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.topic_admin import partitions
from lozenge.protocol.stream_releases import StreamRow, StreamState, decode, state_of

LOOK_SECONDS = 10.0
"""How often somebody looks for a topic that there was not: the first deploy of a stream may create it."""


class FollowedStream:
    """What is requested of one stream, and what became of it; used by one thread. A context manager closes it."""

    def __init__(self, kafka: KafkaSettings, stream: str) -> None:
        """Reads the topic to its present end; raises BrokerUnavailable."""
        self._kafka, self._stream = kafka, stream
        self._rows: CompactedTopic[StreamRow] | None = None
        self._look_at = 0.0
        self._begin()

    @property
    def state(self) -> StreamState:
        """All that is known by now."""
        return state_of(self._stream, self._rows.rows if self._rows is not None else {})

    def poll(self) -> StreamState:
        """Takes what has come, without waiting, and returns the state. A broker that is away brings nothing."""
        if self._rows is None and time.monotonic() >= self._look_at:
            with suppress(BrokerUnavailable):
                self._begin()
        elif self._rows is not None:
            list(self._rows.poll(0.0))
        return self.state

    def close(self) -> None:
        """Closes the connection."""
        if self._rows is not None:
            self._rows.close()

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


def present_state(kafka: KafkaSettings, stream: str) -> StreamState:
    """The state of one stream as it is now; raises BrokerUnavailable."""
    followed = FollowedStream(kafka, stream)
    followed.close()
    return followed.state
