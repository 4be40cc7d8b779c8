"""Settings from `LOZENGE_DOWNSTREAM_*`. Variables of the routing file's secrets must have other names."""

from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, Field, SecretStr
from pydantic_settings import SettingsConfigDict

from lozenge.process.env_settings import FromEnvironment, this_start


def _address(bind: str) -> str:
    if bind and int(bind.rpartition(":")[2]) > 65_535:
        raise ValueError("a port is at most 65535")
    return bind


class NotifierSettings(FromEnvironment):
    """One notifier process.

    `store` is a SQLAlchemy URL; notifiers of one store share the work. `keep_days` is the retention of the store. It
    must be at least as long as alerts can be replayed, or a replay notifies a second time. `instance` must be unique
    among the notifiers of a store; an earlier process of that name counts as dead, and this one replaces it at
    once. The API listens at `bind` ("127.0.0.1:8470"; "" for none) and requires `token`, if it is set. `public_url` is
    the address for people. With it and `link_secret`, each alert in a notification has a link to its feedback page.
    """

    model_config = SettingsConfigDict(env_prefix="LOZENGE_DOWNSTREAM_")

    store: SecretStr = SecretStr("sqlite:///lozenge-downstream.db")
    routing: Path | None = None
    instance: str = Field(default_factory=this_start)
    keep_days: Annotated[int, Field(ge=1)] = 35
    bind: Annotated[str, Field(pattern=r"^$|^\[?[^\s/]+\]?:\d+$"), AfterValidator(_address)] = ""
    token: SecretStr | None = None
    public_url: str = ""
    link_secret: Annotated[SecretStr, Field(min_length=16)] | None = None
