"""Titles and texts of any length and content reach every channel: none is refused for its text."""

import email
import email.policy
import json
import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lozenge.contracts.display_text import is_blank
from lozenge.contracts.headers import TRACEPARENT
from lozenge_downstream.channels.alertmanager import alerts
from lozenge_downstream.channels.base.channel import Message
from lozenge_downstream.channels.email import compose
from lozenge_downstream.channels.pagerduty import event
from lozenge_downstream.channels.slack import payload
from lozenge_downstream.ingest.decode import enrich
from lozenge_downstream.model import Classification, ReceivedRecord, RoutingSource, Status
from lozenge_downstream.pipeline.notify_policy import open_case
from lozenge_downstream.pipeline.render import document, fields_of
from lozenge_downstream.pipeline.render import subject as subject_of
from lozenge_downstream.routing.tree import Route
from tests.downstream.conftest import NOON, Desk, alert_fields, alert_record

MakeRecord = Callable[..., ReceivedRecord]
LONG = "x" + "ä&" * 5_000
BLANK = ("  ", "\u3000", "\u200b", "\n", "\0")
HEADER_BYTES = 998
"""RFC 5322, section 2.1.1."""


def sent(desk: Desk, record: ReceivedRecord) -> Message:
    """What channels are given for this alert."""
    desk.routing(route={"group_by": ["entity"]})
    desk.take(record)
    notification = desk.notifications()[-1]
    return Message(notification["notification_id"], json.dumps({"data": notification}), notification)


def subject(message: Message) -> tuple[str, int]:
    """The subject of a mail, and the bytes of its header."""
    raw = compose(message, "lozenge@example.com", ("ops@example.com",)).as_bytes()
    header = re.search(rb"^Subject:(.*(?:\r?\n[ \t].*)*)", raw, re.MULTILINE)
    assert header is not None
    value = email.message_from_bytes(raw, policy=email.policy.default)["Subject"]
    return str(value).lstrip(" "), len(
        header[0]
    )  # the space is of the fold, where the value begins on a line of its own


@pytest.mark.parametrize("title", [LONG, "界" * 10_000, "🏴" * 10_000, "&" * 10_000], ids=lambda title: title[:3])
def test_a_long_title_is_cut_to_what_each_channel_takes(desk: Desk, record: MakeRecord, title: str) -> None:
    message = sent(desk, record(title=title))
    fields: Any = message.fields
    assert len(fields["title"]) == 500
    assert fields["title"].endswith("...")
    assert fields["alerts"][0]["title"] == fields["title"]
    text = payload(fields)["text"]
    assert len(text) < 1_020
    assert text.endswith("... (opened)")
    summary = event(fields, "key")["payload"]["summary"]
    assert (len(summary) <= 1_024, summary[-3:]) == (True, "...")
    line, size = subject(message)
    assert size < HEADER_BYTES
    assert line.endswith("... (opened)")
    mail = compose(message, "lozenge@example.com", ("ops@example.com",))
    assert fields["title"] in mail.get_content(), "the subject lacks its end"


def test_a_title_of_several_detectors_is_cut_too(desk: Desk, record: MakeRecord) -> None:
    desk.routing(route={"group_by": ["entity"], "group_wait": "1m"})
    desk.take(*(record(n, detector=f"detector_{n}_{'d' * 90}", title=LONG, score=0.9) for n in range(9)))
    desk.later(60)
    fields: Any = desk.notifications()[-1]
    assert (len(fields["title"]), fields["title"][-3:]) == (1_000, "...")
    assert len(event(fields, "key")["payload"]["summary"]) <= 1_024


@pytest.mark.parametrize("cut", range(2_890, 2_900))
def test_no_escape_is_divided_where_a_text_is_cut(cut: int) -> None:
    fields: dict[str, Any] = {"title": "a" * (cut - 1_900) + "&<>" * 100, "text": "a" * cut + "&<>" * 100}
    fields |= {"status": "opened", "severity": "high", "subject": "card:1", "case_id": "c", "alerts": []}
    body = payload(fields)
    for text in (body["text"], body["attachments"][0]["text"]):
        assert re.fullmatch(r"a+(?:&(?:amp|lt|gt);)*\.\.\.(?: \(opened\))?", text), text[-20:]
    assert len(body["attachments"][0]["text"]) <= 2_900


@pytest.mark.parametrize("title", BLANK, ids=ascii)
def test_a_blank_title_becomes_the_name_of_the_detector(desk: Desk, record: MakeRecord, title: str) -> None:
    message = sent(desk, record(title=title))
    assert message.fields["title"] == "large_amount"
    assert event(message.fields, "key")["payload"]["summary"] == "large_amount"
    assert subject(message)[0] == "[high] large_amount (opened)"


def test_control_characters_and_line_ends_refuse_no_mail(desk: Desk, record: MakeRecord) -> None:
    message = sent(desk, record(title="a\0b\r\nBcc: x@example.com\x1b", reason="c\0d\x85"))
    assert subject(message)[0] == "[high] a\ufffdb Bcc: x@example.com\ufffd (opened)"
    mail = compose(message, "lozenge@example.com", ("ops@example.com",))
    assert (b"\0" in mail.as_bytes(), mail["Bcc"]) == (False, None)


def test_a_notification_is_small_however_long_the_fields_of_its_alerts_are(desk: Desk, record: MakeRecord) -> None:
    """One that exceeds what its topic takes would block all after it."""
    long = "ä" * 100_000
    labels = {"merchant": long, "country": long}
    alerts = [record(n, title=long, reason=long, labels=labels, entity={"type": "card", "id": long}) for n in range(25)]
    for route in ({"group_by": ["entity"]}, {"group_by": ["merchant", "country"]}):
        desk.routing(route=route | {"group_wait": "1m"})
        desk.take(*alerts[:12] if "entity" in route["group_by"] else alerts[12:])
        desk.later(60)
    with desk.store.reading() as t:
        rows = t.outbox.pending(10)
    assert len(rows) == 2
    for row in rows:
        headers = sum(len(value or b"") for _, value in row.headers)
        assert len(row.key or b"") + len(row.value or b"") + headers < 50_000
        assert len((row.body or "").encode()) < 500_000


ANY = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
LONGER = ANY | st.builds(lambda text, times: text * times, ANY, st.integers(1, 3_000))
LABEL_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")


def groupable(labels: Iterable[str]) -> list[str]:
    """Those by which a route may group besides the entity; "..." means all of them."""
    return sorted(name for name in labels if name not in ("", "...", "entity"))


@given(
    title=LONGER,
    reason=LONGER,
    labels=st.dictionaries(ANY, LONGER, max_size=4),
    entity=LONGER,
    severity=st.just("high") | LONGER,
)
def test_an_alert_of_any_texts_reaches_every_channel(
    title: str, reason: str, labels: dict[str, str], entity: str, severity: str
) -> None:
    raw = alert_fields(0, "large_amount") | {"title": title, "reason": reason, "labels": labels, "severity": severity}
    alert = enrich(raw | {"entity": {"type": "card", "id": entity}}, alert_record(), NOON.timestamp())
    route = Route(group_by=("entity", *groupable(labels)))
    case = open_case(route, alert)
    case.include(alert)
    fields = fields_of(case, Status.OPENED, [alert], alert, 0, NOON.timestamp())
    body = document(fields, case, route, subject_of(case, [alert]), [alert], RoutingSource())
    message = Message("id", body, json.loads(body)["data"])
    shown: Any = message.fields
    assert not is_blank(shown["title"])
    assert len(body) < 400_000
    slack = payload(shown)
    assert len(slack["text"]) < 1_020
    assert len(slack["attachments"][0]["text"]) <= 2_900
    assert not re.search(r"[<>]|&(?!amp;|lt;|gt;)", slack["text"] + slack["attachments"][0]["text"])
    incident = event(shown, "key")["payload"]
    assert not is_blank(incident["summary"])
    assert not is_blank(incident["source"])
    assert len(incident["summary"]) <= 1_024
    line, size = subject(message)
    assert size <= HEADER_BYTES
    assert line.startswith("[")
    (there,) = alerts(shown)
    assert all(LABEL_NAME.fullmatch(name) for name in there["labels"])


@pytest.mark.parametrize("severity", ["high", "\x1f" + "𐀀" * 200, "é" * 40])
@pytest.mark.parametrize("character", ["𐀀", "\u0fff", "é", "a", "🏴", '"', "\\"])
def test_a_subject_of_any_characters_fits_its_header(character: str, severity: str) -> None:
    fields = {
        "title": character * 200,
        "severity": severity,
        "status": "opened",
        "text": "",
        "subject": "",
        "alerts": [],
    }
    fields |= {"created_at": NOON.isoformat(), "case_id": "case"}
    line, size = subject(Message("id", "", fields))
    assert size <= HEADER_BYTES
    assert line.endswith("... (opened)")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=15)
@given(
    texts=st.tuples(*[ANY | st.sampled_from(["\0", "a\0b", ""])] * 5),
    labels=st.dictionaries(ANY, ANY | st.just("\0"), max_size=3),
    score=st.floats() | st.sampled_from([float("nan"), float("inf"), -1.0]),
    at=st.datetimes(datetime(1970, 1, 1), timezones=st.just(UTC)),
    trace=st.binary(max_size=60),
)
def test_no_alert_stops_the_notifier_whatever_it_holds(
    desk: Desk, texts: tuple[str, ...], labels: dict[str, str], score: float, at: datetime, trace: bytes
) -> None:
    id, release, severity, title, entity = texts
    alert = alert_record(
        alert_id=id,
        release=release,
        severity=severity,
        title=title,
        labels=labels,
        entity={"type": "card", "id": entity},
    )
    alert = replace(alert, headers=[(TRACEPARENT, trace)])
    route = {"group_by": ["entity", *groupable(labels)], "group_wait": "1m", "send_resolved": True}
    desk.routing(route=route)
    before = len(desk.notifications())
    (received,) = desk.take(alert)
    for _ in range(2):
        desk.later(4_000)
    notified = len(desk.notifications()) - before
    assert notified == (2 if received.outcome is Classification.ACCEPTED else 0), received.reason
    with desk.store.reading() as t:
        json.dumps(t.case_queries.open([], 100), allow_nan=False)
        if received.alert is not None:
            assert t.alert_history.of(received.alert.id) is not None
