"""Verdicts and snoozes of analysts over real HTTP, and what is published of them."""

from collections.abc import Callable

import pytest

from lozenge.contracts.topics import Topics
from lozenge_downstream.api.feedback_records import FeedbackLinks
from lozenge_downstream.model import ReceivedRecord
from lozenge_downstream.store import StoreUnavailable
from tests.downstream.api.conftest import Client, alert_id, feedback
from tests.downstream.conftest import Desk

TOPICS = Topics()
MakeRecord = Callable[..., ReceivedRecord]
TOKEN = "a token"
LINKS = FeedbackLinks("a secret of sixteen", "https://lozenge.example.com/")


def test_a_verdict_goes_to_kafka_and_the_last_word_counts(client: Client, desk: Desk, record: MakeRecord) -> None:
    id = alert_id(desk, record())
    for verdict in ("confirmed", "false_alarm"):
        said = {"alert_id": id, "verdict": verdict, "author": "ann", "note": "called them"}
        assert client.ask("POST", "/feedback", said)[0] == 200
    with desk.store.reading() as t:
        assert t.feedback.counts() == {("large_amount", "r1", "false_alarm"): 1}
    sent = feedback(desk)
    assert [(f["verdict"], f["snoozed_until"]) for f in sent] == [("confirmed", None), ("false_alarm", None)]
    assert (sent[0]["alert_id"], sent[0]["release"], sent[0]["entity"]) == (id, "r1", "card:card-7")


def test_a_snooze_silences_the_card_for_this_detector(client: Client, desk: Desk, record: MakeRecord) -> None:
    id = alert_id(desk, record(0))
    said = {"alert_id": id, "verdict": "snooze", "author": "ann"}
    assert "silence" in client.ask("POST", "/feedback", said)[1]
    desk.take(record(1), record(2, entity={"type": "card", "id": "card-8"}), record(3, detector="card_velocity"))
    assert len(desk.notifications()) == 3, "one before, another card's, and another detector's"


def test_a_snooze_goes_to_kafka_and_is_no_verdict(client: Client, desk: Desk, record: MakeRecord) -> None:
    id = alert_id(desk, record())
    for verdict in ("confirmed", "snooze"):
        said = {"alert_id": id, "verdict": verdict, "author": "ann", "seconds": 3600}
        assert client.ask("POST", "/feedback", said)[0] == 200
    _, snoozed = feedback(desk)
    assert (snoozed["verdict"], snoozed["snoozed_until"].timestamp()) == ("snooze", desk.now + 3600)
    with desk.store.reading() as t:
        assert t.feedback.precision() == {("large_amount", "r1"): 1.0}
    assert [v["verdict"] for v in client.ask("GET", f"/alerts/{id}")[1]["feedback"]] == ["confirmed", "snooze"]


def test_a_snooze_that_is_sent_twice_is_one_silence(client: Client, desk: Desk, record: MakeRecord) -> None:
    said = {"alert_id": alert_id(desk, record()), "verdict": "snooze", "author": "ann"}
    (first,) = {client.ask("POST", "/feedback", said)[1]["silence"] for _ in range(2)}
    desk.now += 20
    assert client.ask("POST", "/feedback", said)[1]["silence"] == first
    assert [s["id"] for s in client.ask("GET", "/silences")[1]] == [first]
    assert len(feedback(desk)) == 1


@pytest.mark.parametrize(
    ("other", "later"),
    [({"author": "bob"}, 0), ({"note": "a test card"}, 0), ({"seconds": 3600}, 0), ({}, 3600)],
    ids=["another person", "another reason", "another time", "an hour later"],
)
def test_another_snooze_is_a_silence_of_its_own(
    other: dict[str, object], later: float, client: Client, desk: Desk, record: MakeRecord
) -> None:
    said = {"alert_id": alert_id(desk, record()), "verdict": "snooze", "author": "ann"}
    first = client.ask("POST", "/feedback", said)[1]["silence"]
    desk.now += later
    assert client.ask("POST", "/feedback", said | other)[1]["silence"] != first
    assert len(feedback(desk)) == 2


def test_a_snooze_after_its_silence_was_ended_is_a_new_one(client: Client, desk: Desk, record: MakeRecord) -> None:
    said = {"alert_id": alert_id(desk, record()), "verdict": "snooze", "author": "ann"}
    first = client.ask("POST", "/feedback", said)[1]["silence"]
    assert client.ask("DELETE", f"/silences/{first}")[0] == 200
    assert client.ask("POST", "/feedback", said)[1]["silence"] != first


def test_a_snooze_that_cannot_go_to_kafka_is_no_silence_either(
    client: Client, desk: Desk, record: MakeRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise StoreUnavailable("writing the store: it is full")

    said = {"alert_id": alert_id(desk, record()), "verdict": "snooze", "author": "ann"}
    monkeypatch.setattr("lozenge_downstream.store.positions.Outbox.send", full)
    assert client.ask("POST", "/feedback", said)[0] == 503
    assert client.ask("GET", "/silences")[1] == []
