"""Where Kafka is and which topics on it are the platform's, as one value with a form for each client.

It neither produces nor consumes nor administers. Values come from `LOZENGE_KAFKA_*`, `LOZENGE_TOPIC_PREFIX` and
`LOZENGE_PARTITIONS`; the password never appears in a repr, a log line or an error.
"""

import logging
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, SecretStr
from pydantic_settings import SettingsConfigDict

from lozenge.contracts.topics import MOST_PARTITIONS, PREFIX_PATTERN, Topics
from lozenge.process.env_settings import FromEnvironment

LOOPBACK = "127.0.0.1:9092"
PREFIX_VARIABLE = "LOZENGE_TOPIC_PREFIX"
PARTITIONS_VARIABLE = "LOZENGE_PARTITIONS"
SILENT = logging.Logger("librdkafka", logging.CRITICAL + 1)
"""For a transactional producer: librdkafka prints FATAL, whatever the log level, when a newer one fences it.

That is the ordinary end of a producer, and its calls raise what has happened.
"""
Option = str | int | float | bool
"""The value of a client's configuration property."""

_SHARED_NAMES = {"group_id", "transactional_id"}
"""Settings that name something which all clients of the broker share."""


class KafkaSettings(FromEnvironment):
    """A platform on a cluster: the connection, and the `topics` there. Every process reads these."""

    model_config = SettingsConfigDict(env_prefix="LOZENGE_KAFKA_")

    bootstrap: str = LOOPBACK
    """One or more brokers, as `host:port,host:port`."""

    security: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"] = "PLAINTEXT"
    """The protocol of every client."""

    mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"] = "SCRAM-SHA-512"
    """How clients authenticate with `SASL_*`."""

    username: str = ""
    """With `SASL_*`."""

    password: SecretStr = SecretStr("")
    """With `SASL_*`. It appears in no log line and no error."""

    ca: Path | None = None
    """With `*SSL`: a PEM file of certificate authorities; the system's unless set."""

    topic_prefix: Annotated[str, Field(validation_alias=PREFIX_VARIABLE, pattern=f"^{PREFIX_PATTERN}$")] = ""
    """Begins the name of every topic, consumer group and transactional id. Equal in every process of a platform."""

    partitions: Annotated[int, Field(validation_alias=PARTITIONS_VARIABLE, ge=1, le=MOST_PARTITIONS)] = 4
    """Partitions of raw and canonical topics, and of what is keyed as they are. Equal in every process of a
    platform."""

    @classmethod
    def local(cls, bootstrap: str) -> Self:
        """This process's platform on a broker of this machine, which has no security. Raises ConfigError."""
        return cls.load(bootstrap=bootstrap, security="PLAINTEXT", ca=None)

    @property
    def topics(self) -> Topics:
        """The platform's topics."""
        return Topics(self.topic_prefix, self.partitions)

    @property
    def variables(self) -> dict[str, str]:
        """The environment of a child process on the same platform; all of it but security, which it inherits."""
        return {
            "LOZENGE_KAFKA_BOOTSTRAP": self.bootstrap,
            PREFIX_VARIABLE: self.topic_prefix,
            PARTITIONS_VARIABLE: str(self.partitions),
        }

    @property
    def sasl(self) -> bool:
        """Whether clients authenticate by user name and password."""
        return self.security.startswith("SASL")

    def client(self, **overrides: Option) -> dict[str, Option]:
        """Configuration of a confluent-kafka client; `overrides` are librdkafka's names with `_` for `.`.

        `group_id` and `transactional_id` are given without the platform's prefix.
        """
        config: dict[str, Option] = {
            "bootstrap.servers": self.bootstrap,
            "security.protocol": self.security,
            "log_level": 0,  # every failure reaches us as an error; librdkafka's own lines would only repeat it
            # librdkafka drops a broker that does not answer for long, and may then know none, so it has to bootstrap
            # again. But 2.16 forgets its coordinators then (librdkafka's issues 5511 and 5600), and a transaction waits
            # for ever. So a transactional producer does not: its calls time out, and its process is started again
            # (ADR 0116).
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
        for name in _SHARED_NAMES & overrides.keys():
            overrides[name] = self.topics.prefixed(str(overrides[name]))
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
