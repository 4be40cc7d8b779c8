"""The file sources, sinks and tables that are deployed, read-only."""

from lozenge.apps import file_source_app
from lozenge.kafka.compacted_topic import FollowedRows
from lozenge.kafka.settings import KafkaSettings
from lozenge.protocol.app_requests import APPS
from lozenge.protocol.declared_releases import AnyState
from lozenge.protocol.source_requests import SOURCES


class DeclaredApps:
    """Reads once what is deployed, and then follows it; used by one thread."""

    def __init__(self, kafka: KafkaSettings) -> None:
        """Raises BrokerUnavailable."""
        control = kafka.topics.control
        self._sources = FollowedRows(kafka, control.sources, SOURCES.decode)
        try:
            self._apps = FollowedRows(kafka, control.apps, APPS.decode)
        except BaseException:
            self._sources.close()
            raise

    def poll(self) -> dict[str, AnyState]:
        """What is deployed now, by app; nothing waits. A broker that is away brings nothing."""
        found: dict[str, AnyState] = {
            file_source_app(state.name): state for state in SOURCES.deployed(self._sources.take())
        }
        return found | {state.name: state for state in APPS.deployed(self._apps.take())}

    def close(self) -> None:
        """Closes the connections."""
        self._sources.close()
        self._apps.close()
