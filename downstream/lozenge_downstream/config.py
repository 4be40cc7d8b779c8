"""Settings from `LOZENGE_DOWNSTREAM_*`, and the routing file: which alert goes to which webhook.

    [webhooks.ops]
    url = "https://ops.example.com/hooks/lozenge"
    secret = { env = "OPS_WEBHOOK_SECRET" }      # or { file = "secrets/ops" }

    [[routes]]
    name = "serious"
    webhooks = ["ops"]
    severity = "high"                            # this or worse; leave out for all
    detectors = ["large_amount"]                 # leave out for all

Without `[[routes]]` every alert goes to every webhook. Secrets are named, never written down; they
appear in no repr, log line or error. Their variables must not begin with LOZENGE_DOWNSTREAM_.
"""

import base64
import binascii
import os
import tomllib
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, HttpUrl, SecretStr, ValidationError, model_validator
from pydantic_settings import SettingsConfigDict

from lozenge.environment import FromEnvironment
from lozenge.errors import ConfigError

SEVERITIES = ("info", "low", "medium", "high", "critical")
MIN_SECRET_BYTES = 24
SECRET_PREFIX = "whsec_"


class Settings(FromEnvironment):
    """One notifier process.

    `store` is a SQLAlchemy URL. `keep_days` is how long decisions and sent rows stay in the store: at
    least as long as alerts can be replayed, or a replay notifies a second time.
    """

    model_config = SettingsConfigDict(env_prefix="LOZENGE_DOWNSTREAM_")

    store: SecretStr = SecretStr("sqlite:///lozenge-downstream.db")
    routing: Path | None = None
    instance: str = "0"
    keep_days: Annotated[int, Field(ge=1)] = 35


class SecretReference(BaseModel):
    """Where a secret is: exactly one of an environment variable and a file."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    env: str | None = None
    file: Path | None = None

    @model_validator(mode="after")
    def _is_readable(self) -> Self:
        if (self.env is None) == (self.file is None):
            raise ValueError('say either { env = "NAME" } or { file = "PATH" }')
        self.resolve()
        return self

    def resolve(self) -> SecretStr:
        """The secret itself; raises ValueError, which names the place and never the content."""
        if self.env is not None:
            value = os.environ.get(self.env)
            if value is None:
                raise ValueError(f"environment variable {self.env} is not set")
            return _signing_secret(value, f"environment variable {self.env}")
        try:
            return _signing_secret(Path(self.file or "").read_text("utf-8").strip(), f"file {self.file}")
        except OSError as error:
            raise ValueError(f"file {self.file}: {error.strerror}") from None


def _signing_secret(value: str, place: str) -> SecretStr:
    encoded = value.removeprefix(SECRET_PREFIX)
    try:
        key = base64.b64decode(encoded + "=" * (-len(encoded) % 4), validate=True)
    except (binascii.Error, ValueError):
        raise ValueError(f"{place} does not hold a base64 secret ({SECRET_PREFIX}...)") from None
    if len(key) < MIN_SECRET_BYTES:
        raise ValueError(f"{place} holds {len(key)} bytes, a signing secret has at least {MIN_SECRET_BYTES}")
    return SecretStr(value)


def _known_severity(value: str) -> str:
    if value not in SEVERITIES:
        raise ValueError(f"{value!r} is none of {', '.join(SEVERITIES)}")
    return value


class Webhook(BaseModel):
    """One receiver. Times are seconds; `concurrency` bounds its requests in flight.

    A failed attempt is repeated after about `first_retry`, then four times as long each time, up to
    `max_retry`; after `attempts` it is a dead letter. The defaults span about two days.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    url: HttpUrl
    secret: SecretReference
    timeout: Annotated[float, Field(gt=0, le=120)] = 15.0
    concurrency: Annotated[int, Field(ge=1, le=256)] = 16
    attempts: Annotated[int, Field(ge=1, le=100)] = 11
    first_retry: Annotated[float, Field(gt=0)] = 5.0
    max_retry: Annotated[float, Field(gt=0)] = 43_200.0


class Route(BaseModel):
    """Alerts of `detectors` (None: all) at `severity` or worse (None: all) go to `webhooks`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: Annotated[str, Field(min_length=1)]
    webhooks: tuple[str, ...]
    detectors: frozenset[str] | None = None
    severity: Annotated[str, AfterValidator(_known_severity)] | None = None


class Routing(BaseModel):
    """The routing file; an empty one publishes to Kafka alone."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    webhooks: dict[str, Webhook] = {}
    routes: tuple[Route, ...] = ()

    @model_validator(mode="after")
    def _route_everything_by_default(self) -> Self:
        if self.webhooks and not self.routes:
            return self.model_copy(update={"routes": (Route(name="default", webhooks=tuple(self.webhooks)),)})
        return self


def routing(path: Path | None) -> Routing:
    """The routing file at `path` (None: no webhooks); raises ConfigError with every problem in it."""
    if path is None:
        return Routing()
    try:
        raw = tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise ConfigError(f"reading the routing file {path}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"reading the routing file {path}", problems=[str(error)]) from error
    problems = _cross_references(raw)
    try:
        parsed = Routing.model_validate(raw)
    except ValidationError as error:
        problems = [*_problems(error), *problems]
    if problems:
        raise ConfigError(f"reading the routing file {path}", problems=problems, hint="mend these and start again")
    return parsed


def _problems(error: ValidationError) -> list[str]:
    # Only place and message: pydantic's own text quotes the input, and that may be a secret.
    return [
        f"{'.'.join(str(part) for part in e['loc'])}: {e['msg'].removeprefix('Value error, ')}" for e in error.errors()
    ]


def _cross_references(raw: dict[str, Any]) -> list[str]:
    """What no single field shows; works on unchecked data so that it is told along with the rest."""
    webhooks, routes = raw.get("webhooks", {}), raw.get("routes", [])
    if not isinstance(webhooks, dict) or not isinstance(routes, list):
        return []
    found, names = [], set()
    for index, route in enumerate(r for r in routes if isinstance(r, dict)):
        targets = route.get("webhooks", [])
        unknown = [t for t in targets if t not in webhooks] if isinstance(targets, list) else []
        found += [f"routes.{index}.webhooks: there is no [webhooks.{target}]" for target in unknown]
        name = route.get("name")
        if name in names:
            found.append(f"routes.{index}.name: {name!r} is the name of an earlier route")
        names.add(name)
    return found
