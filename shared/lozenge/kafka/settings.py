"""Where Kafka is and how to talk to it, as one typed object with a form for each client.

Refuses to do anything else: no produce, no consume, no admin. Values come from `LOZENGE_KAFKA_*`
environment variables; the password never appears in a repr, a log line or an error.
"""

from pathlib import Path
from typing import Literal

from pydantic import SecretStr
from pydantic_settings import SettingsConfigDict

from lozenge.process.env_settings import FromEnvironment

LOOPBACK = "127.0.0.1:9092"
Option = str | int | float | bool
"""The value of a client's configuration property."""


class KafkaSettings(FromEnvironment):
    """Connection to the cluster.

    `security` is the protocol of every client alike; the SASL fields matter only with SASL_*, `ca`
    (a PEM file) only with *SSL, where None means the system's certificate authorities.
    """

    model_config = SettingsConfigDict(env_prefix="LOZENGE_KAFKA_")

    bootstrap: str = LOOPBACK
    security: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"] = "PLAINTEXT"
    mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"] = "SCRAM-SHA-512"
    username: str = ""
    password: SecretStr = SecretStr("")
    ca: Path | None = None

    @property
    def sasl(self) -> bool:
        """Whether clients authenticate by user name and password."""
        return self.security.startswith("SASL")

    def client(self, **overrides: Option) -> dict[str, Option]:
        """Configuration of a confluent-kafka client; `overrides` are librdkafka's names with `_` for `.`."""
        config: dict[str, Option] = {
            "bootstrap.servers": self.bootstrap,
            "security.protocol": self.security,
            "log_level": 0,  # every failure reaches us as an error; librdkafka's own lines would only repeat it
            # A broker that stood still for long is told to be gone, and librdkafka then knows none at all. It has to
            # bootstrap anew; but as 2.16 forgets its coordinators then, and a transaction waits for ever, a
            # transactional producer must not: what it is asked fails after its time, and its process is started again.
            "metadata.recovery.strategy": "none" if "transactional_id" in overrides else "rebootstrap",
            "metadata.recovery.rebootstrap.trigger.ms": 10_000,
            "reconnect.backoff.max.ms": 2000,
        }
        if self.sasl:
            config["sasl.mechanism"] = self.mechanism
            config["sasl.username"] = self.username
            config["sasl.password"] = self.password.get_secret_value()
        if self.ca is not None:
            config["ssl.ca.location"] = str(self.ca)
        return config | {name.replace("_", "."): value for name, value in overrides.items()}

    def kafka_python(self) -> dict[str, object]:
        """Keyword arguments of a kafka-python client."""
        config: dict[str, object] = {"bootstrap_servers": self.bootstrap, "security_protocol": self.security}
        if self.sasl:
            config["sasl_mechanism"] = self.mechanism
            config["sasl_plain_username"] = self.username
            config["sasl_plain_password"] = self.password.get_secret_value()
        if self.ca is not None:
            config["ssl_cafile"] = str(self.ca)
        return config

    def java(self) -> dict[str, str]:
        """Configuration of a Java client."""
        config = {"bootstrap.servers": self.bootstrap, "security.protocol": self.security}
        if self.sasl:
            module = "plain.PlainLoginModule" if self.mechanism == "PLAIN" else "scram.ScramLoginModule"
            config["sasl.mechanism"] = self.mechanism
            config["sasl.jaas.config"] = (
                f"org.apache.kafka.common.security.{module} required "
                f"username={_jaas(self.username)} password={_jaas(self.password.get_secret_value())};"
            )
        if self.ca is not None:
            config["ssl.truststore.type"] = "PEM"
            config["ssl.truststore.location"] = str(self.ca)
        return config

    def spark(self) -> dict[str, str]:
        """Options of Spark's Kafka source and sink."""
        return {f"kafka.{name}": value for name, value in self.java().items()}


def _jaas(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
