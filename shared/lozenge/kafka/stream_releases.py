"""Reads which release of a stream is requested and in force, once or as it becomes."""

from lozenge.kafka.compacted_topic import FollowedRows
from lozenge.kafka.settings import KafkaSettings
from lozenge.protocol.stream_releases import StreamRow, StreamState, decode, state_of, states_of


class _FollowedReleases(FollowedRows[StreamRow]):
    """The rows of the control topic of streams."""

    def __init__(self, kafka: KafkaSettings) -> None:
        """Reads the topic to its present end; raises BrokerUnavailable."""
        super().__init__(kafka, kafka.topics.control.streams, decode)


class FollowedStream(_FollowedReleases):
    """What is requested of one stream, and what became of it."""

    def __init__(self, kafka: KafkaSettings, stream: str) -> None:
        """Reads the topic to its present end; raises BrokerUnavailable."""
        self._stream = stream
        super().__init__(kafka)

    @property
    def state(self) -> StreamState:
        """All that is known by now."""
        return state_of(self._stream, self.rows)

    def poll(self) -> StreamState:
        """Takes what has come, without waiting, and returns the state. A broker that is away brings nothing."""
        return state_of(self._stream, self.take())


class FollowedStreams(_FollowedReleases):
    """The same of every stream."""

    def poll(self) -> list[StreamState]:
        """Takes what has come, without waiting, and returns the states by stream."""
        return states_of(self.take())


def present_state(kafka: KafkaSettings, stream: str) -> StreamState:
    """The state of one stream as it is now; raises BrokerUnavailable."""
    followed = FollowedStream(kafka, stream)
    followed.close()
    return followed.state
