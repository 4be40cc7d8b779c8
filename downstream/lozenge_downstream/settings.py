"""Settings from `LOZENGE_DOWNSTREAM_*`. Variables of the routing file's secrets must have other names."""

from pathlib import Path
from typing import Annotated, Self

from pydantic import AfterValidator, Field, SecretStr, model_validator
from pydantic_settings import SettingsConfigDict

from lozenge.process.env_settings import FromEnvironment, sendable, this_start


def _address(bind: str) -> str:
    if bind and int(bind.rpartition(":")[2]) > 65_535:
        raise ValueError("a port is at most 65535")
    return bind


class NotifierSettings(FromEnvironment):
    """One notifier process. Notifiers with one store share the work."""

    model_config = SettingsConfigDict(env_prefix="LOZENGE_DOWNSTREAM_")

    store: SecretStr = SecretStr("sqlite:///lozenge-downstream.db")
    """The SQLAlchemy URL of the store: SQLite or PostgreSQL."""

    routing: Path | None = None
    """The routing file. Without one, notifications go to their topic alone."""

    instance: str = Field(default_factory=this_start)
    """Unique among the notifiers of a store. An earlier process of that name counts as dead, and this one replaces it
    at once."""

    keep_days: Annotated[int, Field(ge=1)] = 35
    """The retention of the store. It must be at least as long as alerts can be replayed, or a replay notifies a second
    time."""

    bind: Annotated[str, Field(pattern=r"^$|^\[?[^\s/]+\]?:\d+$"), AfterValidator(_address)] = ""
    """Where the API listens, such as `127.0.0.1:8470`; empty for none."""

    token: Annotated[SecretStr, AfterValidator(sendable)] | None = None
    """The bearer token that the API requires; none unless set."""

    public_url: Annotated[str, Field(pattern=r"^$|^https?://[^\s/]+\S*$")] = ""
    """The API's address for people. With it and `link_secret`, each alert in a notification has a link to its feedback
    page."""

    link_secret: Annotated[SecretStr, Field(min_length=16)] | None = None
    """Signs the links to feedback pages; at least 16 characters."""

    @model_validator(mode="after")
    def _links_are_signed(self) -> Self:
        if self.public_url and self.link_secret is None:
            raise ValueError("PUBLIC_URL makes no link to a feedback page without LINK_SECRET, which signs them")
        return self
