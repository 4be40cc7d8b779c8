"""What is valid in a routing file and probably not meant. Pure.

As in Alertmanager, a label that an alert does not have is "". Two alerts without a label in `equal` are equal in it, so
a misspelt label lets one alert inhibit those about every other entity.
"""

from collections.abc import Collection, Iterator

from lozenge.contracts.alert import OWNER
from lozenge_downstream.routing.config import Routing
from lozenge_downstream.routing.matchers import Matcher

PLATFORM = frozenset({"detector", "release", "severity", "entity_type", "entity", OWNER, "alarm"})
"""Labels of every alert, and of the notifier's alarms."""


def warnings_of(routing: Routing, seen: Collection[str] = ()) -> list[str]:
    """Each warning with its path in the file. Known labels are the platform's, those `seen`, and those of examples."""
    known = PLATFORM.union(seen, *(example.alert for example in routing.examples))
    return [*_of_rules(routing, known), *_of_routes(routing, known)]


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
            if all(matcher.is_open for matcher in matchers):
                yield f"{path}.{field}: each also holds for alerts without its label, so every alert matches"


def _of_routes(routing: Routing, known: Collection[str]) -> Iterator[str]:
    warned: set[tuple[str, ...]] = set()
    for path, route in routing.route.walk():
        yield from _of_matchers(f"{path}.matchers", route.matchers, known)
        if not route.alone and route.group_by not in warned:  # what children inherit is reported once
            warned.add(route.group_by)
            for name in route.group_by:
                if name not in known:
                    yield f"{path}.group_by: {_unknown(name)}; alerts without it are in one case"


def _of_matchers(path: str, matchers: Collection[Matcher], known: Collection[str]) -> Iterator[str]:
    for name in sorted({matcher.label for matcher in matchers} - set(known)):
        yield f"{path}: {_unknown(name)}"


def _unknown(name: str) -> str:
    return f"no example in this file and no known alert has the label {name}"
