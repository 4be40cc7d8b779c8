"""The tree of routes, by Alertmanager's rules.

An alert goes down from the root: at each route the first child whose matchers hold takes it, and the next ones too
while the child before says `continue`. If no child takes it, the route itself does. A route inherits the fields that
it does not set.

    [route]                       # takes every alert
    channels = ["ops"]
    group_by = ["entity"]

    [[route.routes]]
    name = "urgent"
    matchers = ["severity >= high"]
    channels = ["oncall"]
    group_wait = "0s"
"""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Annotated, Any, NamedTuple

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from lozenge.durations import LONGEST, TextDuration, text_of
from lozenge_downstream.routing.matchers import Labels, MatcherField, all_match
from lozenge_downstream.routing.time_intervals import TimeInterval

ALONE = ("...",)
"""`group_by` of a route where each alert is a case of its own."""
INHERITED = (
    "channels",
    "group_by",
    "group_wait",
    "group_interval",
    "repeat_interval",
    "resolve_timeout",
    "send_resolved",
)


def _printable(name: str) -> str:
    if not name.isprintable():
        raise ValueError("it contains a line end, a NUL or another character that cannot be printed")
    return name


def _distinct(names: tuple[str, ...]) -> tuple[str, ...]:
    if repeated := sorted({name for name in names if names.count(name) > 1}):
        raise ValueError(f"{', '.join(repeated)}: named twice")
    return names


def _alone_or_labels(names: tuple[str, ...]) -> tuple[str, ...]:
    if ALONE[0] in names and names != ALONE:
        raise ValueError('"..." makes each alert a case of its own, so it has no other label next to it')
    return names


Name = Annotated[str, Field(min_length=1, max_length=100), AfterValidator(_printable)]
"""The name of a route, channel or time interval."""
_Label = Annotated[str, Field(min_length=1)]


def at_least(shortest: timedelta) -> AfterValidator:
    """Validates that a time is so long, and at most LONGEST."""

    def check(given: timedelta) -> timedelta:
        if not shortest <= given <= LONGEST:
            raise ValueError(f"it must be from {text_of(shortest)} to {text_of(LONGEST)}")
        return given

    return AfterValidator(check)


_Wait = Annotated[TextDuration, at_least(timedelta())]
_Time = Annotated[TextDuration, at_least(timedelta(milliseconds=1))]


class Route(BaseModel):
    """One route. A field that it does not set is its parent's, except the time intervals.

    `group_by` names the labels that the alerts of a case have in common. A case is first notified `group_wait` after
    its first alert, again with new alerts every `group_interval`, and without new alerts every `repeat_interval`, if
    it is set. An alert resolves `resolve_timeout` after it was received, a case with its last alert; `send_resolved`
    notifies that.

    Within an interval of `mute_time_intervals`, or outside all of `active_time_intervals`, only the end of a case is
    notified. An alert that is still active after that is notified then.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: Name = "default"
    matchers: tuple[MatcherField, ...] = ()
    channels: Annotated[tuple[str, ...], AfterValidator(_distinct)] = ()
    group_by: Annotated[tuple[_Label, ...], AfterValidator(_distinct), AfterValidator(_alone_or_labels)] = ALONE
    group_wait: _Wait = timedelta()
    group_interval: _Time = timedelta(minutes=5)
    repeat_interval: _Time | None = None
    resolve_timeout: _Time = timedelta(hours=1)
    send_resolved: bool = False
    mute_time_intervals: tuple[str, ...] = ()
    active_time_intervals: tuple[str, ...] = ()
    continues: Annotated[bool, Field(alias="continue")] = False
    routes: tuple["Route", ...] = ()

    @model_validator(mode="before")
    @classmethod
    def _inherit(cls, given: Any) -> Any:
        if not isinstance(given, dict) or not isinstance(given.get("routes"), list):
            return given
        own = {name: given[name] for name in INHERITED if name in given}
        return given | {"routes": [own | child if isinstance(child, dict) else child for child in given["routes"]]}

    @property
    def alone(self) -> bool:
        """Whether each alert is a case of its own."""
        return self.group_by == ALONE

    def taking(self, labels: Labels) -> "list[Route]":
        """The routes, at or below this one, that take an alert with these labels; none if its own matchers fail."""
        if not all_match(self.matchers, labels):
            return []
        found: list[Route] = []
        for child in self.routes:
            taken = child.taking(labels)
            found += taken
            if taken and not child.continues:
                break
        return found or [self]

    def named(self, name: str) -> "Route":
        """The route of this name, at or below this one; for a name that is gone this one, so that nothing is lost.

        Whether the route that is gone notified the end of a case is unknown, so the end is notified.
        """
        found = next((placed.route for placed in self.walk() if placed.route.name == name), None)
        return found or self.model_copy(update={"send_resolved": True})

    def group_of(self, alert_id: str, labels: Labels) -> dict[str, str]:
        """The labels that the alerts of one case have in common."""
        return {"alert_id": alert_id} if self.alone else {name: labels.get(name, "") for name in self.group_by}

    def walk(self, path: str = "route") -> "Iterator[Placed]":
        """This route and all below it, each with its path in the file."""
        yield Placed(path, self)
        for number, child in enumerate(self.routes):
            yield from child.walk(f"{path}.routes.{number}")

    def muted_by(self, intervals: dict[str, TimeInterval], moment: datetime) -> str:
        """The time interval that mutes this route at `moment`; "" if none does."""
        for name in self.mute_time_intervals:
            if moment in intervals[name]:
                return f"within the time interval {name}"
        active = self.active_time_intervals
        if active and not any(moment in intervals[name] for name in active):
            return f"outside the time interval {' and '.join(active)}"
        return ""


class Placed(NamedTuple):
    """A route and its path in the file, such as "route.routes.0"."""

    path: str
    route: Route
