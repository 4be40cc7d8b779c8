"""The tree of routes, by Alertmanager's rules.

An alert goes down from the root: at each route the first child whose conditions hold takes it, and the
next ones too as long as the one before says `continue`. Where no child takes it, the route itself does.
What a route leaves out is its parent's.

    [route]                       # takes everything
    channels = ["ops"]
    group_by = ["entity"]

    [[route.routes]]
    name = "urgent"
    match = ["severity >= high"]
    channels = ["oncall"]
    group_wait = "0s"
"""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Annotated, Any, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, model_validator

from lozenge.durations import TextDuration
from lozenge_downstream.routing.matchers import Condition, Labels, all_match
from lozenge_downstream.routing.time_intervals import Window

ALONE = ("...",)
"""`group_by` of a route that tells each alert by itself."""
INHERITED = (
    "channels",
    "group_by",
    "group_wait",
    "group_interval",
    "repeat_interval",
    "resolve_after",
    "send_resolved",
)


class Route(BaseModel):
    """One route. Of an alert it takes these things, or its parent's where it is silent:

    `group_by` names the labels that alerts have in common which are told together, as one case. A case is
    first told `group_wait` after its first alert, told again with what is new every `group_interval`, and
    without anything new every `repeat_interval`, if there is one. An alert counts as over `resolve_after` it
    came, a case when all its alerts do; `send_resolved` tells that.

    In a window of `mute`, or out of all of `active`, nothing is told but the end of a case; what is not over by
    then is told later.
    These two are not handed down.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: Annotated[str, Field(min_length=1, max_length=100)] = "default"
    match: tuple[Condition, ...] = ()
    channels: tuple[str, ...] = ()
    group_by: tuple[str, ...] = ALONE
    group_wait: TextDuration = timedelta()
    group_interval: Annotated[TextDuration, Field(gt=timedelta())] = timedelta(minutes=5)
    repeat_interval: Annotated[TextDuration, Field(gt=timedelta())] | None = None
    resolve_after: Annotated[TextDuration, Field(gt=timedelta())] = timedelta(hours=1)
    send_resolved: bool = False
    mute: tuple[str, ...] = ()
    active: tuple[str, ...] = ()
    goes_on: Annotated[bool, Field(alias="continue")] = False
    routes: tuple["Route", ...] = ()

    @model_validator(mode="before")
    @classmethod
    def _hand_down(cls, given: Any) -> Any:
        if not isinstance(given, dict) or not isinstance(given.get("routes"), list):
            return given
        own = {name: given[name] for name in INHERITED if name in given}
        return given | {"routes": [own | child if isinstance(child, dict) else child for child in given["routes"]]}

    @property
    def alone(self) -> bool:
        """Whether each alert is a case of its own."""
        return self.group_by == ALONE

    def taking(self, labels: Labels) -> "list[Route]":
        """The routes, at or below this one, that take an alert with these labels; none if its own conditions fail."""
        if not all_match(self.match, labels):
            return []
        found: list[Route] = []
        for child in self.routes:
            taken = child.taking(labels)
            found += taken
            if taken and not child.goes_on:
                break
        return found or [self]

    def group_of(self, alert_id: str, labels: Labels) -> dict[str, str]:
        """The labels that alerts of one case have in common."""
        return {"alert_id": alert_id} if self.alone else {name: labels.get(name, "") for name in self.group_by}

    def walk(self, place: str = "route") -> "Iterator[Placed]":
        """This route and all below it, each with where it stands in the file."""
        yield Placed(place, self)
        for number, child in enumerate(self.routes):
            yield from child.walk(f"{place}.routes.{number}")

    def quiet(self, windows: dict[str, Window], moment: datetime) -> str:
        """Which window keeps this route from telling at `moment`; "" if none does."""
        for name in self.mute:
            if moment in windows[name]:
                return f"within the window {name}"
        if self.active and not any(moment in windows[name] for name in self.active):
            return f"outside of the window {' and '.join(self.active)}"
        return ""


class Placed(NamedTuple):
    """A route and its place in the file, such as "route.routes.0"."""

    place: str
    route: Route
