"""Metrics of an app out of the snapshots of its processes."""

import json

import msgspec
import pytest

from lozenge.metrics.app_metrics import AppMetrics, JobMetrics, UpstreamMetrics
from lozenge_deploy.observe.metrics_reader import Reading, reading_of
from lozenge_deploy.observe.metrics_table import ALIVE_SECONDS, App, Snapshot


def snapshot_of(metrics: AppMetrics, at: float, *, ended: bool = False) -> Snapshot:
    snapshot = metrics.snapshot(ended=ended)
    return Snapshot(metrics.app, metrics.instance, metrics.release, at, snapshot["samples"], ended)


def read(app: App, now: float) -> Reading:
    reading = reading_of(app, now)
    assert reading is not None
    return reading


def test_an_app_counts_on_with_a_new_instance() -> None:
    app, first = App(), UpstreamMetrics("upstream", "g1")
    first.records(100)
    first.dead_letters(2, "decode")
    app.take(snapshot_of(first, 10.0))
    second = UpstreamMetrics("upstream", "g2")
    app.take(snapshot_of(second, 15.0))
    second.records(50)
    second.dead_letters(1, "decode")
    app.take(snapshot_of(second, 20.0))
    reading = read(app, 20.0)
    assert (reading.records, reading.dead_letters, reading.rate) == (150, 3, 10.0)
    assert reading.dead_share == 0.02


def test_lag_and_memory_are_those_of_the_instances_alive() -> None:
    app, first, second = App(), UpstreamMetrics("upstream", "g1"), UpstreamMetrics("upstream", "g2")
    first.lag(70)
    second.lag(5)
    app.take(snapshot_of(first, 10.0))
    app.take(snapshot_of(second, 12.0))
    assert (read(app, 12.0).lag, read(app, 12.0).instances) == (75, 2)
    later = 11.0 + ALIVE_SECONDS
    assert (read(app, later).lag, read(app, later).instances) == (5, 1)
    app.take(snapshot_of(second, 13.0, ended=True))
    assert (read(app, later).lag, read(app, later).instances) == (None, 0)


def test_counts_before_the_first_snapshot_of_an_instance_are_no_rate() -> None:
    app, long_since = App(), UpstreamMetrics("upstream", "g1")
    long_since.records(1_000_000)
    app.take(snapshot_of(long_since, 10.0))
    long_since.records(10)
    app.take(snapshot_of(long_since, 12.0))
    assert (read(app, 12.0).records, read(app, 12.0).rate) == (1_000_010, 5.0)


def test_an_instance_that_was_silent_is_not_counted_twice() -> None:
    app, first, second = App(), UpstreamMetrics("upstream", "g1"), UpstreamMetrics("upstream", "g2")
    first.records(10)
    second.records(5)
    app.take(snapshot_of(first, 10.0))
    app.take(snapshot_of(second, 100.0))
    assert (read(app, 100.0).records, read(app, 100.0).instances) == (15, 1)
    first.records(1)
    app.take(snapshot_of(first, 101.0))
    assert (read(app, 101.0).records, read(app, 101.0).instances) == (16, 2)


def test_latencies_are_those_of_the_last_half_minute() -> None:
    app, metrics = App(), UpstreamMetrics("upstream")
    for _ in range(100):
        metrics.latency(1000.0)
    for at in range(0, 60, 5):
        metrics.latency(0.3)
        app.take(snapshot_of(metrics, float(at)))
    p95 = read(app, 55.0).p95
    assert p95 is not None
    assert p95 < 0.6


def caught_up_in(processed_per_second: int, arriving_per_second: int, *, left: int = 100_000) -> float | None:
    app, metrics = App(), JobMetrics("large_amount")
    app.take(snapshot_of(metrics, 0.0))  # it starts, and knows of nothing yet
    for at in range(1, 22):
        metrics.records(processed_per_second)
        metrics.lag(left + (21 - at) * (processed_per_second - arriving_per_second))
        app.take(snapshot_of(metrics, float(at)))
    return read(app, 21.0).catch_up


def test_the_time_to_catch_up_is_the_lag_divided_by_its_decrease() -> None:
    assert caught_up_in(3000, 1000) == 50.0
    assert caught_up_in(3000, 0) == pytest.approx(33.3, abs=0.1)


def test_an_app_whose_lag_does_not_shrink_falls_behind() -> None:
    assert caught_up_in(1000, 1000) == caught_up_in(1000, 1500) == caught_up_in(1, 11) == float("inf")


def test_an_app_without_lag_has_nothing_to_catch_up() -> None:
    assert caught_up_in(1000, 1100, left=900) == 0.0


def test_a_job_that_has_just_begun_has_no_time_to_catch_up() -> None:
    app, metrics = App(), JobMetrics("large_amount")
    for at in (1.0, 3.0):
        metrics.records(10)
        metrics.lag(100_000)
        app.take(snapshot_of(metrics, at))
    assert read(app, 3.0).catch_up is None


def test_nothing_is_known_before_the_first_snapshot() -> None:
    assert reading_of(App(), 0.0) is None


def test_the_rate_is_of_what_is_read_also_while_its_commit_is_minutes_away() -> None:
    app, realtime = App(), JobMetrics("rule")
    realtime.batch_progress(lag=9, read=1)
    app.take(snapshot_of(realtime, 10.0))
    realtime.batch_progress(lag=7, read=500)
    app.take(snapshot_of(realtime, 15.0))
    assert (read(app, 15.0).rate, read(app, 15.0).records, read(app, 15.0).lag) == (100.0, 0, 7)


def test_latencies_cover_all_alerts_where_the_last_half_minute_has_none() -> None:
    app, metrics = App(), JobMetrics("rule")
    metrics.latency(0.3)
    for at in range(0, 120, 5):
        app.take(snapshot_of(metrics, float(at)))
    p95 = read(app, 115.0).p95
    assert p95 is not None
    assert 0.25 < p95 < 0.5


SOUND = {"app": "rule", "instance": "g1", "release": "r1", "time": 10.0, "samples": {"lozenge_records_total": 7.0}}


def test_a_snapshot_is_read_from_its_record() -> None:
    parsed = Snapshot.parse(b"rule/g1", json.dumps(SOUND | {"ended": True, "more": [1]}).encode())
    assert parsed == Snapshot("rule", "g1", "r1", 10.0, {"lozenge_records_total": 7.0}, True)


@pytest.mark.parametrize(
    "value",
    [
        *(
            b"",
            b"[]",
            b"null",
            b'"x"',
            b"7",
            b"text",
            b"\xff\x00",
            b"{}",
            b'{"app": "rule"}',
            b"[" * 5000 + b"]" * 5000,
        ),
        *(json.dumps(SOUND | {name: None}).encode() for name in SOUND),
        *(json.dumps(SOUND | {name: []}).encode() for name in SOUND),
        *(json.dumps(SOUND | {"time": at}).encode() for at in (float("nan"), float("inf"), "now")),
        json.dumps(SOUND).replace("7.0", "1e999").encode(),
        json.dumps(SOUND | {"samples": {"lozenge_records_total": "many"}}).encode(),
        json.dumps(SOUND | {"samples": {"lozenge_records_total": float("nan")}}).encode(),
    ],
)
def test_a_record_that_is_no_snapshot_is_refused_as_such(value: bytes) -> None:
    with pytest.raises((ValueError, msgspec.DecodeError, RecursionError)):
        Snapshot.parse(b"rule/g1", value)


def test_samples_with_names_that_nobody_publishes_do_not_count() -> None:
    app, names = App(), ("lozenge_latency_seconds_bucket{le=soon}", "lozenge_latency_seconds_bucket{le=1.2.3}", "{", "")
    app.take(Snapshot("rule", "g1", "r1", 10.0, dict.fromkeys(names, 5.0)))
    assert (read(app, 10.0).p95, read(app, 10.0).records) == (None, 0)


def test_the_lag_of_a_process_that_has_not_begun_is_unknown_and_not_0() -> None:
    app = App()
    app.take(snapshot_of(JobMetrics("rule"), 10.0))
    assert (read(app, 10.0).lag, read(app, 10.0).catch_up) == (None, None)


def test_a_source_is_refused_while_no_process_alive_has_its_mapping_in_force() -> None:
    app, first, second = App(), UpstreamMetrics("upstream", "g1"), UpstreamMetrics("upstream", "g2")
    for metrics, sources in (
        (first, {"a": True, "b": False, "c": False}),
        (second, {"a": True, "b": True, "c": False}),
    ):
        metrics.stream_release.mappings(sources)
        app.take(snapshot_of(metrics, 10.0))
    assert read(app, 10.0).refused_mappings == ("c",)


def test_what_mappings_skip_is_counted_over_sources_and_processes() -> None:
    app, first, second = App(), UpstreamMetrics("upstream", "g1"), UpstreamMetrics("upstream", "g2")
    for metrics, skipped in ((first, {"probe": 3, "no_payment": 0}), (second, {"probe": 4})):
        metrics.skipped.count("iso", skipped)
        metrics.skipped.count("json", {"probe": 1})
        app.take(snapshot_of(metrics, 10.0))
    assert read(app, 10.0).skipped == 9
