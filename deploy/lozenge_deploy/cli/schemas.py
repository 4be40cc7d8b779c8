"""`lozenge schemas`: the schemas of the platform's records, for a schema registry and consumers that use one."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lozenge.errors import UsageError
from lozenge_deploy.cli.options import OUTPUT
from lozenge_deploy.cli.printing.output import OutputFormat, say, show
from lozenge_deploy.cli.printing.terminal import print_json

if TYPE_CHECKING:
    from lozenge.contracts.schemas import Schema

app = typer.Typer(help="Schemas of the platform's records, in a schema registry.", no_args_is_help=True)


@app.command()
def export(
    apicurio: Annotated[
        Path | None, typer.Option("--apicurio", help="Write Apicurio's import archive to this file instead.")
    ] = None,
) -> None:
    """Print subject, version, id and text of every schema, as the import mode of a schema registry takes them."""
    from lozenge.kafka.schema_registry import ids_in_use
    from lozenge.kafka.schema_topic import announced
    from lozenge.kafka.settings import KafkaSettings
    from lozenge.streams.project import Streams
    from lozenge_deploy.operations.schema_export import import_requests, write_apicurio_archive

    events = [each.schema_by_text for each in Streams.load().definitions]
    schemas = ids_in_use(announced(KafkaSettings.load(), events), events)
    if apicurio is None:
        print_json(import_requests(schemas), indent=2)
        return
    try:
        write_apicurio_archive(schemas, apicurio)
    except OSError as error:
        raise UsageError(f"writing {apicurio}: {error.strerror}", hint="name a file in a folder that exists") from error
    say(f"{len(schemas)} schemas in {apicurio}", {"file": str(apicurio), "schemas": len(schemas)}, OutputFormat.TABLE)


@app.command()
def register(output: OUTPUT = OutputFormat.TABLE) -> None:
    """Register every schema at SCHEMA_REGISTRY_URL, and announce the ids that it gives to the platform."""
    from lozenge.kafka.schema_registry import SchemaRegistry, SchemaRegistrySettings, register_all
    from lozenge.kafka.settings import KafkaSettings
    from lozenge.kafka.topic_admin import ensure_topics
    from lozenge.process.env_settings import load
    from lozenge.streams.project import Streams

    kafka, registry = load(KafkaSettings, SchemaRegistrySettings)
    if not registry.url:
        raise UsageError("registering schemas: SCHEMA_REGISTRY_URL is not set", hint="set it to the registry's address")
    ensure_topics(kafka, kafka.topics.control.contracts())
    events = [each.schema_by_text for each in Streams.load().definitions]
    show([_row(schema) for schema in register_all(kafka, SchemaRegistry(registry), events)], output)


def _row(schema: "Schema") -> dict[str, object]:
    return {"subject": schema.record_name, "version": schema.version, "id": schema.id}
