"""Schema ids come from a real registry where one is named, and no running process needs it."""

import json
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer
from confluent_kafka.serialization import MessageField, SerializationContext

from lozenge.contracts import schemas as contracts
from lozenge.contracts.avro import Codec
from lozenge.contracts.schemas import Schema, locked, newest, packaged
from lozenge.errors import RegistryUnavailable, SchemaError
from lozenge.kafka.schema_registry import SchemaRegistry, SchemaRegistrySettings, ids_in_use, register_all, settle_ids
from lozenge.kafka.schema_topic import announce, announced
from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.topic_admin import ensure_topics
from lozenge_deploy.cli.__main__ import main
from lozenge_deploy.local import topic_bootstrap
from lozenge_deploy.local.ports import free_port
from lozenge_deploy.operations.schema_export import write_apicurio_archive
from tests.brokers import Broker
from tests.deploy.command import ROOT
from tests.integration.registry.apicurio import NotFetched, apicurio, import_archive
from tests.streams import STREAMS, every_topic

EVENTS = [stream.schema_by_text for stream in STREAMS.definitions]
IMPORTED = [schema.with_id(1000 + number) for number, schema in enumerate([*locked(), *EVENTS], 2)]
"""The ids of another platform's topics, which no lock file gives."""


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SchemaRegistrySettings]:
    """A registry into which schemas were imported with the ids of `IMPORTED`."""
    folder = tmp_path_factory.mktemp("apicurio")
    write_apicurio_archive(IMPORTED, folder / "schemas.zip")
    try:
        with apicurio(folder) as address:
            import_archive(address, folder / "schemas.zip")
            yield SchemaRegistrySettings(url=f"{address}/apis/ccompat/v7")
    except NotFetched as error:
        pytest.skip(f"Apicurio Registry 3.0.9 cannot be fetched from Maven Central: {error}")


@pytest.fixture
def kafka(broker: Broker) -> KafkaSettings:
    """A platform of the test's own, with the topic of schemas alone."""
    platform = KafkaSettings(bootstrap=broker.bootstrap, topic_prefix=f"t{uuid.uuid4().hex[:8]}.")
    schemas = platform.topics.control.schemas
    ensure_topics(platform, [topic for topic in every_topic(platform.topics) if topic.name == schemas])
    return platform


@pytest.fixture(autouse=True)
def process(kafka: KafkaSettings, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process on a platform without announced schemas, that was given no ids and no registry."""
    monkeypatch.setattr(contracts, "_assigned", {})
    monkeypatch.delenv("SCHEMA_REGISTRY_URL", raising=False)
    for name, value in kafka.variables.items():
        monkeypatch.setenv(name, value)


def ids(found: list[Schema]) -> dict[tuple[str, int], int]:
    return {(schema.name, schema.version): schema.id for schema in found}


def alert() -> dict[str, Any]:
    """The least alert that the schema takes."""
    fields = newest("alert").definition["fields"]
    return {field["name"]: _least(field["type"]) for field in fields if "default" not in field}


def _least(kind: Any) -> Any:
    match kind:
        case {"type": "record", "fields": fields}:
            return {field["name"]: _least(field["type"]) for field in fields if "default" not in field}
        case {"type": "enum", "symbols": [first, *_]}:
            return first
        case {"type": "map"}:
            return {}
        case {"type": "array"}:
            return []
        case {"logicalType": "timestamp-micros"} | {"type": "long"} | "long" | "int":
            return 0
        case [first, *_]:
            return _least(first)
        case "double":
            return 0.0
        case "boolean":
            return False
        case "null":
            return None
        case "bytes":
            return b""
    return "x"


def test_without_a_registry_ids_come_from_the_lock_file(kafka: KafkaSettings) -> None:
    settle_ids(kafka, ["alert"])
    assert ids(announced(kafka)) == {("alert", 2): ids(list(locked()))["alert", 2]}


def test_a_stock_consumer_reads_our_records_under_the_registrys_id(
    kafka: KafkaSettings, registry: SchemaRegistrySettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SCHEMA_REGISTRY_URL", registry.url)
    settle_ids(kafka, ["alert"])
    assert newest("alert").id == ids(IMPORTED)["alert", newest("alert").version]
    value = Codec.of("alert").encode(alert())
    read = AvroDeserializer(SchemaRegistryClient({"url": registry.url}))
    found: Any = read(value, SerializationContext("alerts", MessageField.VALUE))
    assert found["alert_id"] == alert()["alert_id"]
    assert Codec.of("alert").decode(value) == found


def test_a_process_whose_schemas_are_announced_needs_no_registry(
    kafka: KafkaSettings, registry: SchemaRegistrySettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    register_all(kafka, SchemaRegistry(registry), EVENTS)
    monkeypatch.setenv("SCHEMA_REGISTRY_URL", f"http://127.0.0.1:{free_port(0)}")
    settle_ids(kafka, ["notification", "feedback"])
    assert newest("feedback").id == ids(IMPORTED)["feedback", newest("feedback").version]


def test_the_bootstrap_of_topics_registers_every_schema(
    kafka: KafkaSettings, registry: SchemaRegistrySettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SCHEMA_REGISTRY_URL", registry.url)
    monkeypatch.setattr("sys.argv", ["topic_bootstrap", str(ROOT / "detectors")])
    assert topic_bootstrap.main() == 0
    assert announced(kafka) == IMPORTED


def test_a_process_that_only_reads_needs_no_registry_and_no_topic(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SCHEMA_REGISTRY_URL", f"http://127.0.0.1:{free_port(0)}")
    settle_ids(KafkaSettings(bootstrap=broker.bootstrap, topic_prefix=f"t{uuid.uuid4().hex[:8]}."), ())
    assert list(packaged()) == list(locked())


def test_an_unreachable_registry_is_named_with_what_to_do(
    kafka: KafkaSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"http://127.0.0.1:{free_port(0)}"
    monkeypatch.setenv("SCHEMA_REGISTRY_URL", url)
    with pytest.raises(RegistryUnavailable, match=f"at {url}: no answer") as refused:
        settle_ids(kafka, ["alert"])
    assert "unset SCHEMA_REGISTRY_URL" in refused.value.hint
    assert announced(kafka) == []


def test_a_url_that_is_no_registry_is_refused(kafka: KafkaSettings, registry: SchemaRegistrySettings) -> None:
    elsewhere = SchemaRegistrySettings(url=registry.url.replace("ccompat/v7", "nothing"))
    with pytest.raises(SchemaError, match="does not know the request"):
        register_all(kafka, SchemaRegistry(elsewhere), EVENTS)


def test_a_platform_keeps_the_ids_with_which_it_began(kafka: KafkaSettings, registry: SchemaRegistrySettings) -> None:
    announce(kafka, [newest("alert")])
    with pytest.raises(SchemaError, match="records of alert v2 have id 7, but the registry gave it 1007") as refused:
        register_all(kafka, SchemaRegistry(registry), EVENTS)
    assert "lozenge schemas export" in refused.value.hint


def test_an_id_that_means_another_schema_is_refused(kafka: KafkaSettings, registry: SchemaRegistrySettings) -> None:
    announce(kafka, [Schema(1002, "former", 3, newest("alert").text)])
    with pytest.raises(SchemaError, match="the registry gave alert v1 id 1002, which former v3 has"):
        register_all(kafka, SchemaRegistry(registry), EVENTS)


def _version(version: int, *fields: str) -> Schema:
    """A version of a contract of this test, whose `fields` have a default unless they end with "!"."""
    made = [
        {"name": field.rstrip("!"), "type": "string"} | ({} if field.endswith("!") else {"default": ""})
        for field in fields
    ]
    text = json.dumps({"type": "record", "name": "Probe", "namespace": "lozenge.test", "fields": made})
    return Schema(0, "probe", version, text)


def test_every_version_must_be_compatible_with_all_before_it(registry: SchemaRegistrySettings) -> None:
    found = SchemaRegistry(registry).register([_version(2, "id!", "note"), _version(1, "id!")])
    assert [schema.version for schema in found] == [1, 2]
    assert SchemaRegistry(registry).register([_version(1, "id!")]) == found[:1], "what is there changes nothing"
    with pytest.raises(SchemaError, match=r"registering probe v3 at .*: the registry refuses it") as refused:
        SchemaRegistry(registry).register([_version(3, "id!", "note", "more!")])
    assert "lozenge.test.Probe" in refused.value.hint
    client = SchemaRegistryClient({"url": registry.url})
    assert client.get_compatibility("lozenge.test.Probe") == "FULL_TRANSITIVE"


def test_the_command_registers_and_exports_with_the_ids_in_use(
    kafka: KafkaSettings,
    registry: SchemaRegistrySettings,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    def command(*arguments: str) -> object:
        monkeypatch.setattr("sys.argv", ["lozenge", "schemas", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        return ended.value.code

    monkeypatch.setenv("SCHEMA_REGISTRY_URL", registry.url)
    assert command("register", "-o", "json") == 0
    registered = json.loads(capsys.readouterr().out)
    assert {"subject": "lozenge.Alert", "version": 1, "id": 1002} in registered
    assert command("export") == 0
    exported = json.loads(capsys.readouterr().out)
    assert [(row["subject"], row["version"], row["id"]) for row in exported] == [
        (schema.record_name, schema.version, schema.id) for schema in IMPORTED
    ]
    assert [row["schema"] for row in exported] == [schema.text for schema in IMPORTED]
    assert command("export", "--apicurio", str(tmp_path / "none" / "x.zip")) == 2
    assert ids_in_use(announced(kafka), EVENTS) == IMPORTED
