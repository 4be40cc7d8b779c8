"""Which columns of a table of the platform deployed detectors read."""

from lozenge.kafka.settings import KafkaSettings
from lozenge_deploy.operations.lists.list_usage import deployed_tables


def readers_of(kafka: KafkaSettings, table: str) -> dict[str, str]:
    """The columns, as Spark DDL, that each deployed detector reads of a table. Raises BrokerUnavailable."""
    return {
        detector: ", ".join(found)
        for detector, tables in deployed_tables(kafka).items()
        if (found := [each.columns for each in tables.values() if each.table == table])
    }
