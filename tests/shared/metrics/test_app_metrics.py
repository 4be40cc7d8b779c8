"""Each kind of app publishes its own series, all of them from the start."""

import inspect
from collections import Counter
from collections.abc import Collection

import pytest

from lozenge.metrics import refused_rows
from lozenge.metrics.app_metrics import (
    BACKLOG_SECONDS,
    MOST_RELEASES,
    AppMetrics,
    JobMetrics,
    NotifierMetrics,
    QueryMetrics,
    SinkMetrics,
    UpstreamMetrics,
)

BREAKER, BEGUN, ROUTING = "lozenge_breaker_open", "lozenge_offsets_begun_total", "lozenge_routing_valid"
KINDS = (JobMetrics, UpstreamMetrics, NotifierMetrics, SinkMetrics)


@pytest.mark.parametrize(
    ("kind", "own", "stages"),
    [
        (JobMetrics, {BREAKER, BEGUN}, {"decode", "detect", "timer", "encode"}),
        (UpstreamMetrics, {BEGUN}, {"decode", "normalise"}),
        (NotifierMetrics, {ROUTING}, {"decode", "deliver"}),
    ],
)
def test_every_series_of_a_kind_is_there_from_the_start(
    kind: type[AppMetrics], own: Collection[str], stages: set[str]
) -> None:
    samples = kind("app").snapshot()["samples"]
    assert {BREAKER, BEGUN, ROUTING} & samples.keys() == own
    assert samples["lozenge_records_total"] == 0.0
    dead = {name for name in samples if name.startswith("lozenge_dead_letters_total")}
    assert dead == {f"lozenge_dead_letters_total{{stage={stage}}}" for stage in stages}


def test_a_routing_file_is_valid_until_it_is_not() -> None:
    notifier = NotifierMetrics("downstream")
    assert notifier.snapshot()["samples"][ROUTING] == 1.0
    notifier.routing(False)
    assert notifier.snapshot()["samples"][ROUTING] == 0.0


@pytest.mark.parametrize("kind", [AppMetrics, QueryMetrics, *KINDS])
def test_no_kind_has_more_methods_than_a_reader_can_hold(kind: type[AppMetrics]) -> None:
    assert len(inspect.getmembers(kind, inspect.isfunction)) <= 15


def test_records_that_are_no_rows_of_the_platforms_topics_are_counted_by_topic(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refused_rows, "SKIPPED", Counter({"lozenge.metrics.v1": 7}))
    samples = JobMetrics("rule").snapshot()["samples"]
    assert samples["lozenge_rows_refused_total{topic=lozenge.metrics.v1}"] == 7


def test_the_lag_is_unknown_until_somebody_knows_it() -> None:
    metrics = JobMetrics("rule")
    assert "lozenge_lag_offsets" not in metrics.snapshot()["samples"]
    metrics.lag(0)
    assert metrics.snapshot()["samples"]["lozenge_lag_offsets"] == 0.0


def test_precision_has_a_series_for_the_newest_releases_alone() -> None:
    metrics = NotifierMetrics("downstream")
    metrics.notifications({}, {}, {("rule", f"r{n}"): n / 20 for n in range(1, 13)} | {("fold", "r1"): 1.0})
    found = [name for name in metrics.snapshot()["samples"] if name.startswith("lozenge_precision")]
    newest = {f"lozenge_precision{{detector=rule,release=r{n}}}" for n in range(13 - MOST_RELEASES, 13)}
    assert set(found) == newest | {"lozenge_precision{detector=fold,release=r1}"}


def test_what_arrived_long_before_the_process_began_does_not_count_as_its_latency() -> None:
    metrics = JobMetrics("spotter")
    metrics.latency(2.0, 3)
    metrics.latency(BACKLOG_SECONDS + 3_300.0, 5)
    samples = metrics.snapshot()["samples"]
    assert (samples["lozenge_latency_seconds_count"], samples["lozenge_latency_seconds_sum"]) == (3, 6.0)
    assert samples["lozenge_backlog_latency_seconds_count"] == 5
