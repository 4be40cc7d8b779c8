"""Topic names and their contracts: the only place where a topic is spelled.

Names read `<prefix><domain>.<class>.<name>.v<N>`. The number of partitions is part of a topic's contract,
because `lozenge.contracts.partitioner.partition_of` derives a key's partition from it.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta

from lozenge.apps import DOWNSTREAM

MOST_PARTITIONS = 1024
LIST_NAME = r"[a-z][a-z0-9_]{0,63}"
PREFIX_PATTERN = r"[a-zA-Z0-9._-]{0,64}"
LOG_PARTITIONS = 4
CHANGELOG_BYTES = 8 * 1024 * 1024
DEAD_LETTER_BYTES = 2 * 1024 * 1024
"""A dead letter is its record with more headers, so it is larger than the largest record of the source topic."""


def kept_for(time: timedelta) -> Mapping[str, str]:
    """The configuration of a topic whose records are kept so long."""
    return {"retention.ms": _milliseconds(time)}


def _milliseconds(time: timedelta) -> str:
    return str(time // timedelta(milliseconds=1))


_COMPACTED: Mapping[str, str] = {"cleanup.policy": "compact"}
MOST_LAG = "max.compaction.lag.ms"
# A topic whose keys are rewritten all the time is compacted early: a full read is then little more than its live keys.
# And it is compacted in time, so that what an erasure replaces is gone by a known moment.
REWRITTEN: Mapping[str, str] = {
    "cleanup.policy": "compact",
    "min.cleanable.dirty.ratio": "0.1",
    "segment.ms": "600000",
    MOST_LAG: _milliseconds(timedelta(days=1)),
}
_KEPT_7_DAYS: Mapping[str, str] = kept_for(timedelta(days=7))
_KEPT: Mapping[str, str] = {"retention.ms": "-1"}
# Whatever version of a list or a table was in force in this time can be read again.
LIST_HISTORY = timedelta(days=35)
_LISTS: Mapping[str, str] = {
    "cleanup.policy": "compact",
    "min.compaction.lag.ms": _milliseconds(LIST_HISTORY),
    "delete.retention.ms": _milliseconds(LIST_HISTORY),
    MOST_LAG: _milliseconds(LIST_HISTORY + timedelta(days=7)),
}
# The longest line of a log, every character of it escaped.
_LOGS: Mapping[str, str] = {**_KEPT_7_DAYS, "max.message.bytes": str(2 * 1024 * 1024)}
# A changelog is read at once and can be computed again. A row may be larger than an alert: its size is checked later.
_TRANSIENT: Mapping[str, str] = {
    **kept_for(timedelta(hours=1)),
    "segment.ms": _milliseconds(timedelta(minutes=10)),
    "max.message.bytes": str(CHANGELOG_BYTES),
}
# PCI DSS 10.5.1 asks for a year.
_KEPT_13_MONTHS: Mapping[str, str] = kept_for(timedelta(days=396))
ALERT_RETENTION = timedelta(days=30)
_KEPT_30_DAYS: Mapping[str, str] = kept_for(ALERT_RETENTION)
_DEAD_LETTERS: Mapping[str, str] = {"max.message.bytes": str(DEAD_LETTER_BYTES)}


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic's contract: name, partitions and broker-side configuration."""

    name: str
    partitions: int
    config: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Topics:
    """The topics of one platform: what its apps exchange. `control`, `detector` and `shadow` name others.

    Those of a stream are in its definition.

    `prefix` begins the name of each topic, consumer group and transactional id, so several platforms can share a
    broker. `partitions` is the count of the raw topics, of events, and of every topic that is keyed as events are.
    """

    prefix: str = ""
    partitions: int = 4

    def prefixed(self, name: str) -> str:
        """`name` as the broker knows it: of a topic, a consumer group or a transactional id."""
        return self.prefix + name

    def events(self, stream: str, key: str | None = None) -> str:
        """The canonical topic of a stream, or its copy by another `key` than the stream's first."""
        return self.prefixed(f"pay.canonical.{stream}.v1" if key is None else f"pay.canonical.{stream}.by-{key}.v1")

    def merged(self, key: str) -> str:
        """The topic with the events of several streams by `key`, each as it is in the topic of its stream."""
        return self.prefixed(f"pay.merged.by-{key}.v1")

    @property
    def notifications(self) -> str:
        return self.prefixed("pay.notifications.v1")

    @property
    def feedback(self) -> str:
        return self.prefixed("pay.feedback.v1")

    @property
    def metrics(self) -> str:
        return self.prefixed("lozenge.metrics.v1")

    @property
    def logs(self) -> str:
        return self.prefixed("lozenge.logs.v1")

    def dead_letters(self, app: str) -> str:
        """The dead-letter topic of one app: a normaliser, "downstream" or a detector."""
        return self.prefixed(f"pay.dlq.{app}.v1")

    def resolutions(self, app: str) -> Topic:
        """How the dead letters of one app were resolved. It is created with the first resolution and kept for ever."""
        return Topic(self.prefixed(f"lozenge.resolutions.{app}.v1"), 1, _KEPT)

    @property
    def control(self) -> "ControlTopics":
        """The topics of the control plane."""
        return ControlTopics(self)

    def detector(self, name: str) -> "DetectorTopics":
        """The topics of the live job of a detector."""
        return DetectorTopics(self, name)

    def shadow(self, detector: str, release: str) -> "ShadowTopics":
        """The topics of a release that runs next to the live one."""
        return ShadowTopics(self, detector, release)

    def normaliser(self, app: str) -> list[Topic]:
        """What the normaliser `app` writes next to the events: dead letters, and which raw records it has processed."""
        return [self.dead_letter_topic(app), Topic(self.detector(app).coverage, 1, _KEPT)]

    def dead_letter_topic(self, app: str) -> Topic:
        """The contract of `dead_letters`, for an app that is no detector."""
        return Topic(self.dead_letters(app), self.partitions, {**_KEPT_30_DAYS, **_DEAD_LETTERS})

    def platform_topics(self) -> list[Topic]:
        """Topics that exist whatever streams and detectors there are."""
        return [
            Topic(self.notifications, self.partitions, _KEPT_30_DAYS),
            Topic(self.feedback, self.partitions, _KEPT_13_MONTHS),
            self.dead_letter_topic(DOWNSTREAM),
            *self.control.contracts(),
            Topic(self.metrics, 1, REWRITTEN),
            Topic(self.logs, LOG_PARTITIONS, _LOGS),
        ]


@dataclass(frozen=True, slots=True)
class ControlTopics:
    """The control plane's topics: wanted, observed and released state, the leader, schemas, streams, history, audit."""

    platform: Topics

    @property
    def schemas(self) -> str:
        return self.platform.prefixed("lozenge.ctl.schemas.v1")

    @property
    def releases(self) -> str:
        return self.platform.prefixed("lozenge.ctl.releases.v1")

    @property
    def deployments(self) -> str:
        return self.platform.prefixed("lozenge.ctl.deployments.v1")

    @property
    def status(self) -> str:
        return self.platform.prefixed("lozenge.ctl.status.v1")

    @property
    def leases(self) -> str:
        return self.platform.prefixed("lozenge.ctl.leases.v1")

    @property
    def streams(self) -> str:
        return self.platform.prefixed("lozenge.ctl.streams.v1")

    @property
    def sources(self) -> str:
        return self.platform.prefixed("lozenge.ctl.sources.v1")

    @property
    def apps(self) -> str:
        return self.platform.prefixed("lozenge.ctl.apps.v1")

    @property
    def history(self) -> str:
        return self.platform.prefixed("lozenge.ctl.history.v1")

    @property
    def audit(self) -> Topic:
        """What a person did with protected data; kept for a year and a month."""
        return Topic(self.platform.prefixed("lozenge.ctl.audit.v1"), 1, _KEPT_13_MONTHS)

    def contracts(self) -> list[Topic]:
        """All of them."""
        return [
            *(Topic(name, 1, _COMPACTED) for name in (self.schemas, self.releases, self.deployments, self.streams)),
            *(Topic(name, 1, _COMPACTED) for name in (self.sources, self.apps)),
            *(Topic(name, 1, REWRITTEN) for name in (self.status, self.leases)),
            Topic(self.history, 1, _KEPT),
            self.audit,
        ]


@dataclass(frozen=True, slots=True)
class DetectorTopics:
    """The topics that the live job of one detector writes, next to its dead letters."""

    platform: Topics
    name: str

    @property
    def alerts(self) -> str:
        """The alert topic that only this detector may write."""
        return self.platform.prefixed(f"pay.alerts.{self.name}.v1")

    @property
    def state(self) -> str:
        """The compacted topic that holds a stateful detector's state, partitioned like its input."""
        return self.platform.prefixed(f"lozenge.state.{self.name}.v1")

    @property
    def changelog(self) -> str:
        """What an aggregate in Real-Time Mode makes of each event, on its way from Spark to Python; read once."""
        return self.platform.prefixed(f"lozenge.changelog.{self.name}.v1")

    @property
    def coverage(self) -> str:
        """Which release of the detector processed which events; kept for ever."""
        return self.platform.prefixed(f"lozenge.coverage.{self.name}.v1")

    def contracts(self) -> list[Topic]:
        """All of them, and that of its dead letters."""
        return [*_contracts_of_a_job(self, _KEPT_30_DAYS), Topic(self.coverage, 1, _KEPT)]


@dataclass(frozen=True, slots=True)
class ShadowTopics:
    """The topics of a release that runs next to the live one: no notifier reads them, and it has no coverage."""

    platform: Topics
    detector: str
    release: str

    @property
    def name(self) -> str:
        """The topic-safe name of detector and release."""
        return f"{self.detector}.{re.sub(r'[^a-zA-Z0-9_-]', '-', self.release)}"

    @property
    def alerts(self) -> str:
        return self.platform.prefixed(f"pay.shadow.{self.name}.v1")

    @property
    def state(self) -> str:
        return self.platform.detector(self.name).state

    @property
    def changelog(self) -> str:
        return self.platform.detector(self.name).changelog

    def contracts(self) -> list[Topic]:
        """All of them, and that of its dead letters."""
        return _contracts_of_a_job(self, _KEPT_7_DAYS)


def _contracts_of_a_job(job: DetectorTopics | ShadowTopics, kept: Mapping[str, str]) -> list[Topic]:
    """What every job writes; its alerts and dead letters are `kept` so long."""
    partitions = job.platform.partitions
    return [
        Topic(job.alerts, partitions, kept),
        Topic(job.platform.dead_letters(job.name), partitions, {**kept, **_DEAD_LETTERS}),
        Topic(job.state, partitions, REWRITTEN),
        Topic(job.changelog, 1, _TRANSIENT),
    ]


def reference_list(topics: Topics, name: str) -> Topic:
    """The entries of the reference list `name`, by value; it belongs to no detector."""
    return Topic(topics.prefixed(f"lozenge.list.{name}.v1"), 1, _LISTS)


def platform_table(topics: Topics, name: str) -> Topic:
    """The rows of the table `name` of the platform, by their key; any detector may read them."""
    return Topic(topics.prefixed(f"lozenge.table.{name}.v1"), 1, _LISTS)
