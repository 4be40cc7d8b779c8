"""A schema registry as the source of schema ids, where `SCHEMA_REGISTRY_URL` names one.

A process asks it only for a schema that was never announced in the platform's schema topic, so none of them needs it to
run or to start again. The client is confluent-kafka's. Subjects are record names, because a contract is in several
topics; each subject is FULL_TRANSITIVE. Records are framed by our own codec, which registers nothing by itself.
"""

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import urlsplit

from pydantic import SecretStr, field_validator
from pydantic_settings import SettingsConfigDict

from lozenge.contracts.display_text import shortened
from lozenge.contracts.schemas import Schema, assign_ids, locked, newest, settled
from lozenge.errors import ConfigError, LozengeError, RegistryUnavailable, SchemaError, first_line
from lozenge.kafka import schema_topic
from lozenge.kafka.settings import KafkaSettings
from lozenge.process.env_settings import FromEnvironment
from lozenge.process.logging import logger

if TYPE_CHECKING:
    from confluent_kafka.schema_registry import SchemaRegistryClient
    from confluent_kafka.schema_registry.error import SchemaRegistryError

COMPATIBILITY = "FULL_TRANSITIVE"
CALL_SECONDS = 10.0
RETRIES, RETRY_MS = 2, 1_000
UNAUTHORIZED, FORBIDDEN, NOT_FOUND, CONFLICT, UNPROCESSABLE = 401, 403, 404, 409, 422
READ_ONLY = 42205
"""The registry's own code for a subject, or a whole registry, in a mode that takes no schema."""
BASE = "SCHEMA_REGISTRY_URL is the base of its Confluent API, for Apicurio https://HOST/apis/ccompat/v7"
LONGEST_REASON = 300
T = TypeVar("T")


class SchemaRegistrySettings(FromEnvironment):
    """A schema registry with the Confluent API. The names are those of its client."""

    model_config = SettingsConfigDict(env_prefix="SCHEMA_REGISTRY_")

    url: str = ""
    """The base of the registry's API; empty for none, then schema ids come from the packaged lock file."""

    basic_auth_user_info: SecretStr = SecretStr("")
    """`user:password`."""

    ssl_ca_location: str = ""
    """A PEM file of certificate authorities."""

    @field_validator("url")
    @classmethod
    def _is_http(cls, url: str) -> str:
        if url and not (url.startswith(("http://", "https://")) and urlsplit(url).hostname):
            raise ValueError("is no http or https URL, as https://HOST/apis/ccompat/v7")
        return url


class SchemaRegistry:
    """A registry with the Confluent API. Every method raises RegistryUnavailable, or ConfigError for wrong settings."""

    def __init__(self, settings: SchemaRegistrySettings) -> None:
        self._settings = settings

    @property
    def url(self) -> str:
        """Where it is, without a user and password that the address may have."""
        return re.sub(r"//[^/,]*@", "//", self._settings.url)

    def register(self, schemas: Iterable[Schema]) -> list[Schema]:
        """`schemas`, in the order of their versions, with the ids that the registry has for them.

        One that is there already changes nothing, and needs no right to write. Raises SchemaError if the registry
        refuses one, because it is incompatible with those of its subject.
        """
        return [self._registered(schema) for schema in sorted(schemas, key=lambda s: (s.name, s.version))]

    def _registered(self, schema: Schema) -> Schema:
        try:
            from confluent_kafka.schema_registry import Schema as RegistrySchema
            from confluent_kafka.schema_registry import record_subject_name_strategy
        except ImportError as error:
            raise ConfigError(
                f"registering {schema.name} v{schema.version} at {self.url}: no client is installed ({error.name})",
                hint="run `lozenge schemas register` once; or install lozenge[registry] here",
            ) from error
        subject = str(record_subject_name_strategy(None, schema.record_name))
        body = RegistrySchema(schema.text, "AVRO")
        found = self._asked(schema, lambda: self._client.lookup_schema(subject, body).schema_id)
        if found is None:
            self._asked(schema, lambda: self._client.set_compatibility(subject, COMPATIBILITY))
            found = self._asked(schema, lambda: self._client.register_schema(subject, body))
        if found is None:
            raise SchemaError(
                f"registering {schema.name} v{schema.version} at {self.url}: the registry does not know the request",
                hint=BASE,
            )
        return schema.with_id(found)

    def _asked(self, schema: Schema, call: Callable[[], T]) -> T | None:
        """The answer; None for what is not there."""
        from confluent_kafka.schema_registry.error import SchemaRegistryError

        doing = f"registering {schema.name} v{schema.version} at {self.url}"
        try:
            return call()
        except LozengeError:
            raise
        except SchemaRegistryError as error:
            if error.http_status_code == NOT_FOUND:
                return None
            raise _refusal(doing, schema, error) from error
        except (ValueError, TypeError, KeyError, AttributeError) as error:  # of reading a page as JSON, or other JSON
            raise SchemaError(
                f"{doing}: what answers there is no registry: its answer is another one ({first_line(error)})",
                hint=f"{BASE}. A page to sign in, or a proxy, may answer instead of it",
            ) from error
        except Exception as error:  # of the HTTP library of the client, which is its own matter
            raise RegistryUnavailable(
                f"{doing}: no answer ({str(error) or type(error).__name__})",
                hint="SCHEMA_REGISTRY_SSL_CA_LOCATION names the PEM file of the authority that signed its certificate"
                if "certificate" in str(error).lower()
                else "start the registry, or unset SCHEMA_REGISTRY_URL: then ids come from the lock file. Processes "
                "whose schemas are announced already need no registry",
            ) from error

    @cached_property
    def _client(self) -> "SchemaRegistryClient":
        from confluent_kafka.schema_registry import SchemaRegistryClient

        settings, secret = self._settings, self._settings.basic_auth_user_info.get_secret_value()
        conf: dict[str, object] = {"url": settings.url, "timeout": CALL_SECONDS}
        conf |= {"max.retries": RETRIES, "retries.wait.ms": RETRY_MS}
        conf |= {"basic.auth.user.info": secret} if secret else {}
        conf |= {"ssl.ca.location": settings.ssl_ca_location} if settings.ssl_ca_location else {}
        try:
            return SchemaRegistryClient(conf)
        except (ValueError, OSError) as error:
            raise ConfigError(
                f"asking the registry at {self.url}: {first_line(error)}",
                hint="SCHEMA_REGISTRY_BASIC_AUTH_USER_INFO is user:password, and SCHEMA_REGISTRY_URL then has neither; "
                "SCHEMA_REGISTRY_SSL_CA_LOCATION is a PEM file",
            ) from error


def _refusal(doing: str, schema: Schema, error: "SchemaRegistryError") -> SchemaError | RegistryUnavailable:
    """The error for a person, of an answer that is an error."""
    status, own = error.http_status_code, error.error_message if error.error_code != error.UNKNOWN else None
    reason = shortened(" ".join(str(own).split()), LONGEST_REASON) if own else "no error of a registry"
    if error.error_code == READ_ONLY:
        return SchemaError(
            f"{doing}: the registry refuses it: {reason}",
            hint="its mode takes no new schema: set the mode of the registry or of the subject to READWRITE",
        )
    if status in (CONFLICT, UNPROCESSABLE):
        return SchemaError(
            f"{doing}: the registry refuses it: {reason}",
            hint=f"another schema was registered under {schema.record_name}; remove that subject, or use a registry of "
            "the platform's own",
        )
    return RegistryUnavailable(
        f"{doing}: it answers with status {status}: {reason}",
        hint="check SCHEMA_REGISTRY_BASIC_AUTH_USER_INFO, and its right to write subjects and their compatibility"
        if status in (UNAUTHORIZED, FORBIDDEN)
        else "check the registry, its own log, and a proxy before it; a new start asks again",
    )


def settle_ids(kafka: KafkaSettings, written: Collection[str], events: Sequence[Schema] = ()) -> list[Schema]:
    """Settles under which ids this process writes the contracts `written` and reads all; call it before either.

    `events` are the schemas of the streams whose events it writes. Returns all schemas that were announced before.

    Ids that were announced once stay. Others come from the registry if there is one, else from the lock file, and are
    announced. Raises SchemaError, BrokerUnavailable, RegistryUnavailable, ConfigError.
    """
    announced, ours = schema_topic.announced(kafka, events), [*locked(), *events]
    own = _own(announced, ours)
    _adopt(own)
    known = {(schema.name, schema.version) for schema in own}
    new = [*map(newest, written), *map(settled, events)]
    new = [schema for schema in new if (schema.name, schema.version) not in known]
    if not new:
        return announced
    settings = SchemaRegistrySettings.load()
    if settings.url:
        registry, names = SchemaRegistry(settings), {schema.name for schema in new}
        registered = registry.register(s for s in ours if s.name in names)
        _refuse_conflicts(registry.url, registered, announced, ours)
        _adopt(registered)
        schema_topic.announce(kafka, _not_in(announced, registered))
    else:
        schema_topic.announce(kafka, new)
    return announced


def register_all(kafka: KafkaSettings, registry: SchemaRegistry, events: Sequence[Schema]) -> list[Schema]:
    """Registers every packaged version and `events`, and announces the ids; raises as `settle_ids` does."""
    announced, ours = schema_topic.announced(kafka, events), [*locked(), *events]
    registered = registry.register(ours)
    _refuse_conflicts(registry.url, registered, announced, ours)
    schema_topic.announce(kafka, _not_in(announced, registered))
    return registered


def ids_in_use(announced: Iterable[Schema], events: Sequence[Schema]) -> list[Schema]:
    """Every packaged version, and `events`, with the ids that their records have, or would have, on this platform."""
    ours = [*locked(), *events]
    ids = {(schema.name, schema.version): schema.id for schema in _own(announced, ours)}
    return [schema.with_id(ids.get((schema.name, schema.version), schema.id)) for schema in ours]


def _not_in(announced: Iterable[Schema], registered: Iterable[Schema]) -> list[Schema]:
    known = {schema.id for schema in announced}
    return [schema for schema in registered if schema.id not in known]


def _own(announced: Iterable[Schema], ours: Sequence[Schema]) -> list[Schema]:
    """The announced schemas without those that call themselves a version of ours and are another one.

    Their records can be read under their own ids, and nothing is written under these. Raises SchemaError if such a
    schema has an id of the lock file, because an id must not mean two.
    """
    known, own = {(s.name, s.version): s for s in ours}, []
    ids = {schema.id for schema in ours}
    for schema in announced:
        same = known.get((schema.name, schema.version))
        if same is None or same.definition == schema.definition:
            own.append(schema)
        elif schema.id in ids:
            raise SchemaError(
                f"reading {schema.name} v{schema.version}: the announced schema is not the one of this release",
                hint="a published schema never changes; a change of it is a new version",
            )
        else:
            logger().warning(
                f"the schema announced as {schema.name} v{schema.version} is not the one of this release; its id is "
                "used for reading only",
                id=schema.id,
            )
    return own


def _adopt(schemas: Iterable[Schema]) -> None:
    """This process uses their ids."""
    assign_ids({schema.identity: schema.id for schema in schemas})


def _refuse_conflicts(
    url: str, registered: Iterable[Schema], announced: Iterable[Schema], ours: Sequence[Schema]
) -> None:
    """A reader knows a schema by its id alone, so no id may mean two, and no version may change its id."""
    by_id = {schema.id: schema for schema in announced}
    by_version = {(schema.name, schema.version): schema.id for schema in _own(announced, ours)}
    problems = []
    for schema in registered:
        version, taken = f"{schema.name} v{schema.version}", by_id.get(schema.id)
        present = by_version.get((schema.name, schema.version), schema.id)
        if present != schema.id:
            problems.append(f"records of {version} have id {present}, but the registry gave it {schema.id}")
        elif taken is not None and (taken.name, taken.version) != (schema.name, schema.version):
            problems.append(f"the registry gave {version} id {schema.id}, which {taken.name} v{taken.version} has")
    if problems:
        raise SchemaError(
            f"taking schema ids from {url}: {len(problems)} in use otherwise",
            problems=problems,
            hint="import the platform's ids into an empty registry: `lozenge schemas export`",
        )
