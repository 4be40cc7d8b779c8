"""The settings of one sink's process, from environment variables."""

from pathlib import Path
from typing import Annotated

from pydantic import Field
from pydantic_settings import SettingsConfigDict

from lozenge.archive.settings import ARCHIVE_VARIABLE, DEFAULT_ARCHIVE
from lozenge.process.env_settings import FromEnvironment, this_start


class SinkSettings(FromEnvironment):
    """One process of a sink. Kafka itself is configured by `LOZENGE_KAFKA_*`."""

    model_config = SettingsConfigDict(env_prefix="LOZENGE_SINK_")

    archive: Annotated[Path, Field(validation_alias=ARCHIVE_VARIABLE)] = DEFAULT_ARCHIVE
    """The folder with the tables."""

    cores: Annotated[int, Field(gt=0)] = 2
    """Tasks that run at once."""

    memory_mb: Annotated[int, Field(ge=450)] = 640
    """Largest heap of its JVM."""

    instance: str = Field(default_factory=this_start)
    """Its name in metrics and logs, unique among starts; made of host, process and time unless set."""
