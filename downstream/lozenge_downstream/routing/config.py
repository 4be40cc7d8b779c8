"""The routing file as a whole. Its keys are Alertmanager's, where Alertmanager has one.

    [channels.ops]
    type = "webhook"
    url = "https://ops.example.com/hooks/lozenge"
    secret = { env = "OPS_WEBHOOK_SECRET" }

    [route]
    channels = ["ops"]

    [[inhibit_rules]]                             # alerts that match `target_matchers` are muted
    source_matchers = ["severity = critical"]     # while an alert that matches `source_matchers` is active
    target_matchers = ["severity <= medium"]
    equal = ["entity"]                            # and has the same values of these labels

    [rate_limit]                                  # of each detector; alerts beyond it are stored and not notified
    alerts = 1000
    within = "1m"

    [[examples]]                                  # `lozenge routes test` runs them
    alert = { detector = "large_amount", severity = "high" }
    channels = ["ops"]

Without a file, all notifications go to Kafka only. An empty file is invalid.
"""

import tomllib
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from lozenge import validation
from lozenge.durations import TextDuration
from lozenge.errors import ConfigError
from lozenge.process.text_files import bad_byte, text_in
from lozenge_downstream.channels import channel_of
from lozenge_downstream.channels.base.channel import Channel
from lozenge_downstream.channels.base.secrets import ELSEWHERE
from lozenge_downstream.routing.matchers import MatcherField
from lozenge_downstream.routing.time_intervals import TimeInterval
from lozenge_downstream.routing.tree import INHERITED, Name, Route, at_least

NOT_OF_THE_ROOT = ("matchers", "continue", "mute_time_intervals", "active_time_intervals")
AnyChannel = Annotated[Channel, channel_of()]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class InhibitRule(_Strict):
    """An active alert that matches all of `source_matchers` mutes those that match all of `target_matchers`.

    Both must have the same values of the labels in `equal`.
    """

    source_matchers: Annotated[tuple[MatcherField, ...], Field(min_length=1)]
    target_matchers: Annotated[tuple[MatcherField, ...], Field(min_length=1)]
    equal: tuple[str, ...] = ()


class RateLimit(_Strict):
    """How many alerts of one detector are notified in a time. The others are stored until an operator decides."""

    alerts: Annotated[int, Field(ge=1)] = 1_000
    within: Annotated[TextDuration, at_least(timedelta(minutes=1))] = timedelta(minutes=1)  # minutes are counted


class DetectorAlarms(_Strict):
    """Which alarms the notifier raises about detectors: `silent`, for one that raises fewer alerts than usual."""

    silent: bool = True


class Example(_Strict):
    """The labels of an alert, and the routes or channels that must take it."""

    alert: dict[str, str]
    routes: tuple[str, ...] | None = None
    channels: tuple[str, ...] | None = None


class Routing(_Strict):
    """The configuration of notifications."""

    channels: dict[Name, AnyChannel] = {}
    time_intervals: dict[Name, TimeInterval] = {}
    route: Route = Route()
    inhibit_rules: tuple[InhibitRule, ...] = ()
    rate_limit: RateLimit = RateLimit()
    detector_alarms: DetectorAlarms = DetectorAlarms()
    examples: tuple[Example, ...] = ()


def routing(path: Path | None, *, secrets: bool = True) -> Routing:
    """The routing file at `path` (None: an empty one); raises ConfigError with every problem in it.

    Without `secrets`, a secret need not be on this machine; the result is for checks only.
    """
    if path is None:
        return Routing()
    doing = f"reading the routing file {path}"
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ConfigError(f"{doing}: {error.strerror}", hint="see LOZENGE_DOWNSTREAM_ROUTING") from error
    return parsed(content, doing, secrets=secrets)


def parsed(content: bytes, doing: str, *, secrets: bool = True) -> Routing:
    """The routing file of this content, as a whole; raises ConfigError as `routing` does, which begins with `doing`."""
    try:
        return _parsed(content, doing, secrets)
    except ConfigError:
        raise
    except Exception as error:  # a file changes while notifiers run: nothing in it may end them
        # only the type, and no cause: other text may quote the file, and so a secret
        raise ConfigError(doing, problems=[f"it cannot be read: {type(error).__name__}"]) from None


def _parsed(content: bytes, doing: str, secrets: bool) -> Routing:
    try:
        raw = tomllib.loads(text_in(content))
    except UnicodeDecodeError as error:
        raise ConfigError(doing, problems=[f"it is not UTF-8: {bad_byte(error)}"], hint="save it as UTF-8") from None
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(doing, problems=[str(error)]) from error
    if not raw:  # an editor or a full disk may leave it so
        raise ConfigError(doing, problems=["it is empty"], hint="write [route] if notifications go to Kafka only")
    problems: list[str] = []
    try:
        found = Routing.model_validate(raw, context=None if secrets else ELSEWHERE)
    except ValidationError as error:
        problems += _problems(error, raw)
    problems += _cross_references(raw)
    if problems:
        raise ConfigError(doing, problems=problems, hint="fix these; `lozenge routes test --secrets` checks it again")
    return found


def _problems(error: ValidationError, raw: dict[str, Any]) -> list[str]:
    # only location and message: pydantic's own text quotes the input, which may be a secret
    return [
        f"{'.'.join(str(part) for part in e['loc'])}: {_WORDS.get(e['type'], e['msg'])}"
        for e in validation.problems(error)
        if not _was_inherited(e["loc"], raw)
    ]


_WORDS = {
    "extra_forbidden": "there is no such field",
    "tuple_type": 'it must be a list, such as ["a", "b"]',
    "dict_type": "it must be a table, with fields of its own",
    "model_type": "it must be a table, with fields of its own",
    "model_attributes_type": "it must be a table, with fields of its own",
}
"""What pydantic found, in the words of the file."""


def _was_inherited(location: tuple[Any, ...], raw: Any) -> bool:
    """Whether a parent route has this field; the problem is reported there."""
    for part in location:
        if isinstance(raw, dict) and part not in raw:
            return part in INHERITED
        try:
            raw = raw[part]
        except (TypeError, LookupError):  # pydantic also names what is in no file, such as the members of a union
            return False
    return False


def _cross_references(raw: dict[str, Any]) -> list[str]:
    """Problems that no single field shows. It reads unchecked data, so that all problems are reported together."""
    channels, intervals = _section(raw, "channels"), _section(raw, "time_intervals")
    found: list[str] = []
    names = {"default"}
    for path, route in _routes(raw.get("route", {}), "route"):
        for field, there, kind in (
            ("channels", channels, "channels"),
            ("mute_time_intervals", intervals, "time_intervals"),
            ("active_time_intervals", intervals, "time_intervals"),
        ):
            given = route.get(field)
            texts = [t for t in given if isinstance(t, str)] if isinstance(given, list) else []
            found += [f"{path}.{field}: there is no [{kind}.{target}]" for target in texts if target not in there]
        name = route.get("name")
        if path != "route":
            if name is None:
                found.append(f"{path}.name: it is missing; cases and notifications have the name of their route")
            elif str(name) in names:
                found.append(f"{path}.name: {name!r} is the name of an earlier route")
        elif any(route.get(field) for field in NOT_OF_THE_ROOT):
            found.append("route: the root takes every alert, so it has no matchers, continue or time intervals")
        if name is not None:
            names.add(str(name))
    return found


def _section(raw: dict[str, Any], name: str) -> dict[str, Any]:
    found = raw.get(name)
    return found if isinstance(found, dict) else {}


def _routes(raw: Any, path: str) -> Iterator[tuple[str, dict[str, Any]]]:
    if isinstance(raw, dict):
        yield path, raw
        below = raw.get("routes")
        for number, child in enumerate(below if isinstance(below, list) else ()):
            yield from _routes(child, f"{path}.routes.{number}")
