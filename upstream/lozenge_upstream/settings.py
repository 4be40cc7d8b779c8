"""The settings of one upstream process, from `LOZENGE_UPSTREAM_*` environment variables."""

from typing import Annotated, Literal

from pydantic import Field, Json, SecretStr, field_validator
from pydantic_settings import SettingsConfigDict

from lozenge.process.env_settings import FromEnvironment, this_start

COMMIT_SECONDS, LEAST_COMMIT_SECONDS = 60.0, 5.0
"""How often the group's offsets move in Real-Time Mode, unless set otherwise, and the least that Spark takes."""
Mode = Literal["micro-batch", "realtime"]
DEMO_TOKEN_KEY = "lozenge-demo-key-not-for-real-cards"
"""It is public: its tokens can be turned back into card numbers by trying them all."""


class UpstreamSettings(FromEnvironment):
    """One process of upstream. Kafka itself is configured by `LOZENGE_KAFKA_*`."""

    model_config = SettingsConfigDict(env_prefix="LOZENGE_UPSTREAM_")

    token_key: SecretStr = SecretStr(DEMO_TOKEN_KEY)
    """Makes tokens, such as those of card numbers; at least 16 bytes. It must never change: another key gives every
    entity another token. The default is public and for demonstrations."""

    stream: str = ""
    """The stream whose raw records it normalises: the default one, or the only one there is, unless set."""

    rekeys: Json[tuple[str, ...]] | None = None
    """The keys of the copies of the events; those that the stream declares unless set."""

    merges: Json[tuple[str, ...]] = ()
    """The keys by which its events also go to a merged topic, which detectors of several streams read."""

    max_offsets: Annotated[int, Field(gt=0)] = 100_000
    """The largest number of records of one source in one batch."""

    mode: Mode = "micro-batch"
    """With `realtime` each record is emitted as it arrives. A large backlog is processed in micro-batches first."""

    commit_seconds: Annotated[float, Field(ge=LEAST_COMMIT_SECONDS)] = COMMIT_SECONDS
    """The time between two commits of offsets in Real-Time Mode."""

    short_batches: Annotated[int, Field(ge=0)] | None = None
    """How many of the first commits in Real-Time Mode come every two seconds, so that slow first ones are soon over."""

    trigger_seconds: Annotated[float, Field(gt=0)] = 1.0
    """The time between two micro-batches."""

    stop_seconds: Annotated[float, Field(ge=0)] = 25.0
    """How long a stop waits for the running batch before it aborts it."""

    cores: Annotated[int, Field(gt=0)] = 2
    """Tasks that run at once."""

    memory_mb: Annotated[int, Field(ge=450)] = 640
    """Largest heap of its JVM."""

    instance: str = Field(default_factory=this_start)
    """Its name in metrics and logs, unique among starts; made of host, process and time unless set."""

    @field_validator("token_key")
    @classmethod
    def _long_enough(cls, key: SecretStr) -> SecretStr:
        if len(key.get_secret_value().encode()) < 16:
            raise ValueError("must have at least 16 bytes")
        return key

    @property
    def is_demo_key(self) -> bool:
        """Whether nobody has set a token key."""
        return self.token_key.get_secret_value() == DEMO_TOKEN_KEY
