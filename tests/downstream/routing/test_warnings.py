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
    example = '[[examples]]\nalert = { card_brand = "visa" }\n'
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


def test_a_usual_file_has_no_warnings(tmp_path: Path) -> None:
    assert warnings_of(routing(tmp_path, RULE.format('["entity"]') + "[route]\ngroup_by = ['entity']\n")) == []
