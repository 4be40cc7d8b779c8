"""The pages about what is on the wire and on the machine: records, topics, metrics, versions, ports."""

import re
from collections.abc import Iterator
from typing import Any

from lozenge.contracts.schemas import Schema, newest
from lozenge.contracts.topics import Topic, Topics, platform_table, reference_list
from lozenge.file_sources.topics import topics_of
from lozenge.kafka.settings import LOOPBACK
from lozenge.metrics.app_metrics import AppMetrics, JobMetrics, NotifierMetrics, SinkMetrics, UpstreamMetrics
from lozenge.metrics.file_metrics import FileMetrics
from lozenge.metrics.table_metrics import TableMetrics
from lozenge.streams import reasons
from lozenge_deploy.local import platform
from lozenge_deploy.observe import exporter
from tests.documents.page import ROOT, Page, table
from tests.streams import STREAMS

RECORDS = ("alert", "notification", "feedback")
APPS: dict[str, type[AppMetrics]] = {
    "jobs": JobMetrics,
    "upstream": UpstreamMetrics,
    "file sources": FileMetrics,
    "table loaders": TableMetrics,
    "sinks": SinkMetrics,
    "notifiers": NotifierMetrics,
}
LIBRARIES = ("pyspark", "pyarrow", "pandas", "numpy", "pydantic", "msgspec", "fastavro", "confluent-kafka", "structlog")
_AS_EVENTS = 999
"""A count of partitions that no topic has but those that follow the events'."""
_DAY, _HOUR = 24 * 3600 * 1000, 3600 * 1000


def records() -> str:
    """A section per Avro record, newest version, with every field."""
    events = [
        line for each in STREAMS.definitions for line in _record(f"Event of the stream {each.name}", each.event_schema)
    ]
    ours = [line for name in RECORDS for line in _record(name.capitalize(), newest(name))]
    return "\n".join([*events, *ours, *_reasons()])


def _reasons() -> Iterator[str]:
    yield from ("## Reasons of upstream", "", "Why a raw record becomes a dead letter instead of an event.", "")
    rows = [(f"`{kind}`", meaning) for kind, meaning in reasons.OF_A_RECORD.items()]
    rows += [(f"`{kind}:FIELD`", meaning) for kind, meaning in reasons.OF_A_FIELD.items()]
    yield table(("reason", "meaning"), [*rows, (f"`{reasons.CLOCK}`", reasons.sentence(reasons.CLOCK))])


def _record(title: str, schema: Schema) -> Iterator[str]:
    yield from (f"## {title}, version {schema.version}", "", str(schema.definition["doc"]), "")
    yield table(("field", "type", "meaning"), _fields(schema.definition))


def _fields(record: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, str, str]]:
    for field in record["fields"]:
        yield f"`{prefix}{field['name']}`", _avro_type(field["type"]), field.get("doc", "")
        kinds = field["type"] if isinstance(field["type"], list) else [field["type"]]
        for kind in kinds:
            if isinstance(kind, dict) and kind["type"] == "record":
                yield from _fields(kind, f"{prefix}{field['name']}.")


def _avro_type(kind: Any) -> str:
    if isinstance(kind, list):
        return " or ".join(_avro_type(each) for each in kind)
    if isinstance(kind, str):
        return kind
    if "logicalType" in kind:
        digits = f"({kind['precision']},{kind['scale']})" if "precision" in kind else ""
        return f"{kind['type']} ({kind['logicalType']}{digits})"
    inner = kind.get("items") or kind.get("values")
    return f"{kind['type']} of {_avro_type(inner)}" if inner else str(kind["type"])


def topics() -> str:
    """Every topic of a platform without prefix, and those that come with a detector."""
    found = Topics(partitions=_AS_EVENTS)
    of_streams = [
        line
        for each in STREAMS.definitions
        for line in (
            f"## Of the stream {each.name}",
            "",
            table(("topic", "partitions", "kept"), map(_topic, each.topics(found, each.rekeys))),
        )
    ]
    own = [*found.detector("NAME").contracts(), *found.shadow("NAME", "RELEASE").contracts()]
    own += [found.resolutions("APP")]
    own += [found.dead_letter_topic("sink-NAME")]
    shared = [reference_list(found, "LIST"), platform_table(found, "TABLE")]
    return "\n".join(
        (
            "## The platform's",
            "",
            table(("topic", "partitions", "kept"), map(_topic, found.platform_topics())),
            *of_streams,
            "## Of several streams",
            "",
            table(
                ("topic", "partitions", "kept"),
                [(f"`{found.merged('KEY')}`", "as events", "as long as any of its streams keeps its events")],
            ),
            "## A detector's",
            "",
            table(("topic", "partitions", "kept"), map(_topic, own)),
            "## A reference list's, and a platform table's",
            "",
            table(("topic", "partitions", "kept"), map(_topic, shared)),
            "## A file source's",
            "",
            table(("topic", "partitions", "kept"), map(_topic, topics_of(found, "NAME"))),
        )
    )


def _topic(topic: Topic) -> tuple[str, str, str]:
    count = "as events" if topic.partitions == _AS_EVENTS else topic.partitions
    return f"`{topic.name}`", str(count), _kept(topic.config)


def _kept(config: Any) -> str:
    if config.get("cleanup.policy") == "compact":
        replaced = int(config.get("min.compaction.lag.ms", 0)) // _DAY
        return "the last value of each key" + (f", and every value for {replaced} days" if replaced else "")
    milliseconds = int(config["retention.ms"])
    if milliseconds < 0:
        return "for ever"
    return f"{milliseconds // _DAY} days" if milliseconds >= _DAY else f"{milliseconds // _HOUR} h"


def metrics() -> str:
    """Every family that an app publishes, and those that the exporter adds."""
    found: dict[str, tuple[Any, list[str]]] = {}
    for app, kind in APPS.items():
        for family in kind("").registry.collect():
            found.setdefault(family.name, (family, []))[1].append(app)
    rows = [_metric(family, apps) for family, apps in found.values()]
    rows += [_metric(family, ["exporter"]) for family in exporter.families({}, 0.0)]
    return table(("metric", "type", "labels", "published by", "meaning"), sorted(rows))


def _metric(family: Any, apps: list[str]) -> tuple[str, str, str, str, str]:
    suffix = "_total" if family.type == "counter" else ""
    labels = ["app", *(name for name in _labels(family.name) if name != "app")]
    by = "all" if len(apps) == len(APPS) else ", ".join(apps)
    return f"`{family.name}{suffix}`", family.type, ", ".join(f"`{n}`" for n in labels), by, family.documentation


def _labels(name: str) -> list[str]:
    for kind in APPS.values():
        for collector, names in kind("").registry._collector_to_names.items():
            if name in names:
                return list(getattr(collector, "_labelnames", ()))
    added: Iterator[Any] = exporter.families({}, 0.0)
    return next((list(family._labelnames) for family in added if family.name == name), [])


def versions() -> str:
    """What every detector's environment holds; a detector cannot choose other versions."""
    lock = (ROOT / "requirements" / "runtime.txt").read_text("utf-8")
    found = re.findall(r"^([a-z0-9-]+)(?:\[[a-z]+\])?==(\S+)( ; [^\\]+)?", lock, re.MULTILINE)
    rows = [(f"`{n}`", version, marker.removeprefix(" ; ").strip()) for n, version, marker in found if n in LIBRARIES]
    return table(("library", "version", "where"), rows)


def ports() -> str:
    """The default addresses of servers."""
    metrics_at = exporter.ExporterSettings()
    rows = (
        (f"`{LOOPBACK}`", "the broker of `lozenge up`", "`lozenge up --port`; 0 takes a free one"),
        (f"`{platform.API}`", "the notifier's API of `lozenge up`", "`LOZENGE_DOWNSTREAM_BIND`"),
        (
            f"`{metrics_at.bind}:{metrics_at.port}`",
            "metrics for Prometheus",
            "`LOZENGE_EXPORTER_BIND`, `LOZENGE_EXPORTER_PORT`",
        ),
    )
    return table(("address", "server", "another"), rows)


PAGES = (
    Page("docs/reference/records.md", records),
    Page("docs/reference/topics.md", topics),
    Page("docs/reference/metrics.md", metrics),
    Page("docs/reference/versions.md", versions),
    Page("docs/reference/files-and-ports.md", ports),
)
