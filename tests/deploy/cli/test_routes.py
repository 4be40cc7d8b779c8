"""The verbs for the routing file: it is checked, and its versions are shown."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lozenge_deploy.observe.record_view import decoded
from lozenge_downstream.model import RoutingSource
from lozenge_downstream.store.routing_versions import RoutingVersion
from tests.deploy.command import invoke
from tests.downstream.conftest import Desk, alert_record

VALID = """
[route]
[[route.routes]]
name = "urgent"
matchers = ["severity >= high"]
[[examples]]
alert = { severity = "high" }
routes = ["ROUTE"]
"""


@pytest.mark.parametrize(
    ("text", "code", "says"),
    [
        (VALID.replace("ROUTE", "urgent"), 0, "is valid, and its 1 examples hold"),
        (VALID.replace("ROUTE", "default"), 1, "routes should be default, and are urgent"),
        ("[route]\ngroup_wait = 3\n[rate_limit]\nalerts = 0\n", 2, "rate_limit.alerts: "),
        ("nonsense", 2, "reading the routing file"),
    ],
)
def test_a_routing_file_is_tested(tmp_path: Path, text: str, code: int, says: str) -> None:
    (tmp_path / "routing.toml").write_text(text)
    run = invoke("routes", "test", cwd=tmp_path)
    assert run.returncode == code, run.stderr
    assert says in run.stdout + run.stderr


def test_a_routing_file_is_tested_without_its_secrets_unless_requested(tmp_path: Path) -> None:
    ops = '[channels.ops]\ntype = "slack"\nurl = { env = "NOT_SET_ANYWHERE" }\n'
    (tmp_path / "routing.toml").write_text(ops + VALID.replace("ROUTE", "urgent"))
    (tmp_path / "alert.json").write_text('{"severity": "critical"}')
    for verb in (["test"], ["show", "alert.json"]):
        run = invoke("routes", *verb, cwd=tmp_path)
        assert run.returncode == 0, run.stderr
    run = invoke("routes", "test", "--secrets", cwd=tmp_path)
    assert (run.returncode, "NOT_SET_ANYWHERE is not set" in run.stderr) == (2, True)


def test_labels_that_no_alert_has_are_warned_about_and_those_that_the_notifier_knows_are_not(
    desk: Desk, tmp_path: Path
) -> None:
    rule = '[[inhibit_rules]]\nsource_matchers = ["severity = critical"]\ntarget_matchers = ["severity = low"]\n'
    (tmp_path / "routing.toml").write_text(rule + 'equal = ["card_brand"]\n')
    run = invoke("routes", "test", cwd=tmp_path)
    assert (run.returncode, "is valid" in run.stdout) == (0, True)
    assert "warning: inhibit_rules.0.equal: " in run.stderr
    assert "has the label card_brand" in run.stderr
    (said,) = json.loads(invoke("routes", "test", "-o", "json", cwd=tmp_path).stdout)
    assert len(said["warnings"]) == 1
    desk.take(alert_record(0, labels={"card_brand": "visa"}))
    assert invoke("routes", "test", cwd=tmp_path).stderr == ""


def test_where_an_alert_goes_is_shown(tmp_path: Path) -> None:
    (tmp_path / "routing.toml").write_text(VALID.replace("ROUTE", "urgent"))
    (tmp_path / "alert.json").write_text('{"severity": "critical", "entity": {"type": "card", "id": "7"}}')
    run = invoke("routes", "show", "alert.json", "-o", "json", cwd=tmp_path)
    assert [row["route"] for row in json.loads(run.stdout)] == ["urgent"]
    (tmp_path / "alert.json").write_text("[]")
    run = invoke("routes", "show", "alert.json", cwd=tmp_path)
    assert (run.returncode, "it holds no alert" in run.stderr) == (2, True)


LABELLED = """
[route]
[[route.routes]]
name = "large"
matchers = ["detector = large_amount", "severity >= high", "entity = card:card-7", "team = fraud", "entity_type = card"]
"""
WITHOUT_ENTITY = {"alert_id": "a", "detector": "large_amount", "severity": "high", "release": "r1", "labels": {}}


@pytest.mark.parametrize("shape", [lambda r: [r], lambda r: r, lambda r: r["value"], lambda r: [r["value"]]])
def test_where_a_peeked_alert_goes_is_shown(tmp_path: Path, shape: Callable[[Any], Any]) -> None:
    (tmp_path / "routing.toml").write_text(LABELLED)
    sent = alert_record(labels={"team": "fraud"})
    peeked = {"partition": 2, "offset": 0, "time": None, "key": "card-7", "value": decoded(sent.value), "headers": {}}
    (tmp_path / "alert.json").write_text(json.dumps(shape(peeked)))
    run = invoke("routes", "show", "alert.json", "-o", "json", cwd=tmp_path)
    assert [row["route"] for row in json.loads(run.stdout)] == ["large"], run.stderr


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"detector": 5}, "detector: labels are text"),
        ({"entity": {"type": "card"}}, "entity: labels are text"),
        ([{"detector": "a"}, {"detector": "b"}], "it holds 2 of them"),
        ({"offset": 1, "value": {"notification_id": "n", "severity": "high"}}, "the record holds no alert"),
        ({"offset": 1, "value": None}, "offset, value: labels are text"),
        (WITHOUT_ENTITY, "an incomplete one"),
        (WITHOUT_ENTITY | {"entity": {"type": "card", "id": "7"}, "severity": 3}, "an incomplete one"),
        ({"detector": "\ud800"}, "reading the alert alert.json"),
    ],
    ids=str,
)
def test_a_file_that_holds_no_alert_is_refused(tmp_path: Path, given: Any, says: str) -> None:
    (tmp_path / "routing.toml").write_text(LABELLED)
    (tmp_path / "alert.json").write_text(json.dumps(given))
    run = invoke("routes", "show", "alert.json", "-o", "json", cwd=tmp_path)
    assert (run.returncode, run.stdout, says in run.stderr) == (2, "", True), run.stderr
    assert "Traceback" not in run.stderr


def test_the_versions_of_the_file_are_shown(desk: Desk, tmp_path: Path) -> None:
    assert "has read no routing file" in invoke("routes", "history", cwd=tmp_path).stderr
    with desk.store.transaction() as t:
        t.routing_versions.record(RoutingVersion("a1", "/r.toml", VALID))
        t.routing_versions.record(RoutingVersion("b2", "/r.toml", "", "it is empty"))
    desk.pipeline.source = RoutingSource("/r.toml", "a1")
    rows = json.loads(invoke("routes", "history", "-o", "json", cwd=tmp_path).stdout)
    assert [(row["version"], row["used"], row["problems"]) for row in rows] == [
        ("b2", False, "it is empty"),
        ("a1", True, ""),
    ]
