"""Which reference lists there are, and which deployed detectors use them."""

from collections.abc import Callable, Iterable, Mapping

from lozenge.contracts.topic_patterns import name_of_list
from lozenge.detector.tables.declared_table import Table, lists_of
from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.topic_admin import partitions
from lozenge_deploy.control.deployments_view import follow_specs
from lozenge_deploy.control.records import Goal
from lozenge_deploy.releases.release_store import Releases


def names(kafka: KafkaSettings) -> list[str]:
    """The names of the lists of this platform, in order; raises BrokerUnavailable."""
    return sorted(name for topic in partitions(kafka) if (name := name_of_list(kafka.topics, topic)) is not None)


def users(
    kafka: KafkaSettings, names_of: Callable[[Mapping[str, Table]], Iterable[str]] = lists_of
) -> Mapping[str, list[str]]:
    """The detectors whose deployed release declares a list, by list, or what else `names_of` finds in its tables.

    Raises BrokerUnavailable.
    """
    found: dict[str, list[str]] = {}
    for detector, tables in deployed_tables(kafka).items():
        for name in names_of(tables):
            found.setdefault(name, []).append(detector)
    return found


def deployed_tables(kafka: KafkaSettings) -> Mapping[str, Mapping[str, Table]]:
    """The tables that the deployed release of each detector declares, by detector; raises BrokerUnavailable."""
    if kafka.topics.control.deployments not in partitions(kafka):
        return {}
    with follow_specs(kafka) as specs:
        deployed = {s.detector: s.release for s in specs.rows.values() if s.goal is not Goal.RETIRED}
    return {name: release.declaration.tables for name, release in sorted(Releases(kafka).named(deployed).items())}
