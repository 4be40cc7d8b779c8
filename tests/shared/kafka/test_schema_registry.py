"""Where a schema registry is, from the environment, and what its answers mean to a person."""

import json
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from lozenge.contracts import schemas as contracts
from lozenge.contracts.schemas import Schema, locked, newest, packaged
from lozenge.errors import ConfigError, LozengeError, RegistryUnavailable, SchemaError
from lozenge.kafka import schema_registry, schema_topic
from lozenge.kafka.schema_registry import SchemaRegistry, SchemaRegistrySettings, ids_in_use, settle_ids
from lozenge.kafka.settings import KafkaSettings
from tests.http_server import QuietHandler, serving
from tests.streams import AUTH

EVENTS = [AUTH.schema_by_text]
KAFKA = KafkaSettings(bootstrap="127.0.0.1:1")
PAGE = b"<!DOCTYPE html><html><head><title>Sign in</title></head></html>"


@pytest.mark.parametrize("url", ["", "http://registry:8080/apis/ccompat/v7", "https://registry"])
def test_a_registry_is_an_address_or_none(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    monkeypatch.setenv("SCHEMA_REGISTRY_URL", url)
    assert SchemaRegistrySettings.load().url == url


@pytest.mark.parametrize("url", ["registry:8080", "nonsense", "http://", "file:///tmp/schemas"])
def test_an_address_that_is_no_url_is_refused(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    monkeypatch.setenv("SCHEMA_REGISTRY_URL", url)
    with pytest.raises(ConfigError, match="SCHEMA_REGISTRY_URL: is no http or https URL"):
        SchemaRegistrySettings.load()


def answering(status: int, body: bytes) -> AbstractContextManager[str]:
    """A server that answers every request so; its address."""

    class Handler(QuietHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_PUT = do_POST

    return serving(Handler)


def own(code: int, message: str) -> bytes:
    """An error as a registry writes it."""
    return json.dumps({"error_code": code, "message": message}).encode()


def refusal(url: str, **given: str) -> LozengeError:
    with pytest.raises(LozengeError) as refused:
        SchemaRegistry(SchemaRegistrySettings.model_validate({"url": url, **given})).register([newest("alert")])
    return refused.value


@pytest.mark.parametrize(
    ("status", "body", "kind", "message", "hint"),
    [
        (200, PAGE, SchemaError, "what answers there is no registry", "is the base of its Confluent API"),
        (200, b"[]", SchemaError, "what answers there is no registry", "is the base of its Confluent API"),
        (200, b"{}", SchemaError, "does not know the request", "is the base of its Confluent API"),
        (404, PAGE, SchemaError, "does not know the request", "is the base of its Confluent API"),
        (401, PAGE, RegistryUnavailable, "it answers with status 401: no error of a registry", "BASIC_AUTH_USER_INFO"),
        (401, b"", RegistryUnavailable, "it answers with status 401: no error of a registry", "BASIC_AUTH_USER_INFO"),
        (403, own(40301, "no"), RegistryUnavailable, "it answers with status 403: no", "BASIC_AUTH_USER_INFO"),
        (422, own(42201, "Invalid Avro"), SchemaError, "refuses it: Invalid Avro", "remove that subject"),
        (409, own(409, "incompatible"), SchemaError, "refuses it: incompatible", "remove that subject"),
        (422, own(42205, "is in read-only mode"), SchemaError, "is in read-only mode", "READWRITE"),
        (503, PAGE, RegistryUnavailable, "it answers with status 503: no error of a registry", "a proxy before it"),
        (500, own(50001, "x" * 9_000), RegistryUnavailable, "it answers with status 500: xxx", "a new start asks"),
    ],
)
def test_an_answer_that_is_an_error_says_what_to_do(
    status: int, body: bytes, kind: type[LozengeError], message: str, hint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schema_registry, "RETRY_MS", 0)
    with answering(status, body) as url:
        error = refusal(url)
    assert isinstance(error, kind)
    assert f"registering alert v2 at {url}: " in str(error)
    assert message in str(error)
    assert hint in error.hint
    assert len(str(error)) < 500
    assert "<html>" not in str(error)


def test_an_address_with_a_password_is_shown_without_it() -> None:
    with answering(401, b"") as url:
        error = refusal(url.replace("//", "//reader:secret@"))
    assert url in str(error)
    assert "secret" not in f"{error} {error.hint}"


def test_settings_that_no_request_can_be_made_with_are_no_matter_of_the_registry(tmp_path: Path) -> None:
    wrong = tmp_path / "ca.pem"
    wrong.write_text("no certificate")
    for given in (
        {"basic_auth_user_info": "only-a-key"},
        {"ssl_ca_location": str(tmp_path / "none.pem")},
        {"ssl_ca_location": str(wrong)},
    ):
        assert isinstance(refusal("https://127.0.0.1:1", **given), ConfigError)
    both = refusal("http://reader:secret@127.0.0.1:1", basic_auth_user_info="reader:secret")
    assert isinstance(both, ConfigError)
    assert "secret" not in f"{both} {both.hint}"


def another(id: int, version: int = 1) -> Schema:
    """A schema of another team's, that calls itself a version of our events and can be read as one."""
    definition = AUTH.event_schema.definition
    definition["fields"].append({"name": "theirs", "type": ["null", "string"], "default": None})
    return Schema(id, AUTH.schema_name, version, json.dumps(definition))


@pytest.fixture
def topic(monkeypatch: pytest.MonkeyPatch) -> list[Schema]:
    """What the schema topic has announced, and this process announces."""
    rows: list[Schema] = []

    def announce(_: KafkaSettings, schemas: Sequence[Schema]) -> None:
        rows.extend(schemas)

    monkeypatch.setattr(contracts, "_assigned", {})
    monkeypatch.delenv("SCHEMA_REGISTRY_URL", raising=False)
    monkeypatch.setattr(schema_topic, "announced", lambda *_: sorted(rows, key=lambda schema: schema.id))
    monkeypatch.setattr(schema_topic, "announce", announce)
    return rows


def test_a_schema_that_calls_itself_a_version_of_ours_changes_no_id_and_stops_nobody(topic: list[Schema]) -> None:
    topic += [another(500), *(schema for schema in locked() if schema.name == "alert")]
    settle_ids(KAFKA, (), EVENTS)
    assert {schema.id for schema in packaged()} == {schema.id for schema in locked()}
    assert AUTH.event_schema in topic, "ours is announced next to it"
    assert [schema.id for schema in ids_in_use(topic, EVENTS)] == [schema.id for schema in (*locked(), *EVENTS)]
    topic.append(another(501, version=99))
    settle_ids(KAFKA, (), EVENTS)


def test_a_schema_under_an_id_of_ours_that_is_another_one_is_refused(topic: list[Schema]) -> None:
    topic.append(another(AUTH.event_schema.id))
    with pytest.raises(
        SchemaError, match=r"reading event\.auth v1: the announced schema is not the one of this release"
    ):
        settle_ids(KAFKA, (), EVENTS)
