"""A good record of each topic that the platform reads as rows, how it is decoded, and what is done with the row.

Events, alerts and raw records have fuzz targets of their own; of dead letters every record is one.
"""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from typing import Any, NamedTuple

import msgspec

from lozenge.contracts.topics import Topics, platform_table, reference_list
from lozenge.detector.stored_state import check_alert_id, check_entry
from lozenge.file_sources.topics import positions_topic
from lozenge.kafka.compacted_topic import json_row
from lozenge.kafka.schema_topic import schema_in
from lozenge.protocol import file_positions, list_entries, stream_releases, table_records
from lozenge.protocol.app_requests import APPS, AppRelease, AppRequest, AppRow
from lozenge.protocol.coverage import CoverageSegment, gaps, intervals, overlaps
from lozenge.protocol.coverage import newest as newest_segment
from lozenge.protocol.dlq_resolutions import Resolution
from lozenge.protocol.file_positions import FileId, FilePosition, FileState
from lozenge.protocol.list_entries import ListEntry, quoted, version
from lozenge.protocol.source_requests import SOURCES, SourceRelease, SourceRequest, SourceRow
from lozenge.protocol.stream_releases import StreamDeployment, StreamRelease, StreamRow, key_of, state_of
from lozenge_deploy.control.client import history_event
from lozenge_deploy.control.deployments_view import Deployment
from lozenge_deploy.control.records import DeploymentSpec, DeploymentStatus, HistoryEvent, Lease
from lozenge_deploy.local.declared_programs import programs_of_app
from lozenge_deploy.observe.coverage_report import rows_of
from lozenge_deploy.observe.exporter import families
from lozenge_deploy.observe.metrics_reader import reading_of
from lozenge_deploy.observe.metrics_table import App, Snapshot
from lozenge_deploy.operations.declarations.sinks import last_of, sink_row
from lozenge_deploy.operations.file_sources.report import file_row, source_row
from lozenge_deploy.releases.build import Wheel
from lozenge_deploy.releases.release_store import check_release
from tests.streams import AUTH

TOPICS = Topics()
DETECTOR = TOPICS.detector("spotter")
AT = datetime(2026, 3, 1, 12, tzinfo=UTC)
NOW = 1_772_366_400.0


class Rows(NamedTuple):
    """A topic: a good key and value, the decoder of its readers, and what they do with what it returns."""

    key: bytes
    value: bytes
    decode: Callable[[bytes, bytes], Any]
    use: Callable[[Any], object] = repr


def _snapshot() -> bytes:
    samples = {"lozenge_records_total": 5.0, "lozenge_lag_offsets": 2.0, "lozenge_latency_seconds_bucket{le=0.5}": 5.0}
    row = {"app": "spotter", "instance": "g1", "release": "r1", "time": NOW, "samples": samples, "ended": False}
    return json.dumps(row).encode()


def _show_metrics(snapshot: Snapshot) -> None:
    app = App()
    app.take(snapshot)
    reading_of(app, NOW)
    list(families({snapshot.app: app}, NOW))


def _show_coverage(segment: CoverageSegment) -> None:
    found = intervals([segment], {0: 9})
    rows_of(found)
    gaps(found)
    overlaps(found)
    newest_segment([segment])


def _show_spec(spec: DeploymentSpec) -> None:
    spec.job_spec(3, standby=False)
    repr((spec.process, Deployment(spec, None).problem))


def _show_status(status: DeploymentStatus) -> None:
    status.seen_from("host:/tmp")
    shown = Deployment(DeploymentSpec(detector="spotter", revision="1", release="r1"), status)
    repr((shown.phase, shown.problem, shown.fenced))


def _show_stream(row: StreamRow) -> None:
    state = state_of(row.stream, {key_of(row): row})
    repr((state.to_run, state.is_proved, state.next_number(), [release.id for release in state.releases.values()]))


def _show_source(row: SourceRow) -> None:
    state = SOURCES.state_of(row.owner, {SOURCES.key_of(row).decode(): row})
    source_row(row.owner, state, [], {}, 0.0)
    repr((state.release, state.next_number()))


def _show_app(row: AppRow) -> None:
    state = APPS.state_of(row.owner, {APPS.key_of(row).decode(): row})
    sink_row(row.owner, state)
    repr((last_of(state), state.to_run, programs_of_app(state)))


def _schema() -> bytes:
    schema = AUTH.event_schema
    return json.dumps({"id": 902, "name": AUTH.schema_name, "version": 2, "schema": schema.text}).encode()


_LISTED = ListEntry("card_1", "stolen", "ann", AT)
_REQUEST = StreamDeployment("auth", "1", 3, 2, at=AT)
_RELEASE = StreamRelease("auth", 3, {"stream.toml": ""}, at=AT)
_SEGMENT = CoverageSegment("started", "r1", "c7", 1, {0: 0}, {0: 5}, at=NOW)
_RESOLUTION = Resolution("dropped", "id", {0: [(1, 3)]}, 2, by="ann", at=NOW)
_WHEEL = Wheel(file="lozenge-0.2.0-py3-none-any.whl", content=b"PK").model_dump_json().encode()
_ENTRY = msgspec.json.encode([{"last": 1}, AT, [AT], "YWJj"])
_SPEC = DeploymentSpec(detector="spotter", revision="1", release="r1", at=AT)
_STATUS = DeploymentStatus(detector="spotter", revision="1", since={0: 5}, at=AT)

ROWS: dict[str, Rows] = {
    TOPICS.control.schemas: Rows(b"902", _schema(), schema_in),
    TOPICS.control.releases: Rows(b"lozenge/d1", _WHEEL, check_release),
    TOPICS.control.deployments: Rows(
        b"spotter", _SPEC.model_dump_json().encode(), partial(json_row, DeploymentSpec, "detector"), _show_spec
    ),
    TOPICS.control.status: Rows(
        b"spotter", _STATUS.model_dump_json().encode(), partial(json_row, DeploymentStatus, "detector"), _show_status
    ),
    TOPICS.control.leases: Rows(
        b"leader",
        Lease(agent="a", host="h", folder="f", at=AT).model_dump_json().encode(),
        partial(json_row, Lease, ""),
    ),
    TOPICS.control.history: Rows(
        b"spotter", HistoryEvent(detector="spotter", what="deploy", at=AT).model_dump_json().encode(), history_event
    ),
    TOPICS.control.streams: Rows(b"auth", msgspec.json.encode(_REQUEST), stream_releases.decode, _show_stream),
    f"{TOPICS.control.streams} of a release": Rows(
        b"auth/r3", msgspec.json.encode(_RELEASE), stream_releases.decode, _show_stream
    ),
    TOPICS.control.sources: Rows(
        b"night", msgspec.json.encode(SourceRequest("night", 3)), SOURCES.decode, _show_source
    ),
    f"{TOPICS.control.sources} of a release": Rows(
        b"night/r3", msgspec.json.encode(SourceRelease("night", 3, {})), SOURCES.decode, _show_source
    ),
    TOPICS.control.apps: Rows(b"sink-last", msgspec.json.encode(AppRequest("sink-last", 3, 2)), APPS.decode, _show_app),
    f"{TOPICS.control.apps} of a release": Rows(
        b"sink-last/r3", msgspec.json.encode(AppRelease("sink-last", 3, {"kind": "cache"})), APPS.decode, _show_app
    ),
    positions_topic(TOPICS, "night").name: Rows(
        b"a.csv",
        msgspec.json.encode(FilePosition("a.csv", FileId(7, 1), FileState.DONE)),
        file_positions.decode,
        file_row,
    ),
    TOPICS.metrics: Rows(b"spotter/g1", _snapshot(), Snapshot.parse, _show_metrics),
    DETECTOR.coverage: Rows(
        b"",
        msgspec.json.encode(_SEGMENT),
        lambda _, value: msgspec.json.decode(value, type=CoverageSegment),
        _show_coverage,
    ),
    TOPICS.resolutions("spotter").name: Rows(
        b"",
        msgspec.json.encode(_RESOLUTION),
        lambda _, value: msgspec.json.decode(value, type=Resolution),
        lambda row: (row.positions(), str(row)),
    ),
    reference_list(TOPICS, "blocked").name: Rows(
        b"card_1", _LISTED.encoded(), list_entries.decode, lambda row: (version(9, [row]), quoted(row.value))
    ),
    platform_table(TOPICS, "limits").name: Rows(
        b'["DE"]',
        b'{"country":"DE","most":"100.00"}',
        table_records.decode,
        lambda row: table_records.version(9, {"k": row}),
    ),
    DETECTOR.state: Rows(b'["card_1"]', _ENTRY, check_entry),
    f"{DETECTOR.state} of an aggregate": Rows(b"alert-1", AT.isoformat().encode(), check_alert_id),
}
