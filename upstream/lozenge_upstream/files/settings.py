"""The settings of one process of a file source, from `LOZENGE_FILES_*` environment variables."""

from pydantic import Field
from pydantic_settings import SettingsConfigDict

from lozenge.process.env_settings import FromEnvironment, this_start


class FilesSettings(FromEnvironment):
    """One process of a file source. Kafka itself is configured by `LOZENGE_KAFKA_*`."""

    model_config = SettingsConfigDict(env_prefix="LOZENGE_FILES_")

    source: str = ""
    """The file source that it copies, which is deployed."""

    instance: str = Field(default_factory=this_start)
    """Its name in metrics and logs, unique among starts; made of host, process and time unless set."""
