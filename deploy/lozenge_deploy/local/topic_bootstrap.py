"""`python -m lozenge_deploy.local.topic_bootstrap [FOLDER]`: creates the topics of a platform, registers its schemas.

They are those of the platform itself and of every detector below FOLDER ("detectors"), at `LOZENGE_KAFKA_*`. Topics
that exist stay as they are. With `SCHEMA_REGISTRY_URL` every schema is registered, and its id announced.
"""

import argparse
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from lozenge.contracts.topics import Topic, Topics, platform_table, reference_list
from lozenge.detector.tables.declared_table import lists_of, platform_tables_of
from lozenge.errors import LozengeError
from lozenge.kafka.schema_registry import SchemaRegistry, SchemaRegistrySettings, register_all
from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.topic_admin import ensure_topics
from lozenge.process.env_settings import load
from lozenge.streams.definition import StreamDefinition
from lozenge.streams.project import Streams
from lozenge_deploy.releases.detector_catalog import DetectorFolder, detectors_in, topics_of


def all_topics(topics: Topics, streams: Sequence[StreamDefinition], detectors: Sequence[DetectorFolder]) -> list[Topic]:
    """Every topic of a platform with these streams and detectors."""
    own = [topic for detector in detectors for topic in topics.detector(detector.name).contracts()]
    declared = [detector.declaration.tables for detector in detectors]
    lists = {name for tables in declared for name in lists_of(tables)}
    tables = {name for tables in declared for name in platform_tables_of(tables)}
    return [
        *topics.platform_topics(),
        *topics_of(topics, streams, detectors),
        *own,
        *map(partial(reference_list, topics), sorted(lists)),
        *map(partial(platform_table, topics), sorted(tables)),
    ]


def main() -> int:
    """Creates the topics and registers the schemas; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m lozenge_deploy.local.topic_bootstrap", description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=Path("detectors"))
    try:
        folder = parser.parse_args().folder
        kafka, registry = load(KafkaSettings, SchemaRegistrySettings)
        streams = Streams.load(folder).definitions
        wanted = all_topics(kafka.topics, streams, detectors_in(folder))
        ensure_topics(kafka, wanted)
        registered = (
            register_all(kafka, SchemaRegistry(registry), [each.schema_by_text for each in streams])
            if registry.url
            else []
        )
    except LozengeError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    print(f"{len(wanted)} topics exist")
    if registered:
        print(f"{len(registered)} schemas are registered at {registry.url}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
