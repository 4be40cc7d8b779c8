import os
import subprocess
import sys
import time

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from lozenge.metrics.app_metrics import AppMetrics, JobMetrics, NotifierMetrics, UpstreamMetrics
from lozenge_deploy.observe.exporter import Apps
from lozenge_deploy.observe.metrics_table import ALIVE_SECONDS, ENDED_SECONDS, SILENT_SECONDS, App, Snapshot


def exported(*snapshots: Snapshot) -> list[str]:
    table: dict[str, App] = {}
    for snapshot in snapshots:
        table.setdefault(snapshot.app, App()).take(snapshot)
    registry = CollectorRegistry()
    registry.register(Apps(table))
    return generate_latest(registry).decode().splitlines()


def snapshot_of(metrics: AppMetrics, ago: float = 0.0, *, ended: bool = False) -> Snapshot:
    samples = metrics.snapshot()["samples"]
    return Snapshot(metrics.app, metrics.instance, metrics.release, time.time() - ago, samples, ended)


def test_an_app_is_one_series_across_all_of_its_instances() -> None:
    gone, alive = UpstreamMetrics("upstream", "g1", "1.0.0"), UpstreamMetrics("upstream", "g2", "1.1.0")
    for metrics in (gone, alive):
        metrics.records(3)
        metrics.lag(7)
        metrics.latency(0.2)
        metrics.dead_letters(2, "decode")
    lines = exported(snapshot_of(gone, ago=ALIVE_SECONDS + 1), snapshot_of(alive))
    assert 'lozenge_records_total{app="upstream"} 6.0' in lines
    assert 'lozenge_dead_letters_total{app="upstream",stage="decode"} 4.0' in lines
    assert 'lozenge_latency_seconds_bucket{app="upstream",le="0.25"} 2.0' in lines
    assert 'lozenge_latency_seconds_count{app="upstream"} 2.0' in lines
    assert 'lozenge_lag_offsets{app="upstream"} 7.0' in lines
    assert 'lozenge_instances{app="upstream",release="1.1.0"} 1.0' in lines


def test_only_the_notifier_exports_whether_its_routing_file_is_valid() -> None:
    notifier = NotifierMetrics("downstream")
    notifier.routing(False)
    others = UpstreamMetrics("upstream"), JobMetrics("large_amount")
    lines = exported(*map(snapshot_of, others), snapshot_of(notifier))
    assert [line for line in lines if line.startswith("lozenge_routing_valid")] == [
        'lozenge_routing_valid{app="downstream"} 0.0'
    ]
    assert "# TYPE lozenge_routing_valid gauge" in lines


def test_the_deliveries_of_all_notifiers_are_one_series() -> None:
    gone, alive = NotifierMetrics("downstream", "n1"), NotifierMetrics("downstream", "n2")
    for metrics in (gone, alive):
        metrics.deliveries("ops", sent=5, retried=1)
    lines = exported(snapshot_of(gone, ago=ALIVE_SECONDS + 1), snapshot_of(alive))
    assert 'lozenge_deliveries_total{app="downstream",channel="ops",outcome="sent"} 10.0' in lines
    assert 'lozenge_deliveries_total{app="downstream",channel="ops",outcome="failed"} 0.0' in lines
    assert "# TYPE lozenge_deliveries_total counter" in lines


def test_every_family_has_its_type_and_its_meaning() -> None:
    metrics = UpstreamMetrics("upstream")
    metrics.lag(0)
    lines = exported(snapshot_of(metrics))
    assert {
        "# TYPE lozenge_records_total counter",
        "# TYPE lozenge_cpu_seconds_total counter",
        "# TYPE lozenge_lag_offsets gauge",
        "# TYPE lozenge_latency_seconds histogram",
        "# HELP lozenge_lag_offsets Input offsets not yet processed; absent until it is known",
    } <= set(lines)


def test_an_app_without_instances_keeps_its_totals_and_has_no_gauges() -> None:
    lines = exported(snapshot_of(UpstreamMetrics("upstream", "g1", "1.0.0"), ago=ALIVE_SECONDS + 1))
    assert 'lozenge_records_total{app="upstream"} 0.0' in lines
    assert 'lozenge_instances{app="upstream",release="1.0.0"} 0.0' in lines
    assert not [line for line in lines if line.startswith("lozenge_lag_offsets")]


@pytest.mark.parametrize(("ended", "kept"), [(True, ENDED_SECONDS), (False, SILENT_SECONDS)], ids=["retired", "silent"])
def test_the_series_of_an_app_that_is_gone_end_and_continue_if_it_runs_again(ended: bool, kept: float) -> None:
    first, again = JobMetrics("large_amount", "g1"), JobMetrics("large_amount", "g2")
    for metrics in (first, again):
        metrics.records(3)
    other = snapshot_of(UpstreamMetrics("upstream"))
    assert any("large_amount" in line for line in exported(snapshot_of(first, kept - 60, ended=ended), other))
    assert not any("large_amount" in line for line in exported(snapshot_of(first, kept + 60, ended=ended), other))
    lines = exported(snapshot_of(first, kept + 60, ended=ended), snapshot_of(again))
    assert 'lozenge_records_total{app="large_amount"} 6.0' in lines


def test_an_app_whose_lag_grows_never_catches_up() -> None:
    metrics = UpstreamMetrics("upstream")
    snapshots = []
    for ago in (20.0, 10.0, 0.0):
        metrics.records(10)
        metrics.lag(int(1000 - ago))
        snapshots.append(snapshot_of(metrics, ago))
    assert 'lozenge_catch_up_seconds{app="upstream"} +Inf' in exported(*snapshots)


def test_a_label_may_hold_anything() -> None:
    channel = 'the "night", {ops} & 100 % é'
    metrics = NotifierMetrics("downstream")
    metrics.deliveries(channel, sent=1)
    quoted = channel.replace('"', '\\"')
    line = f'lozenge_deliveries_total{{app="downstream",channel="{quoted}",outcome="sent"}} 1.0'
    assert line in exported(snapshot_of(metrics))


@pytest.mark.parametrize(
    ("arguments", "variables", "said"),
    [
        ([], {"LOZENGE_EXPORTER_PORT": "http"}, "LOZENGE_EXPORTER_PORT: it must be a whole number"),
        (["70000"], {}, "LOZENGE_EXPORTER_PORT: it must be at most 65535"),
        ([], {"LOZENGE_EXPORTER_PORTS": "9465"}, "LOZENGE_EXPORTER_PORTS: there is no such setting"),
        ([], {"LOZENGE_EXPORTER_BIND": "192.0.2.1", "LOZENGE_EXPORTER_PORT": "9465"}, "at 192.0.2.1, port 9465: "),
    ],
)
def test_where_it_cannot_listen_is_refused_with_one_sentence(
    arguments: list[str], variables: dict[str, str], said: str
) -> None:
    command = [sys.executable, "-m", "lozenge_deploy.observe.exporter", *arguments]
    ended = subprocess.run(command, env=os.environ | variables, capture_output=True, text=True, timeout=60)
    assert (ended.returncode, "Traceback" in ended.stderr, said in ended.stderr) == (2, False, True), ended.stderr
