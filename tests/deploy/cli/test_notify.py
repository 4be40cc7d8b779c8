"""The verbs for notifications, against a notifier's API that is served and a store that is real."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from lozenge_deploy.observe.record_view import decoded
from lozenge_downstream.api import api
from lozenge_downstream.api.server import ApiServer
from lozenge_downstream.channels.kafka import Channel
from lozenge_downstream.routing.matchers import parse
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


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    """A desk whose API is where the verbs look for it, with a token."""
    desk = Desk(f"sqlite:///{tmp_path / 'store.db'}")
    with ApiServer(api(desk.store, desk.pipeline, lambda: None, "a token", None), "127.0.0.1:0") as serving:
        monkeypatch.setenv("LOZENGE_NOTIFIER_URL", f"http://127.0.0.1:{serving.port}")
        monkeypatch.setenv("LOZENGE_NOTIFIER_TOKEN", "a token")
        yield desk
    desk.store.close()


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


def test_a_silence_is_added_listed_and_ended(desk: Desk, tmp_path: Path) -> None:
    assert "there is no silence" in invoke("silence", "ls", cwd=tmp_path).stderr
    made = invoke("silence", "add", "detector=large_amount", "--for", "2h", "--reason", "works", cwd=tmp_path)
    assert made.returncode == 0, made.stderr
    (row,) = json.loads(invoke("silence", "ls", "-o", "json", cwd=tmp_path).stdout)
    assert (row["reason"], row["matchers"]) == ("works", ['detector = "large_amount"'])
    assert invoke("silence", "end", row["id"], cwd=tmp_path).returncode == 0
    again = invoke("silence", "end", row["id"], cwd=tmp_path)
    assert (again.returncode, "`lozenge silence ls` shows the active ones" in again.stderr) == (2, True)


def test_open_cases_are_listed_and_shown(desk: Desk, tmp_path: Path) -> None:
    assert "there is no such open case" in invoke("cases", "ls", cwd=tmp_path).stderr
    desk.routing(route={"group_by": ["entity"]})
    assert invoke("silence", "add", "severity=high", "--reason", "works", cwd=tmp_path).returncode == 0
    desk.take(alert_record(0))
    run = invoke("cases", "ls", "detector=large_amount", "severity >= high", "-n", "1", cwd=tmp_path)
    assert run.returncode == 0, run.stderr
    head, row = run.stdout.splitlines()
    assert head.split() == [
        "case_id", "route", "group", "severity", "score", "notified", "waiting", "opened_at", "notified_at",
        "next_evaluation_at", "muted"
    ]  # fmt: skip
    for part in ("default", "entity=card:card-7", "high", "0.9", "2026-03-01 12:00:02", ": works"):
        assert part in row, part
    assert "these are the newest 1" in run.stderr
    (case,) = json.loads(invoke("cases", "ls", "-o", "json", cwd=tmp_path).stdout)
    shown = invoke("cases", "show", case["case_id"], cwd=tmp_path)
    assert ("Large amount" in shown.stdout, shown.stdout.count(": works")) == (True, 2), shown.stderr
    (found,) = json.loads(invoke("cases", "show", case["case_id"], "-o", "json", cwd=tmp_path).stdout)
    assert [alert["detector"] for alert in found["alerts"]] == ["large_amount"]
    wrong = invoke("cases", "ls", "detector", cwd=tmp_path)
    assert (wrong.returncode, "'detector' is no matcher" in wrong.stderr) == (2, True)
    assert invoke("cases", "show", "unknown", cwd=tmp_path).returncode == 2


def test_rate_limited_alerts_are_released_and_get_feedback(desk: Desk, tmp_path: Path) -> None:
    desk.routing(rate_limit={"alerts": 1})
    alert, _ = (received.alert for received in desk.take(alert_record(0), alert_record(1)))
    assert "1 alerts of large_amount: released" in invoke("rate-limits", "release", "large_amount", cwd=tmp_path).stdout
    assert alert is not None
    said = invoke("feedback", alert.id, "false-alarm", "--note", "a gift", cwd=tmp_path)
    assert said.stdout.strip() == "recorded: false-alarm", said.stderr
    snoozed = invoke("feedback", alert.id, "snooze", "--for", "2d", cwd=tmp_path)
    assert "recorded: snooze, as silence " in snoozed.stdout, snoozed.stderr
    assert invoke("feedback", alert.id, "perhaps", cwd=tmp_path).returncode == 2
    with desk.store.reading() as t:
        assert t.feedback.precision() == {("large_amount", "r1"): 0.0}


def test_a_dry_run_shows_what_would_change_and_changes_nothing(desk: Desk, tmp_path: Path) -> None:
    channel = Channel(type="kafka", topic="theirs")
    desk.routing(channels={"ops": channel}, rate_limit={"alerts": 1}, route={"channels": ["ops"]})
    alert, _ = (received.alert for received in desk.take(alert_record(0), alert_record(1)))
    assert alert is not None
    with desk.store.transaction() as t:
        t.deliveries.disable("ops", "HTTP 410")
        holds = t.silences.add([parse("severity = low")], "ann", "works", desk.now + 600)
    for verb, says in (
        (["silence", "add", "detector=large_amont", "--reason", "works"], "it would be active until "),
        (["silence", "end", holds.id], f"silence {holds.id} would end"),
        (["channels", "enable", "ops"], "ops would be enabled"),
        (["rate-limits", "drop", "large_amount"], "1 alerts of large_amount: would be dropped"),
        (["feedback", alert.id, "snooze"], "would be recorded: snooze"),
        (["notifications", "replay", "--to", "ops", "--from", "0"], "notifications would be sent to ops again"),
    ):
        run = invoke(*verb, "--dry-run", cwd=tmp_path)
        assert (run.returncode, says in run.stdout) == (0, True), (verb, run)
        assert ("no alert of large_amont was received" in run.stderr) is ("add" in verb)
    with desk.store.reading() as t:
        assert ([s.id for s in t.silences.all()], t.received_alerts.rate_limited()) == ([holds.id], {"large_amount": 1})
        assert (t.feedback.counts(), t.deliveries.disabled()) == ({}, {"ops": "HTTP 410"})


@pytest.mark.parametrize("id", ["../healthz", "..", "", "a b/ü"])
def test_an_invalid_alert_id_is_refused_with_one_sentence(desk: Desk, tmp_path: Path, id: str) -> None:
    run = invoke("why", id, cwd=tmp_path)
    assert (run.returncode, f"no alert {id!r} was received" in run.stderr, "Traceback" in run.stderr) == (
        2,
        True,
        False,
    )


def test_a_number_that_no_notification_has_is_refused_with_one_sentence(desk: Desk, tmp_path: Path) -> None:
    run = invoke("notifications", "replay", "--to", "ops", "--from", "9" * 23, cwd=tmp_path)
    assert (run.returncode, "from: " in run.stderr, "no notifier" in run.stderr) == (2, True, False), run.stderr


def test_without_a_notifier_a_verb_says_where_it_looked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOZENGE_NOTIFIER_URL", "http://127.0.0.1:1")
    run = invoke("silence", "ls", cwd=tmp_path)
    assert (run.returncode, "asking the notifier at http://127.0.0.1:1" in run.stderr) == (3, True)
    assert "Traceback" not in run.stderr
