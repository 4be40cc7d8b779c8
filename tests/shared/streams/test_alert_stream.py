"""The alerts of a detector as a stream: its fields are those of an alert, its topic is where they are."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import get_args

from lozenge.contracts.avro import Codec
from lozenge.contracts.schemas import newest, packaged
from lozenge.contracts.topics import Topics
from lozenge.detector.events import Severity
from lozenge.streams.alert_stream import PATHS, alert_stream, event_of
from lozenge.streams.definition import StreamDefinition
from lozenge.streams.fields import problems
from lozenge.streams.folder import read, write_copy
from tests.alert_streams import LARGE, alert

TOPICS = Topics("acme.", 6)


def test_its_topic_is_that_of_the_alerts_and_belongs_to_their_detector() -> None:
    assert LARGE.events(TOPICS, "card") == LARGE.events(TOPICS) == "acme.pay.alerts.large_amount.v1"
    assert LARGE.topics(TOPICS, ()) == []
    [kept] = [
        each.config["retention.ms"] for each in TOPICS.detector("large_amount").contracts() if "alerts" in each.name
    ]
    assert LARGE.retention == timedelta(milliseconds=int(kept))
    assert (LARGE.key(""), LARGE.column("card"), LARGE.rekeys) == ("card", "entity", ())


def test_its_fields_are_such_as_a_folder_may_declare() -> None:
    assert list(problems(LARGE.avro)) == []
    fields = {field.name: field for field in LARGE.fields}
    assert list(fields) == [name for name in PATHS if name not in ("event_id", "event_time")]
    assert fields["severity"].values == frozenset(get_args(Severity))
    assert fields["detector"].example == "large_amount"
    assert [name for name, field in fields.items() if field.optional] == ["model_version"]
    kinds = {name: fields[name].kind for name in ("entity", "score", "evidence", "values", "detected_at")}
    assert kinds == {
        "entity": "string",
        "score": "double",
        "evidence": "array",
        "values": "map",
        "detected_at": "timestamp-micros",
    }


def test_each_field_of_an_alert_is_one_of_its_event() -> None:
    declared = {path.split(".")[0] for path in PATHS.values()}
    assert {field["name"] for field in newest("alert").definition["fields"]} - declared == {"trigger"}


def test_records_of_every_version_are_read_as_the_newest_alert() -> None:
    versions = [schema for schema in packaged() if schema.name == "alert"]
    assert LARGE.schemas == versions
    assert LARGE.readers(versions) == dict.fromkeys(versions, newest("alert"))


def test_the_event_of_a_decoded_alert_has_its_fields_without_nesting() -> None:
    codec = Codec.of("alert")
    event = event_of(codec.decode(codec.encode(alert(3, reason="much"))))
    assert event == {
        "event_id": "alert-3",
        "event_time": datetime(2026, 3, 1, 12, tzinfo=UTC),
        "entity": "card_1",
        "detector": "large_amount",
        "severity": "high",
        "score": 0.75,
        "title": "Large amount",
        "reason": "much",
        "evidence": ["event-3"],
        "values": {"amount": "300"},
        "labels": {"owner": "fraud"},
        "release": "r1",
        "settings_digest": "d1",
        "model_version": None,
        "table_versions": {},
        "detected_at": datetime(2026, 3, 1, 12, 0, 1, tzinfo=UTC),
    }
    assert event_of({"alert_id": "a"})["entity"] is None


def test_a_release_has_a_copy_of_it(tmp_path: Path) -> None:
    write_copy(LARGE, tmp_path)
    assert read(tmp_path / "alerts.large_amount") == LARGE
    assert StreamDefinition.model_validate_json(LARGE.model_dump_json()) == LARGE
    assert alert_stream("large_amount", "account").digest != LARGE.digest
