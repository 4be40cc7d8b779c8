"""The alarm about a routing file names file, problems, the version that stays, and where to look."""

import pytest

from lozenge_downstream.model import HOUR, PublishedAlert
from lozenge_downstream.pipeline.routing_alarm import routing_alarm

AT = 1_772_366_400.0  # a full hour


def raised(file: str = "/etc/routing.toml", version: str = "v2", now: float = AT) -> PublishedAlert:
    return routing_alarm(file, version, "route.channels: there is no [channels.nobody]", "v1", now)


def test_it_has_the_file_the_problem_the_version_in_use_and_the_next_step() -> None:
    alarm = raised()
    assert alarm.title == "the routing file /etc/routing.toml is invalid"
    assert alarm.subject == "routing:/etc/routing.toml"
    assert alarm.labels["alarm"] == "routing_invalid"
    for part in ("there is no [channels.nobody]", "Version v1 of the file stays active", "`lozenge routes history`"):
        assert part in alarm.text


@pytest.mark.parametrize(
    ("changed", "same"),
    [
        ({"now": AT + HOUR - 1}, True),
        ({"now": AT + HOUR}, False),
        ({"version": "v3"}, False),
        ({"file": "/etc/other.toml"}, False),
    ],
    ids=str,
)
def test_an_invalid_version_of_a_file_raises_one_alarm_an_hour(changed: dict[str, object], same: bool) -> None:
    assert (raised(**changed).id == raised().id) is same  # type: ignore[arg-type]
