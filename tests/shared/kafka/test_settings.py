"""Kafka settings in the form that each client takes; secrets stay secret."""

from pathlib import Path

import pytest
from pydantic import SecretStr, ValidationError

from lozenge.contracts.topics import Topics
from lozenge.errors import ConfigError
from lozenge.kafka.settings import PARTITIONS_VARIABLE, PREFIX_VARIABLE, KafkaSettings

SECURE = KafkaSettings(
    bootstrap="broker:9094",
    security="SASL_SSL",
    username="lozenge",
    password=SecretStr('pa"ss\\word'),
    ca=Path("/etc/ca.pem"),
)


def test_every_client_gets_the_same_connection() -> None:
    assert SECURE.client()["sasl.password"] == 'pa"ss\\word'
    assert SECURE.client()["ssl.ca.location"] == "/etc/ca.pem"
    assert SECURE.kafka_python()["sasl_mechanism"] == "SCRAM-SHA-512"
    options = SECURE.spark()
    assert options["kafka.security.protocol"] == "SASL_SSL"
    assert options["kafka.ssl.truststore.location"] == "/etc/ca.pem"
    assert options["kafka.sasl.jaas.config"].startswith("org.apache.kafka.common.security.scram.ScramLoginModule")
    assert 'password="pa\\"ss\\\\word";' in options["kafka.sasl.jaas.config"]


def test_the_password_is_not_in_what_gets_printed() -> None:
    assert "ss\\word" not in repr(SECURE) + str(SECURE)


def test_plain_connections_carry_no_credentials() -> None:
    settings = KafkaSettings()
    assert not [name for name in settings.client() | settings.spark() if "sasl" in name or "ssl" in name]


def test_overrides_are_librdkafka_names() -> None:
    assert KafkaSettings().client(group_id="g", enable_auto_commit=False)["enable.auto.commit"] is False


def test_values_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOZENGE_KAFKA_BOOTSTRAP", "elsewhere:1")
    assert KafkaSettings().bootstrap == "elsewhere:1"
    monkeypatch.setenv("LOZENGE_KAFKA_SECURITY", "NONE")
    with pytest.raises(ValidationError, match="security"):
        KafkaSettings()


def test_a_platform_has_the_prefix_and_the_partitions_that_its_environment_declares(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert KafkaSettings.load().topics == Topics(prefix="", partitions=4)
    monkeypatch.setenv("LOZENGE_TOPIC_PREFIX", "team-a.")
    monkeypatch.setenv("LOZENGE_PARTITIONS", "64")
    assert KafkaSettings.load().topics == Topics(prefix="team-a.", partitions=64)
    assert KafkaSettings.load(topic_prefix="b.", partitions=2).topics == Topics(prefix="b.", partitions=2)


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        *(("LOZENGE_PARTITIONS", value) for value in ("0", "-4", "many", "1025", "", "²", "4.5")),
        *(("LOZENGE_TOPIC_PREFIX", value) for value in ("a/b", "a b", "ä", "p" * 65)),
    ],
)
def test_a_wrong_platform_is_a_configuration_error(monkeypatch: pytest.MonkeyPatch, variable: str, value: str) -> None:
    monkeypatch.setenv(variable, value)
    with pytest.raises(ConfigError, match=f"{variable}: ") as refused:
        KafkaSettings.load()
    assert refused.value.exit_code == 2


def test_groups_and_transactional_ids_carry_the_prefix() -> None:
    platform = KafkaSettings(topic_prefix="team-a.")
    config = platform.client(group_id="upstream", transactional_id="lozenge-agent", client_id="one")
    assert config["group.id"] == "team-a.upstream"
    assert config["transactional.id"] == "team-a.lozenge-agent"
    assert config["client.id"] == "one"


def test_a_child_process_is_on_the_same_platform(monkeypatch: pytest.MonkeyPatch) -> None:
    parent = KafkaSettings(bootstrap="elsewhere:1", topic_prefix="team-a.", partitions=7)
    for name, value in parent.variables.items():
        monkeypatch.setenv(name, value)
    child = KafkaSettings.load()
    assert (child.bootstrap, child.topics) == ("elsewhere:1", parent.topics)


def test_a_broker_of_this_machine_has_the_platform_of_the_environment_and_no_security(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in {PREFIX_VARIABLE: "a.", PARTITIONS_VARIABLE: "3", "LOZENGE_KAFKA_SECURITY": "SASL_SSL"}.items():
        monkeypatch.setenv(name, value)
    local = KafkaSettings.local("127.0.0.1:1")
    assert (local.bootstrap, local.security, local.topics) == ("127.0.0.1:1", "PLAINTEXT", Topics("a.", 3))
