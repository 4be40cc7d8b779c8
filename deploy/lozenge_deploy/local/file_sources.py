"""The processes of the file sources that are deployed, on the platform of one machine."""

from lozenge.apps import file_source_app
from lozenge.kafka.compacted_topic import CompactedTopic
from lozenge.kafka.settings import KafkaSettings
from lozenge.protocol import source_requests
from lozenge.protocol.source_requests import SourceRow
from lozenge_deploy.local.upstream_replicas import instance_names


class DeployedSources:
    """Follows what is requested of file sources; used by one thread."""

    def __init__(self, kafka: KafkaSettings) -> None:
        self._rows: CompactedTopic[SourceRow] = CompactedTopic(
            kafka, kafka.topics.control.sources, source_requests.decode
        )
        list(self._rows.catch_up())

    def programs(self) -> dict[str, str]:
        """The source of each process that is to run, by the name of the process; nothing waits."""
        list(self._rows.poll(0.0))
        return {
            name: state.source
            for state in source_requests.deployed(self._rows.rows)
            if state.request is not None
            for name in instance_names(file_source_app(state.source), state.request.instances)
        }

    def close(self) -> None:
        """Closes the connection."""
        self._rows.close()
