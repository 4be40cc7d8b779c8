"""Examples in the routing file are checked against its routes."""

from pathlib import Path

from lozenge_downstream.routing.config import Routing
from lozenge_downstream.routing.examples import failures, routes_of
from tests.downstream.routing.files import TREE

LABELS = {"detector": "large_amount", "severity": "high", "entity": "card:7"}


def test_examples_say_what_is_not_as_they_say(tmp_path: Path) -> None:
    examples = [
        {"alert": LABELS, "routes": ["audit", "urgent"], "channels": ["oncall", "archive"]},
        {"alert": LABELS | {"severity": "low"}, "channels": ["oncall"]},
        {"alert": {"severity": "info"}, "routes": []},
    ]
    read = Routing.model_validate({"route": TREE, "examples": examples})
    assert list(failures(read)) == [
        ("examples.1", "channels should be oncall, and are archive, ops"),
        ("examples.2", "routes should be none, and are default"),
    ]
    shown = routes_of(read, LABELS)
    assert [s["route"] for s in shown] == ["audit", "urgent"]
    assert shown[0]["case"] == {"entity": "card:7"}
