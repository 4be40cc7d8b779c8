"""Settings from `LOZENGE_DOWNSTREAM_*`. Variables of secrets that the routing file names must not begin so."""

from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, Field, SecretStr
from pydantic_settings import SettingsConfigDict

from lozenge.process.env_settings import THIS_START, FromEnvironment


def _address(bind: str) -> str:
    if bind and int(bind.rpartition(":")[2]) > 65_535:
        raise ValueError("a port is at most 65535")
    return bind


class Settings(FromEnvironment):
    """One notifier process.

    `store` is a SQLAlchemy URL; notifiers of one store share the work. `keep_days` is how long what was decided and
    sent stays there: at least as long as alerts can be replayed, or a replay notifies a second time. `instance` must
    be no other notifier's of the same store; one that had that name before is taken for dead, and its share is taken
    over at once. The API is at `bind` ("127.0.0.1:8470"; "" for none); whoever uses it brings `token`, if there is
    one. With `public_url`, where people reach it, and `link_secret`, each alert in a notification has a link to a
    page on which it is judged.
    """

    model_config = SettingsConfigDict(env_prefix="LOZENGE_DOWNSTREAM_")

    store: SecretStr = SecretStr("sqlite:///lozenge-downstream.db")
    routing: Path | None = None
    instance: str = THIS_START
    keep_days: Annotated[int, Field(ge=1)] = 35
    bind: Annotated[str, Field(pattern=r"^$|^\[?[^\s/]+\]?:\d+$"), AfterValidator(_address)] = ""
    token: SecretStr | None = None
    public_url: str = ""
    link_secret: Annotated[SecretStr, Field(min_length=16)] | None = None
