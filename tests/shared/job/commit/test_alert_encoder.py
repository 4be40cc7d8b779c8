"""The record of an alert: its id, its key, its headers, and what of it the detector cannot choose."""

import re
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from lozenge import Settings
from lozenge.contracts.avro import Codec
from lozenge.contracts.partitioner import partition_of
from lozenge.contracts.record import Record
from lozenge.detector.events import Alert
from lozenge.job.batch_result import DraftAlert
from lozenge.job.commit.alert_encoder import AlertEncoder, derived
from lozenge.job.identity import Identity
from lozenge.protocol.coverage import Versions
from tests.shared.job.commit.scripted import AT, LIVE, PARTITIONS, SHADOW, declared

DETECTED = AT + timedelta(seconds=3)
TRACE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


class Above(Settings):
    limit: float = 100.0


def encoder(identity: Identity = LIVE, settings: Settings | None = None) -> AlertEncoder:
    versions = Versions((settings or Above()).digest, {"limits": "0123456789ab"})
    return AlertEncoder(identity, declared(severity="high"), versions)


def draft(*, trigger: tuple[int, int] | None = (1, 7), traceparent: str | None = TRACE, **alert: Any) -> DraftAlert:
    return DraftAlert(
        Alert(reason="seen", **alert), "card_1", "event_1", AT, AT, trigger=trigger, traceparent=traceparent
    )


def decoded(record: Record) -> dict[str, Any]:
    return Codec.of("alert").decode(record.value)


def written(**alert: Any) -> dict[str, Any]:
    return decoded(encoder().record(draft(**alert), DETECTED))


def test_the_id_of_an_alert_depends_neither_on_release_nor_settings_nor_the_text() -> None:
    first = encoder().alert_id(draft())
    assert encoder(replace(LIVE, release="r9"), Above(limit=5)).alert_id(draft(title="other")) == first
    assert encoder(SHADOW).alert_id(draft()) == first


def test_the_id_differs_by_entity_and_by_key() -> None:
    ids = {encoder().alert_id(d) for d in (draft(), replace(draft(), entity="c"), replace(draft(), dedup_key="k"))}
    assert len(ids) == 3


def test_a_record_is_keyed_by_its_entity_and_lies_in_the_partition_of_that_key() -> None:
    record = encoder().record(draft(), DETECTED)
    assert (record.topic, record.key) == (LIVE.alerts, b"card_1")
    assert record.partition == partition_of(b"card_1", PARTITIONS)


def test_the_headers_suffice_to_route_a_record_and_to_drop_a_repeat() -> None:
    headers = dict(encoder().record(draft(), DETECTED).headers)
    assert headers["ce_id"] == encoder().alert_id(draft()).encode()
    assert (headers["ce_source"], headers["ce_subject"]) == (b"/detectors/spotter", b"card_1")
    assert (headers["ce_type"], headers["ce_time"]) == (b"lozenge.alert.v1", b"2026-03-01T12:00:00.000000Z")
    assert headers["traceparent"] == TRACE.encode()


def test_a_record_names_release_settings_and_both_times() -> None:
    found = written()
    assert (found["detector"], found["release"], found["settings_digest"]) == ("spotter", "r2", Above().digest)
    assert found["table_versions"] == {"limits": "0123456789ab"}
    assert (found["event_time"], found["detected_at"]) == (AT, DETECTED)
    assert (found["entity"], found["trigger"]) == ({"type": "card", "id": "card_1"}, {"partition": 1, "offset": 7})


def test_title_and_severity_are_those_of_the_declaration_unless_the_detector_gives_its_own() -> None:
    assert [written()[name] for name in ("title", "severity")] == ["A test", "high"]
    assert [written(title="T", severity="low")[name] for name in ("title", "severity")] == ["T", "low"]


@pytest.mark.parametrize("title", ["", "  ", "\n", "\u3000", "\u200b", "\ufeff"], ids=ascii)
def test_a_title_that_shows_nothing_is_that_of_the_declaration(title: str) -> None:
    assert written(title=title)["title"] == "A test"


def test_no_detector_can_name_another_owner() -> None:
    assert written(labels={"owner": "others", "team": "a"})["labels"] == {"owner": "tests", "team": "a"}


def test_evidence_has_no_gaps_and_values_are_text() -> None:
    assert written(evidence=["e1", None, "e2"], values={"n": 5})["evidence"] == {
        "event_ids": ["e1", "e2"],
        "values": {"n": "5"},
    }


def test_an_alert_without_a_triggering_record_has_a_trace_of_its_own_at_each_replay() -> None:
    group = draft(trigger=None, traceparent=None)
    record = encoder().record(group, DETECTED)
    trace = derived(encoder().alert_id(group))
    assert decoded(record)["trigger"] is None
    assert dict(record.headers)["traceparent"] == trace.encode()
    assert re.fullmatch(r"00-[0-9a-f]{32}-[0-9a-f]{16}-01", trace)
