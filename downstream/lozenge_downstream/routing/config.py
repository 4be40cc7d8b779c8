"""The routing file as a whole.

    [channels.ops]
    type = "webhook"
    url = "https://ops.example.com/hooks/lozenge"
    secret = { env = "OPS_WEBHOOK_SECRET" }

    [route]
    channels = ["ops"]

    [[inhibit]]                                   # what matches `target` is not told
    source = ["severity = critical"]              # while something matches `source`
    target = ["severity <= medium"]
    equal = ["entity"]                            # that has these labels in common with it

    [noise]                                       # a detector that raises more is parked, and nothing is lost
    alerts = 1000
    within = "1m"

    [[examples]]                                  # what `lozenge routes test` runs
    alert = { detector = "large_amount", severity = "high" }
    channels = ["ops"]

Without a file everything goes to Kafka alone. A file in which nothing stands is wrong.
"""

import tomllib
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from lozenge.durations import TextDuration
from lozenge.errors import ConfigError
from lozenge_downstream.channels import channel_of
from lozenge_downstream.channels.base.channel import Channel
from lozenge_downstream.channels.base.secrets import ELSEWHERE
from lozenge_downstream.routing.matchers import Condition
from lozenge_downstream.routing.time_intervals import Window
from lozenge_downstream.routing.tree import INHERITED, Route

AnyChannel = Annotated[Channel, channel_of()]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Inhibition(_Strict):
    """While an alert matches all of `source`, those that match all of `target` and equal it in `equal` are muted."""

    source: Annotated[tuple[Condition, ...], Field(min_length=1)]
    target: Annotated[tuple[Condition, ...], Field(min_length=1)]
    equal: tuple[str, ...] = ()


class RateLimit(_Strict):
    """What one detector may raise; what it raises beyond that is parked, told of once, and can be released."""

    alerts: Annotated[int, Field(ge=1)] = 1_000
    within: Annotated[TextDuration, Field(ge=timedelta(minutes=1))] = timedelta(minutes=1)  # minutes are counted
    quiet: bool = True


class Example(_Strict):
    """An alert by its labels, and the routes or channels that take it."""

    alert: dict[str, str]
    routes: tuple[str, ...] | None = None
    channels: tuple[str, ...] | None = None


class Routing(_Strict):
    """Everything that operators say about notifications."""

    channels: dict[str, AnyChannel] = {}
    windows: dict[str, Window] = {}
    route: Route = Route()
    inhibit: tuple[Inhibition, ...] = ()
    noise: RateLimit = RateLimit()
    examples: tuple[Example, ...] = ()


def routing(path: Path | None, *, secrets: bool = True) -> Routing:
    """The routing file at `path` (None: an empty one); raises ConfigError with every problem in it.

    Without `secrets`, which then may be elsewhere, it is good for looking at and for nothing else.
    """
    if path is None:
        return Routing()
    doing = f"reading the routing file {path}"
    try:
        return _routing(path, doing, secrets)
    except ConfigError:
        raise
    except Exception as error:  # a file changes beside notifiers that run: nothing that it holds may end them
        # The type alone, and no cause: other text may quote the file, and so a secret.
        raise ConfigError(doing, problems=[f"it cannot be read: {type(error).__name__}"]) from None


def _routing(path: Path, doing: str, secrets: bool) -> Routing:
    try:
        raw = tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise ConfigError(f"{doing}: {error.strerror}", hint="see LOZENGE_DOWNSTREAM_ROUTING") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(doing, problems=[str(error)]) from error
    if not raw:  # as an editor or a full disk leaves it for a moment, or for good
        raise ConfigError(doing, problems=["it is empty"], hint="write [route] if all is to go to Kafka alone")
    problems = [f"{name}: {instead}" for name, instead in _FORMER.items() if name in raw]
    try:
        now = {name: value for name, value in raw.items() if name not in _FORMER}
        parsed = Routing.model_validate(now, context=None if secrets else ELSEWHERE)
    except ValidationError as error:
        problems += _problems(error, raw)
    problems += _cross_references(raw)
    if problems:
        raise ConfigError(doing, problems=problems, hint="mend these; `lozenge routes test --secrets` reads it again")
    return parsed


_FORMER = {
    "webhooks": 'write [channels.NAME] with type = "webhook"',
    "routes": "write [route], and [[route.routes]] for what is below it",
}
"""How the file once was."""


def _problems(error: ValidationError, raw: dict[str, Any]) -> list[str]:
    # Only place and message: pydantic's own text quotes the input, and that may be a secret.
    return [
        f"{'.'.join(str(part) for part in e['loc'])}: {e['msg'].removeprefix('Value error, ')}"
        for e in error.errors(include_url=False, include_context=False, include_input=False)
        if not _was_handed_down(e["loc"], raw)
    ]


def _was_handed_down(place: tuple[Any, ...], raw: Any) -> bool:
    """Whether this is a parent's, whose problem is told there."""
    for part in place:
        if isinstance(raw, dict) and part not in raw:
            return part in INHERITED
        try:
            raw = raw[part]
        except (TypeError, LookupError):  # pydantic also names what no file does, such as the kinds of a union
            return False
    return False


def _cross_references(raw: dict[str, Any]) -> list[str]:
    """What no single field shows; works on unchecked data so that it is told along with the rest."""
    channels, windows = _section(raw, "channels"), _section(raw, "windows")
    found: list[str] = []
    names = {"default"}
    for place, route in _routes(raw.get("route", {}), "route"):
        for field, there, kind in (
            ("channels", channels, "channels"),
            ("mute", windows, "windows"),
            ("active", windows, "windows"),
        ):
            given = route.get(field)
            texts = [t for t in given if isinstance(t, str)] if isinstance(given, list) else []
            found += [f"{place}.{field}: there is no [{kind}.{target}]" for target in texts if target not in there]
        name = route.get("name")
        if place != "route":
            if name is None:
                found.append(f"{place}.name: say one; a route's cases and notifications are known by it")
            elif str(name) in names:
                found.append(f"{place}.name: {name!r} is the name of an earlier route")
        elif any(route.get(field) for field in ("match", "continue", "mute", "active")):
            found.append("route: the root takes everything: leave out match, continue, mute and active")
        if name is not None:
            names.add(str(name))
    return found


def _section(raw: dict[str, Any], name: str) -> dict[str, Any]:
    found = raw.get(name)
    return found if isinstance(found, dict) else {}


def _routes(raw: Any, place: str) -> Iterator[tuple[str, dict[str, Any]]]:
    if isinstance(raw, dict):
        yield place, raw
        below = raw.get("routes")
        for number, child in enumerate(below if isinstance(below, list) else ()):
            yield from _routes(child, f"{place}.routes.{number}")
