"""What a routing file says of itself: its examples, and where an alert would go."""

from collections.abc import Iterator, Mapping
from typing import Any

from lozenge_downstream.routing.config import Example, Routing
from lozenge_downstream.routing.tree import Route


def way(routing: Routing, labels: Mapping[str, str]) -> list[dict[str, Any]]:
    """Each route that takes an alert with these labels, and how it tells of it."""
    return [_told(route, labels) for route in routing.route.taking(labels)]


def failures(routing: Routing) -> Iterator[tuple[str, str]]:
    """The place of every example that is not as it says, and what is instead."""
    for number, example in enumerate(routing.examples):
        taken = routing.route.taking(example.alert)
        yield from ((f"examples.{number}", problem) for problem in _problems(example, taken))


def _problems(example: Example, taken: list[Route]) -> Iterator[str]:
    routes = [route.name for route in taken]
    channels = list(dict.fromkeys(name for route in taken for name in route.channels))
    for what, wanted, found in (("routes", example.routes, routes), ("channels", example.channels, channels)):
        if wanted is not None and sorted(wanted) != sorted(found):
            yield f"{what} should be {_list(wanted)}, and are {_list(found)}"


def _list(names: Any) -> str:
    return ", ".join(sorted(names)) or "none"


def _told(route: Route, labels: Mapping[str, str]) -> dict[str, Any]:
    said = route.model_dump(mode="json", exclude={"routes", "match", "goes_on"}, by_alias=True)
    return {
        "route": said.pop("name"),
        "channels": said.pop("channels"),
        "case": route.group_of("itself", labels),
    } | said
