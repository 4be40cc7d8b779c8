"""`python -m lozenge_deploy.observe.exporter [PORT]`: the metrics of all apps for Prometheus, at `/metrics`.

It listens where `LOZENGE_EXPORTER_*` says; PORT is instead of its port. Each family has one series per app.
Counters and histograms continue over every restart, of the apps and of this program. Gauges are sums over the
processes alive, and end without any. `lozenge_instances` counts the processes by release; it is 0, with the last
release, if none runs. All series of an app end a day after it was paused or retired, and a week after it fell silent.
"""

import sys
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Annotated

from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.metrics_core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from pydantic import Field
from pydantic_settings import SettingsConfigDict

from lozenge.errors import LozengeError, UsageError
from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.topic_admin import check_topics
from lozenge.metrics.families import metric_families
from lozenge.metrics.sample_text import decode
from lozenge.process.env_settings import FromEnvironment
from lozenge.process.shutdown import StopSignal
from lozenge_deploy.observe.metrics_reader import MetricsReader, catch_up_seconds
from lozenge_deploy.observe.metrics_table import App

PORT = 9464
_POLL_SECONDS = 1.0


class ExporterSettings(FromEnvironment):
    """The exporter, which serves the metrics of all processes to Prometheus."""

    model_config = SettingsConfigDict(env_prefix="LOZENGE_EXPORTER_")

    bind: Annotated[str, Field(min_length=1)] = "127.0.0.1"
    """The address that it listens at; `0.0.0.0` is that of all networks of its machine."""

    port: Annotated[int, Field(ge=1, le=65535)] = PORT
    """The port there."""


class Apps(Collector):
    """The apps of a table, as Prometheus sees them. A writer of the table holds `lock`."""

    def __init__(self, table: dict[str, App]) -> None:
        self.lock = threading.Lock()
        self._table = table

    def collect(self) -> Iterable[Metric]:
        """Every family with the samples of all apps; called from the thread of the HTTP server."""
        with self.lock:
            return list(families(self._table, time.time()))


def families(table: dict[str, App], now: float) -> Iterator[Metric]:
    """The metric families of `table` at Unix time `now`."""
    running = GaugeMetricFamily("lozenge_instances", "Running processes", labels=["app", "release"])
    catching_up = GaugeMetricFamily(
        "lozenge_catch_up_seconds",
        "Seconds until the lag is 0 at the current rate; +Inf if the lag grows",
        labels=["app"],
    )
    known_families, found = _known_families(), dict[str, Metric]()
    for name, app in sorted(table.items()):
        if app.expired(now):
            continue
        for text, value in app.samples(now).items():
            sample, labels = decode(text)
            known = known_families.get(
                sample, Metric(sample, "Published by a newer version than this exporter", "unknown")
            )
            family = found.setdefault(known.name, Metric(known.name, known.documentation, known.type))
            family.add_sample(sample, {"app": name} | labels, value)
        releases = Counter(instance.last.release for instance in app.alive(now))
        if not releases and app.newest is not None:
            releases[app.newest.release] = 0
        for release, count in releases.items():
            running.add_metric([name, release], count)
        if (seconds := catch_up_seconds(app, now)) is not None and app.alive(now):
            catching_up.add_metric([name], seconds)
    yield running
    yield catching_up
    yield from found.values()


@cache
def _known_families() -> Mapping[str, Metric]:
    """The family of each name, and of each sample's name; a counter with labels may have no sample yet."""
    registered = metric_families()
    counters = {f"{f.name}_total": f for f in registered if f.type == "counter"}
    return {f.name: f for f in registered} | counters | {sample.name: f for f in registered for sample in f.samples}


def serve(registry: CollectorRegistry, settings: ExporterSettings) -> None:
    """Serves Prometheus from its own thread; raises UsageError if it cannot listen."""
    try:
        start_http_server(settings.port, addr=settings.bind, registry=registry)
    except OSError as error:
        raise UsageError(
            f"serving metrics at {settings.bind}, port {settings.port}: {error}",
            hint="LOZENGE_EXPORTER_PORT names a free port, LOZENGE_EXPORTER_BIND an address of this machine",
        ) from error


def main() -> int:
    """Serves until SIGTERM or SIGINT; the exit code."""
    stop = StopSignal()
    registry = CollectorRegistry()
    given = {"port": sys.argv[1]} if len(sys.argv) > 1 else {}
    try:
        settings, kafka = ExporterSettings.load(**given), KafkaSettings.load()
        # no samples until everything is read: Prometheus takes a counter that is too small for a reset
        serve(registry, settings)
        check_topics(kafka, [t for t in kafka.topics.platform_topics() if t.name == kafka.topics.metrics])
        readings = MetricsReader(kafka)
        readings.catch_up()
    except LozengeError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    apps = Apps(readings.table)
    registry.register(apps)
    while not stop.wait(_POLL_SECONDS):
        with apps.lock:
            readings.read()
    return 0


if __name__ == "__main__":
    sys.exit(main())
