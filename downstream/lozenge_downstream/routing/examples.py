"""The examples of a routing file, and the routes of an alert."""

from collections.abc import Iterator, Mapping
from typing import Any

from lozenge_downstream.routing.config import Example, Routing
from lozenge_downstream.routing.tree import Route


def routes_of(routing: Routing, labels: Mapping[str, str]) -> list[dict[str, Any]]:
    """The fields of each route that takes an alert with these labels."""
    return [_fields(route, labels) for route in routing.route.taking(labels)]


def failures(routing: Routing) -> Iterator[tuple[str, str]]:
    """The path of every example that fails, and the difference."""
    for number, example in enumerate(routing.examples):
        taken = routing.route.taking(example.alert)
        yield from ((f"examples.{number}", problem) for problem in _problems(example, taken))


def _problems(example: Example, taken: list[Route]) -> Iterator[str]:
    routes = [route.name for route in taken]
    channels = list(dict.fromkeys(name for route in taken for name in route.channels))
    for field, wanted, found in (("routes", example.routes, routes), ("channels", example.channels, channels)):
        if wanted is not None and sorted(wanted) != sorted(found):
            yield f"{field} should be {_list(wanted)}, and are {_list(found)}"


def _list(names: Any) -> str:
    return ", ".join(sorted(names)) or "none"


def _fields(route: Route, labels: Mapping[str, str]) -> dict[str, Any]:
    fields = route.model_dump(mode="json", exclude={"routes", "matchers", "continues"}, by_alias=True)
    return {
        "route": fields.pop("name"),
        "channels": fields.pop("channels"),
        "case": route.group_of("itself", labels),
    } | fields
