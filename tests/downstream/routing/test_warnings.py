"""Labels that no alert has, and rules that match everything, are warned about."""

from pathlib import Path

import pytest

from lozenge_downstream.routing.warnings import warnings_of
from tests.downstream.routing.files import routing

RULE = """
[[inhibit_rules]]
source_matchers = ["severity = critical"]
target_matchers = ["severity <= medium"]
equal = {}
"""
UNKNOWN = "no example in this file and no known alert has the label"


def test_a_label_in_equal_that_no_alert_has_is_warned_about(tmp_path: Path) -> None:
    read = routing(tmp_path, RULE.format('["card_brand", "entity", "owner"]'))
    assert warnings_of(read) == [
        f"inhibit_rules.0.equal: {UNKNOWN} card_brand; alerts without it count as equal",
    ]
    assert warnings_of(read, ["card_brand"]) == [], "an alert has it"


def test_a_label_of_an_example_is_known(tmp_path: Path) -> None:
    example = '[[examples]]\nalert = { card_brand = "visa" }\nchannels = []\n'
    assert warnings_of(routing(tmp_path, RULE.format('["card_brand"]') + example)) == []


def test_an_empty_equal_is_warned_about(tmp_path: Path) -> None:
    (warning,) = warnings_of(routing(tmp_path, RULE.format("[]")))
    assert warning.startswith("inhibit_rules.0.equal: it is empty")


@pytest.mark.parametrize("target", ['team =~ ".*"', "severity >= info", 'detector != ""'])
def test_a_rule_that_every_alert_matches_is_warned_about(tmp_path: Path, target: str) -> None:
    text = RULE.format('["entity"]').replace("severity <= medium", target.replace('"', '\\"'))
    found = warnings_of(routing(tmp_path, text.replace("['", '["')), ["team"])
    wanted = [] if "!=" in target else ["inhibit_rules.0.target_matchers: each also holds for alerts without its label"]
    assert [warning.partition(", so every")[0] for warning in found] == wanted


def test_labels_of_routes_are_warned_about_once(tmp_path: Path) -> None:
    text = """
        [route]
        group_by = ["card_brand"]
        [[route.routes]]
        name = "a"
        matchers = ["team = red", "severity = high"]
        [[route.routes]]
        name = "b"
        group_by = ["entity"]
    """
    assert warnings_of(routing(tmp_path, text)) == [
        f"route.group_by: {UNKNOWN} card_brand; alerts without it are in one case",
        f"route.routes.0.matchers: {UNKNOWN} team",
    ]


ROUTES = """
[[route.routes]]
name = "a"
matchers = [{}]
{}
[[route.routes]]
name = "b"
matchers = [{}]
"""


@pytest.mark.parametrize(
    ("first", "more", "second", "is_reached"),
    [
        ("", "", '"severity = high"', False),
        ('"severity >= low"', "", '"severity >= high"', False),
        ('"detector = x"', "", '"detector = x", "severity = low"', False),
        ("'detector =~ \".*\"'", "", '"detector = x"', False),
        ("'detector =~ \"card_.*\"'", "", '"detector = card_velocity"', False),
        ('"severity >= low"', "continue = true", '"severity >= high"', True),
        ('"severity >= high"', "", '"severity >= low"', True),
        ('"detector = x", "severity = low"', "", '"detector = x"', True),
        ('"detector = x"', "", '"detector = y"', True),
    ],
)
def test_a_route_that_no_alert_reaches_is_warned_about(
    tmp_path: Path, first: str, more: str, second: str, is_reached: bool
) -> None:
    found = warnings_of(routing(tmp_path, ROUTES.format(first, more, second)))
    warning = "route.routes.1: no alert reaches it, since route.routes.0 takes each without `continue`"
    assert found == ([] if is_reached else [warning])


def test_matchers_that_no_alert_matches_are_warned_about(tmp_path: Path) -> None:
    text = """
        [[route.routes]]
        name = "a"
        matchers = ["severity >= high"]
        [[route.routes.routes]]
        name = "b"
        matchers = ["severity = low"]
        [[route.routes]]
        name = "c"
        matchers = ['severity =~ "HIGH|CRITICAL"']
        [[inhibit_rules]]
        source_matchers = ["detector = a", "detector = b"]
        target_matchers = ["severity = low"]
        equal = ["entity"]
    """
    assert warnings_of(routing(tmp_path, text)) == [
        "inhibit_rules.0.source_matchers: no alert matches all of them",
        "route.routes.0.routes.0.matchers: no alert matches all of them, with those of the routes above",
        "route.routes.1.matchers: no alert matches all of them, with those of the routes above",
    ]


@pytest.mark.parametrize(
    ("repeat", "resolve", "warned"), [("4h", "1h", True), ("1h", "1h", True), ("59m", "1h", False)]
)
def test_a_repeat_that_never_comes_is_warned_about_once(
    tmp_path: Path, repeat: str, resolve: str, warned: bool
) -> None:
    text = f'[route]\nrepeat_interval = "{repeat}"\nresolve_timeout = "{resolve}"\n[[route.routes]]\nname = "a"\n'
    found = warnings_of(routing(tmp_path, text))
    assert (
        found
        == [
            f"route.repeat_interval: it is not shorter than resolve_timeout, {resolve}: "
            "a case resolves before it is repeated"
        ]
        * warned
    )


def test_a_channel_without_a_route_is_warned_about(tmp_path: Path) -> None:
    channel = '[channels.{}]\ntype = "kafka"\ntopic = "t"\n'
    text = '[route]\nchannels = ["a"]\n' + channel.format("a") + channel.format("b")
    assert warnings_of(routing(tmp_path, text)) == ["channels.b: no route sends to it"]


def test_an_example_that_tests_nothing_is_warned_about(tmp_path: Path) -> None:
    example = '[[examples]]\nalert = { severity = "high" }\n'
    assert warnings_of(routing(tmp_path, example)) == [
        "examples.0: it has neither routes nor channels, so it tests nothing"
    ]


def test_an_interval_that_is_always_or_never_is_warned_about(tmp_path: Path) -> None:
    text = """
        [time_intervals.all]
        location = "Europe/Berlin"
        [time_intervals.none]
        days_of_month = [30, -31]
        months = ["feb"]
        [time_intervals.leap]
        days_of_month = [29]
        months = ["feb"]
        [time_intervals.last]
        days_of_month = [31]
        [time_intervals.halves]
        times = ["00:00-12:00", "12:00-24:00"]
        [time_intervals.week]
        weekdays = ["mon-sun"]
        [time_intervals.round]
        times = ["11:59-12:00", "12:00-11:59"]
        days_of_month = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, -17, -16, -15, -14, -13, -12, -11, -10, -9, -8,
                         -7, -6, -5, -4, -3, -2, -1]
        [time_intervals.most]
        times = ["00:00-12:00", "12:01-24:00"]
    """
    assert warnings_of(routing(tmp_path, text)) == [
        "time_intervals.all: every moment is in it",
        "time_intervals.none: no day fits all of its conditions, so no moment is in it",
        *(f"time_intervals.{name}: every moment is in it" for name in ("halves", "week", "round")),
    ]


def test_a_usual_file_has_no_warnings(tmp_path: Path) -> None:
    assert warnings_of(routing(tmp_path, RULE.format('["entity"]') + "[route]\ngroup_by = ['entity']\n")) == []
