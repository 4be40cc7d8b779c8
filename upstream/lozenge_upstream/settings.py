"""The settings of one upstream process, from `LOZENGE_UPSTREAM_*` environment variables."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, Json, SecretStr, field_validator
from pydantic_settings import SettingsConfigDict

from lozenge.contracts.topics import REKEYS
from lozenge.process.env_settings import FromEnvironment, this_start

COMMIT_SECONDS, LEAST_COMMIT_SECONDS = 60.0, 5.0
"""How often the group's offsets move in Real-Time Mode, unless set otherwise, and the least that Spark takes."""
Mode = Literal["micro-batch", "realtime"]
DEMO_TOKEN_KEY = "lozenge-demo-key-not-for-real-cards"
"""It is public: its tokens can be turned back into card numbers by trying them all."""


class UpstreamSettings(FromEnvironment):
    """An operator's settings; Kafka itself is configured by `LOZENGE_KAFKA_*`.

    `token_key` turns card numbers into tokens. It must never change: another key gives every card another token.
    `mappings` is a folder of further source formats. `rekeys` (JSON list) are the keys of further copies of the events.
    `max_offsets` bounds one batch per source. A stop waits `stop_seconds` for the running batch, then aborts it.

    In the mode "realtime" each record is emitted as it arrives, and offsets are committed every `commit_seconds`. The
    first `short_batches` commits come every two seconds, see `spark.realtime_batches`. A large backlog is processed in
    micro-batches first.
    """

    model_config = SettingsConfigDict(env_prefix="LOZENGE_UPSTREAM_")

    token_key: SecretStr = SecretStr(DEMO_TOKEN_KEY)
    mappings: Path | None = None
    rekeys: Json[tuple[str, ...]] = ("terminal",)
    max_offsets: Annotated[int, Field(gt=0)] = 100_000
    mode: Mode = "micro-batch"
    commit_seconds: Annotated[float, Field(ge=LEAST_COMMIT_SECONDS)] = COMMIT_SECONDS
    short_batches: Annotated[int, Field(ge=0)] | None = None
    trigger_seconds: Annotated[float, Field(gt=0)] = 1.0
    stop_seconds: Annotated[float, Field(ge=0)] = 25.0
    cores: Annotated[int, Field(gt=0)] = 2
    memory_mb: Annotated[int, Field(ge=450)] = 640
    instance: str = Field(default_factory=this_start)

    @field_validator("token_key")
    @classmethod
    def _long_enough(cls, key: SecretStr) -> SecretStr:
        if len(key.get_secret_value().encode()) < 16:
            raise ValueError("must have at least 16 bytes")
        return key

    @field_validator("rekeys")
    @classmethod
    def _known(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        if unknown := [name for name in names if name not in REKEYS]:
            raise ValueError(f"{', '.join(unknown)}: the events can be keyed by {', '.join(REKEYS)}")
        return names

    @property
    def is_demo_key(self) -> bool:
        """Whether nobody has set a token key."""
        return self.token_key.get_secret_value() == DEMO_TOKEN_KEY
