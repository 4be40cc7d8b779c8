"""Making topics and holding them to their contracts."""

from collections.abc import Collection, Iterable

from confluent_kafka import KafkaError, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic, OffsetSpec

from lozenge.contracts.topics import Topic
from lozenge.errors import BrokerUnavailable, TopicError
from lozenge.kafka.settings import PARTITIONS_VARIABLE, KafkaSettings
from lozenge.process.retries import retry

DEADLINE_SECONDS = 10.0
LEADERS_SECONDS = 30.0


def partitions(kafka: KafkaSettings, *, timeout: float = DEADLINE_SECONDS) -> dict[str, int]:
    """Every topic of the cluster with its number of partitions; raises BrokerUnavailable."""
    try:
        listing = AdminClient(kafka.client()).list_topics(timeout=timeout)
    except KafkaException as error:
        raise BrokerUnavailable(
            f"listing topics: no Kafka broker answers at {kafka.bootstrap} ({error.args[0].str()})",
            hint="`lozenge up` starts one here, or point LOZENGE_KAFKA_BOOTSTRAP at a running broker",
        ) from error
    return {name: len(topic.partitions) for name, topic in listing.topics.items()}


def topic_id(kafka: KafkaSettings, topic: str) -> str:
    """The id that distinguishes a topic from a later one of its name, in hexadecimal; raises BrokerUnavailable."""
    found = topic_ids(kafka, [topic])
    if topic not in found:
        raise BrokerUnavailable(f"describing {topic}: there is no such topic", hint=f"create it at {kafka.bootstrap}")
    return found[topic]


def topic_ids(kafka: KafkaSettings, topics: Collection[str]) -> dict[str, str]:
    """The id of each of the `topics` that exist; raises BrokerUnavailable."""
    if not topics:
        return {}
    admin, ids = AdminClient(kafka.client()), dict[str, str]()  # it has to live until the answers are there
    for topic, future in admin.describe_topics(TopicCollection(list(topics)), request_timeout=DEADLINE_SECONDS).items():
        try:
            found = future.result().topic_id
        except KafkaException as error:
            if error.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
                continue
            raise BrokerUnavailable(
                f"describing {topic}: {error.args[0].str()}", hint=f"check the broker at {kafka.bootstrap}"
            ) from error
        halves = found.get_most_significant_bits(), found.get_least_significant_bits()
        ids[topic] = "".join(f"{half & (2**64 - 1):016x}" for half in halves)
    return ids


def ensure_topics(kafka: KafkaSettings, topics: Iterable[Topic], *, replication: int = 1) -> None:
    """Creates what is missing, waits until it can be used, and holds every topic to its contract.

    Safe to call at once from several processes.

    Raises BrokerUnavailable, or TopicError naming every topic whose partition count differs.
    """
    wanted = list(topics)
    existing = partitions(kafka)
    missing = [topic for topic in wanted if topic.name not in existing]
    admin = AdminClient(kafka.client())
    specs = [NewTopic(t.name, t.partitions, replication, config=dict(t.config)) for t in missing]
    created = admin.create_topics(specs, request_timeout=DEADLINE_SECONDS) if specs else {}
    for name, future in created.items():
        try:
            future.result()
        except KafkaException as error:
            if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                raise TopicError(
                    f"creating topic {name}: {error.args[0].str()}",
                    hint="let somebody with the right to create topics run "
                    "`python -m lozenge_deploy.local.topic_bootstrap`",
                ) from error
    _wait_for_leaders(admin, missing, kafka)
    check_topics(kafka, wanted)


def _wait_for_leaders(admin: AdminClient, created: list[Topic], kafka: KafkaSettings) -> None:
    """A topic is listed a moment before its partitions can be read or written."""
    latest = OffsetSpec.latest()  # type: ignore[no-untyped-call]
    waiting = {TopicPartition(t.name, p): latest for t in created for p in range(t.partitions)}

    def ask() -> None:
        for asked, future in admin.list_offsets(waiting, request_timeout=DEADLINE_SECONDS).items():
            try:
                future.result()
            except KafkaException as error:
                raise BrokerUnavailable(
                    f"creating topic {asked.topic}: partition {asked.partition} has no leader ({error.args[0].str()})",
                    hint=f"check the broker at {kafka.bootstrap}",
                ) from error
            del waiting[asked]

    if waiting:
        retry(ask, lambda error: isinstance(error, BrokerUnavailable), seconds=LEADERS_SECONDS, pause=0.1)


def configurations(kafka: KafkaSettings, topics: Collection[str]) -> dict[str, dict[str, str]]:
    """The configuration of each of the `topics`, as the broker uses it; raises BrokerUnavailable."""
    admin = AdminClient(kafka.client())
    asked = [ConfigResource(ConfigResource.Type.TOPIC, topic) for topic in topics]
    found = admin.describe_configs(asked, request_timeout=DEADLINE_SECONDS) if asked else {}
    try:
        return {r.name: {name: entry.value for name, entry in f.result().items()} for r, f in found.items()}
    except KafkaException as error:
        raise BrokerUnavailable(
            f"reading the configuration of {len(asked)} topics: {error.args[0].str()}",
            hint=f"check the broker at {kafka.bootstrap}",
        ) from error


def configure(kafka: KafkaSettings, topic: str, name: str, value: str) -> None:
    """Sets one entry of the configuration of a topic, and waits for the answer; raises TopicError."""
    entry = ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic, incremental_configs=[entry])
    admin = AdminClient(kafka.client())
    for future in admin.incremental_alter_configs([resource], request_timeout=DEADLINE_SECONDS).values():
        try:
            future.result()
        except KafkaException as error:
            raise TopicError(
                f"configuring {topic}: {name}={value}: {error.args[0].str()}",
                hint="let somebody with the right to configure topics set it",
            ) from error


def check_topics(kafka: KafkaSettings, topics: Iterable[Topic]) -> None:
    """Raises TopicError naming every topic that is missing or breaks its partition contract."""
    existing = partitions(kafka)
    wrong = [
        f"{t.name} has {existing[t.name]} partitions, its contract says {t.partitions}"
        if t.name in existing
        else f"{t.name} does not exist"
        for t in topics
        if existing.get(t.name) != t.partitions
    ]
    if wrong:
        raise TopicError(
            f"checking topics at {kafka.bootstrap}: {'; '.join(wrong)}",
            hint="create missing ones by `python -m lozenge_deploy.local.topic_bootstrap`. A platform keeps the number "
            f"of partitions with which it began: set {PARTITIONS_VARIABLE} to it for all processes",
        )
