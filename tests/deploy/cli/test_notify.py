"""The verbs for notifications, against a notifier's API that is served and a store that is real."""

import json
from pathlib import Path

import pytest

from lozenge.errors import UsageError
from lozenge_deploy.cli.notify import _author
from lozenge_downstream.channels.kafka import Channel
from lozenge_downstream.routing.matchers import parse
from tests.deploy.command import invoke
from tests.downstream.conftest import Desk, alert_record
from tests.http_server import QuietHandler, serving


def test_a_silence_is_added_listed_and_ended(desk: Desk, tmp_path: Path) -> None:
    assert "there is no silence" in invoke("silence", "ls", cwd=tmp_path).stderr
    made = invoke("silence", "add", "detector=large_amount", "--for", "2h", "--reason", "works", cwd=tmp_path)
    assert made.returncode == 0, made.stderr
    (row,) = json.loads(invoke("silence", "ls", "-o", "json", cwd=tmp_path).stdout)
    assert (row["reason"], row["matchers"]) == ("works", ['detector = "large_amount"'])
    assert invoke("silence", "end", row["id"], cwd=tmp_path).returncode == 0
    again = invoke("silence", "end", row["id"], cwd=tmp_path)
    assert (again.returncode, "`lozenge silence ls` shows the active ones" in again.stderr) == (2, True)


def test_a_silence_warns_of_a_label_that_no_alert_has_and_of_its_equal(desk: Desk, tmp_path: Path) -> None:
    made = [invoke("silence", "add", "detectr=large_amount", "--reason", "works", cwd=tmp_path) for _ in range(2)]
    assert [run.returncode for run in made] == [0, 0]
    assert all("no known alert has the label detectr" in run.stderr for run in made), made
    assert ["has the same matchers, and is active too" in run.stderr for run in made] == [False, True]


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


@pytest.mark.parametrize(
    ("status", "answer"),
    [(404, b"[]"), (404, b'"no"'), (500, b'{"message": "x"}'), (422, b'{"error": {"type": "x"}}'), (200, b"<html>")],
    ids=repr,
)
def test_an_address_at_which_something_else_answers_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, status: int, answer: bytes
) -> None:
    class Other(QuietHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.send_header("content-length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

    with serving(Other) as url:
        monkeypatch.setenv("LOZENGE_NOTIFIER_URL", url)
        run = invoke("silence", "ls", cwd=tmp_path)
    assert (run.returncode, "it is not a notifier" in run.stderr) == (3, True), run.stderr


def test_a_token_that_cannot_be_sent_is_refused_by_its_variable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOZENGE_NOTIFIER_TOKEN", "schlüssel")
    run = invoke("silence", "ls", cwd=tmp_path)
    assert (run.returncode, "LOZENGE_NOTIFIER_TOKEN: a token has printable" in run.stderr) == (2, True), run.stderr


def test_a_user_without_a_name_must_give_an_author(monkeypatch: pytest.MonkeyPatch) -> None:
    def nobody() -> str:
        raise KeyError("getpwuid(): uid not found: 4711")

    monkeypatch.setattr("getpass.getuser", nobody)
    assert _author("ann") == "ann"
    with pytest.raises(UsageError, match="the author is unknown") as caught:
        _author(None)
    assert "--author" in caught.value.hint
