"""What is valid in a routing file and probably not meant. Pure.

As in Alertmanager, a label that an alert does not have is "". Two alerts without a label in `equal` are equal in it, so
a misspelt label lets one alert inhibit those about every other entity.
"""

from collections.abc import Collection, Iterator
from datetime import timedelta

from lozenge.contracts.alert import OWNER
from lozenge.durations import text_of
from lozenge_downstream.routing.config import Routing
from lozenge_downstream.routing.matchers import Matcher, are_contradictory
from lozenge_downstream.routing.tree import Route

PLATFORM = frozenset({"detector", "release", "severity", "entity_type", "entity", OWNER, "alarm"})
"""Labels of every alert, and of the notifier's alarms."""


def warnings_of(routing: Routing, seen: Collection[str] = ()) -> list[str]:
    """Each warning with its path in the file. Known labels are the platform's, those `seen`, and those of examples."""
    known = PLATFORM.union(seen, *(example.alert for example in routing.examples))
    return [
        *_of_rules(routing, known),
        *_of_routes(routing, known),
        *_of_unreached(routing.route, "route", ()),
        *_of_channels(routing),
        *_of_intervals(routing),
        *_of_examples(routing),
    ]


def _of_rules(routing: Routing, known: Collection[str]) -> Iterator[str]:
    for number, rule in enumerate(routing.inhibit_rules):
        path = f"inhibit_rules.{number}"
        if not rule.equal:
            yield f"{path}.equal: it is empty, so one source alert mutes the target alerts of every entity"
        for name in rule.equal:
            if name not in known:
                yield f"{path}.equal: {_unknown(name)}; alerts without it count as equal"
        for field, matchers in (("source_matchers", rule.source_matchers), ("target_matchers", rule.target_matchers)):
            yield from _of_matchers(f"{path}.{field}", matchers, known)
            if are_contradictory(matchers):
                yield f"{path}.{field}: no alert matches all of them"
            if all(matcher.is_open for matcher in matchers):
                yield f"{path}.{field}: each also holds for alerts without its label, so every alert matches"


def _of_routes(routing: Routing, known: Collection[str]) -> Iterator[str]:
    warned: set[tuple[str, ...]] = set()
    repeated: set[tuple[timedelta | None, timedelta]] = set()
    for path, route in routing.route.walk():
        yield from _of_matchers(f"{path}.matchers", route.matchers, known)
        times = route.repeat_interval, route.resolve_timeout
        if times[0] is not None and times[0] >= times[1] and times not in repeated:
            repeated.add(times)
            yield (
                f"{path}.repeat_interval: it is not shorter than resolve_timeout, {text_of(times[1])}: "
                "a case resolves before it is repeated"
            )
        if not route.alone and route.group_by not in warned:  # what children inherit is reported once
            warned.add(route.group_by)
            for name in route.group_by:
                if name not in known:
                    yield f"{path}.group_by: {_unknown(name)}; alerts without it are in one case"


def _of_unreached(route: Route, path: str, above: Collection[Matcher]) -> Iterator[str]:
    """Routes below `route` that no alert reaches; `above` are the matchers of `route` and of those above it."""
    for number, child in enumerate(route.routes):
        place, wanted = f"{path}.routes.{number}", (*above, *child.matchers)
        earlier = next((n for n, other in enumerate(route.routes[:number]) if _takes_all(other, wanted)), None)
        if are_contradictory(wanted):
            yield f"{place}.matchers: no alert matches all of them, with those of the routes above"
        elif earlier is not None:
            yield f"{place}: no alert reaches it, since {path}.routes.{earlier} takes each without `continue`"
        else:
            yield from _of_unreached(child, place, wanted)


def _takes_all(route: Route, wanted: Collection[Matcher]) -> bool:
    """Whether `route` keeps every alert that matches all of `wanted` from the routes after it."""
    return not route.continues and all(matcher.is_implied_by(wanted) for matcher in route.matchers)


def _of_channels(routing: Routing) -> Iterator[str]:
    used = {name for _, route in routing.route.walk() for name in route.channels}
    for name in routing.channels:
        if name not in used:
            yield f"channels.{name}: no route sends to it"


def _of_intervals(routing: Routing) -> Iterator[str]:
    for name, interval in routing.time_intervals.items():
        if interval.is_always:
            yield f"time_intervals.{name}: every moment is in it"
        if interval.is_never:
            yield f"time_intervals.{name}: no day fits all of its conditions, so no moment is in it"


def _of_examples(routing: Routing) -> Iterator[str]:
    for number, example in enumerate(routing.examples):
        if example.routes is None and example.channels is None:
            yield f"examples.{number}: it has neither routes nor channels, so it tests nothing"


def _of_matchers(path: str, matchers: Collection[Matcher], known: Collection[str]) -> Iterator[str]:
    for name in sorted({matcher.label for matcher in matchers} - set(known)):
        yield f"{path}: {_unknown(name)}"


def _unknown(name: str) -> str:
    return f"no example in this file and no known alert has the label {name}"
