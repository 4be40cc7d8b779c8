"""The first matching child takes an alert; a route inherits what it does not set."""

import pytest

from lozenge_downstream.routing.matchers import parse
from tests.downstream.routing.files import TREE

LABELS = {"detector": "large_amount", "severity": "high", "entity": "card:7"}


@pytest.mark.parametrize(
    ("labels", "routes"),
    [
        (LABELS, ["audit", "urgent"]),
        (LABELS | {"severity": "low"}, ["audit", "large"]),
        ({"detector": "other", "severity": "info"}, ["default"]),
        ({"detector": "large_amount", "severity": "info"}, ["large"]),
    ],
)
def test_the_first_child_takes_an_alert_and_else_the_route_itself(labels: dict[str, str], routes: list[str]) -> None:
    assert [route.name for route in TREE.taking(labels)] == routes


def test_a_route_inherits_what_it_does_not_say() -> None:
    audit, urgent = TREE.taking(LABELS)
    assert (audit.group_by, audit.channels) == (("entity",), ("archive",))
    assert (urgent.group_by, urgent.channels, urgent.matchers) == (
        ("detector",),
        ("oncall",),
        (parse("severity >= high"),),
    )
    assert urgent.group_interval.total_seconds() == 420
