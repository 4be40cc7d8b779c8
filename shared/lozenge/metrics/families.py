"""Every metric family that an app may publish."""

from prometheus_client.metrics_core import Metric

from lozenge.metrics.app_metrics import AppMetrics, JobMetrics, NotifierMetrics, SinkMetrics, UpstreamMetrics
from lozenge.metrics.file_metrics import FileMetrics
from lozenge.metrics.table_metrics import TableMetrics

KINDS: tuple[type[AppMetrics], ...] = (
    JobMetrics,
    UpstreamMetrics,
    FileMetrics,
    TableMetrics,
    SinkMetrics,
    NotifierMetrics,
)


def metric_families() -> list[Metric]:
    """The families of all kinds of apps."""
    found = {f.name: f for kind in KINDS for f in kind("").registry.collect()}
    return list(found.values())
