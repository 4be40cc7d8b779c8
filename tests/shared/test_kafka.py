"""Kafka settings in the form that each client takes; secrets stay secret."""

from pathlib import Path

import pytest
from pydantic import SecretStr, ValidationError

from lozenge.kafka.settings import KafkaSettings

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
