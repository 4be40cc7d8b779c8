"""Topic names and their contracts: the only place where a topic is spelled.

Names read `<prefix><domain>.<class>.<name>.v<N>`. The number of partitions is part of a topic's contract,
because `lozenge.contracts.partitioner.partition_of` derives a key's partition from it.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta

MOST_PARTITIONS = 1024
PREFIX_PATTERN = r"[a-zA-Z0-9._-]{0,64}"
LOG_PARTITIONS = 4
CHANGELOG_BYTES = 8 * 1024 * 1024
DEAD_LETTER_BYTES = 2 * 1024 * 1024
"""A dead letter is its record with more headers, so it is larger than the largest record of the source topic."""

UPSTREAM, DOWNSTREAM = "upstream", "downstream"
STAGES = (UPSTREAM, DOWNSTREAM)
"""The apps that are part of the platform and no detectors. Groups, headers, metrics and logs have their names."""
KEYS = {"card": "card_id", "terminal": "terminal_id", "merchant": "merchant_id", "account": "account_id"}
"""What events can be keyed by, and the event column that holds it."""
REKEYS = {name: column for name, column in KEYS.items() if name != "card"}
"""The keys of the copies of the events, which have topics of their own."""
RAW_JSON, RAW_ISO = "AUTH-JSON", "AUTH-ISO"
"""The raw topics, without the prefix."""
EVENT_RETENTION = timedelta(days=7)

_COMPACTED: Mapping[str, str] = {"cleanup.policy": "compact"}
# A topic whose keys are rewritten all the time is compacted early: a full read is then little more than its live keys.
_REWRITTEN: Mapping[str, str] = {
    "cleanup.policy": "compact",
    "min.cleanable.dirty.ratio": "0.1",
    "segment.ms": "600000",
}
_KEPT_7_DAYS: Mapping[str, str] = {"retention.ms": str(EVENT_RETENTION // timedelta(milliseconds=1))}
_KEPT: Mapping[str, str] = {"retention.ms": "-1"}
# The longest line of a log, every character of it escaped.
_LOGS: Mapping[str, str] = {**_KEPT_7_DAYS, "max.message.bytes": str(2 * 1024 * 1024)}
# A changelog is read at once and can be computed again. A row may be larger than an alert: its size is checked later.
_TRANSIENT: Mapping[str, str] = {
    "retention.ms": str(3600 * 1000),
    "segment.ms": str(600 * 1000),
    "max.message.bytes": str(CHANGELOG_BYTES),
}
_KEPT_30_DAYS: Mapping[str, str] = {"retention.ms": str(30 * 24 * 3600 * 1000)}
_DEAD_LETTERS: Mapping[str, str] = {"max.message.bytes": str(DEAD_LETTER_BYTES)}


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic's contract: name, partitions and broker-side configuration."""

    name: str
    partitions: int
    config: Mapping[str, str] = field(default_factory=dict)


def shadow_name(detector: str, release: str) -> str:
    """The topic-safe name of a release that runs next to the live one."""
    return f"{detector}.{re.sub(r'[^a-zA-Z0-9_-]', '-', release)}"


@dataclass(frozen=True, slots=True)
class Topics:
    """The topics of one platform.

    `prefix` begins the name of each topic, consumer group and transactional id, so several platforms can share a
    broker. `partitions` is the count of the raw topics, of events, and of every topic that is keyed as events are.
    """

    prefix: str = ""
    partitions: int = 4

    def prefixed(self, name: str) -> str:
        """`name` as the broker knows it: of a topic, a consumer group or a transactional id."""
        return self.prefix + name

    @property
    def raw_json(self) -> str:
        return self.prefixed(RAW_JSON)

    @property
    def raw_iso(self) -> str:
        return self.prefixed(RAW_ISO)

    @property
    def events(self) -> str:
        return self.prefixed("pay.canonical.auth.v1")

    @property
    def notifications(self) -> str:
        return self.prefixed("pay.notifications.v1")

    @property
    def feedback(self) -> str:
        return self.prefixed("pay.feedback.v1")

    @property
    def schemas(self) -> str:
        return self.prefixed("lozenge.ctl.schemas.v1")

    @property
    def deployments(self) -> str:
        return self.prefixed("lozenge.ctl.deployments.v1")

    @property
    def status(self) -> str:
        return self.prefixed("lozenge.ctl.status.v1")

    @property
    def leases(self) -> str:
        return self.prefixed("lozenge.ctl.leases.v1")

    @property
    def history(self) -> str:
        return self.prefixed("lozenge.ctl.history.v1")

    @property
    def releases(self) -> str:
        return self.prefixed("lozenge.ctl.releases.v1")

    @property
    def metrics(self) -> str:
        return self.prefixed("lozenge.metrics.v1")

    @property
    def logs(self) -> str:
        return self.prefixed("lozenge.logs.v1")

    def events_by(self, key: str | None) -> str:
        """The canonical topic keyed by `key`; None or "card" is the primary topic."""
        return self.events if key in (None, "card") else self.prefixed(f"pay.canonical.auth.by-{key}.v1")

    def alerts(self, detector: str) -> str:
        """The alert topic that only `detector` may write."""
        return self.prefixed(f"pay.alerts.{detector}.v1")

    @property
    def alerts_pattern(self) -> str:
        """A regular expression for the alert topics of all detectors."""
        return f"^{_literal(self.prefix)}pay\\.alerts\\.[a-z0-9_]+\\.v1$"

    def detector_of(self, alert_topic: str) -> str:
        """The detector that owns an alert topic; raises ValueError for any other topic."""
        match = re.fullmatch(rf"{_literal(self.prefix)}pay\.alerts\.([a-z0-9_]+)\.v1", alert_topic)
        if match is None:
            raise ValueError(f"{alert_topic} is not an alert topic")
        return match.group(1)

    def dead_letters(self, app: str) -> str:
        """The dead-letter topic of one app ("upstream", "downstream" or a detector)."""
        return self.prefixed(f"pay.dlq.{app}.v1")

    def app_of_dead_letters(self, topic: str) -> str | None:
        """The app whose dead letters a topic holds; None for any other topic, and for a shadow release's."""
        match = re.fullmatch(rf"{_literal(self.prefix)}pay\.dlq\.([a-z0-9_]+)\.v1", topic)
        return match.group(1) if match else None

    def resolutions(self, app: str) -> str:
        """How the dead letters of one app were resolved."""
        return self.prefixed(f"lozenge.resolutions.{app}.v1")

    def resolution_topic(self, app: str) -> Topic:
        """Created with the first resolution; kept for ever."""
        return Topic(self.resolutions(app), 1, _KEPT)

    def state(self, detector: str) -> str:
        """The compacted topic that holds a stateful detector's state, partitioned like its input."""
        return self.prefixed(f"lozenge.state.{detector}.v1")

    def changelog(self, detector: str) -> str:
        """What an aggregate in Real-Time Mode makes of each event, on its way from Spark to Python; read once."""
        return self.prefixed(f"lozenge.changelog.{detector}.v1")

    def coverage(self, detector: str) -> str:
        """Which release of a detector processed which events; kept for ever."""
        return self.prefixed(f"lozenge.coverage.{detector}.v1")

    def shadow_alerts(self, detector: str, release: str) -> str:
        """Where a release next to the live one writes; no notifier reads it."""
        return self.prefixed(f"pay.shadow.{shadow_name(detector, release)}.v1")

    def platform_topics(self, rekeyed: tuple[str, ...] = ("terminal",)) -> list[Topic]:
        """Topics that exist whatever detectors run; `rekeyed` names the declared copies of the events."""
        return [
            Topic(self.raw_json, self.partitions, _KEPT_7_DAYS),
            Topic(self.raw_iso, self.partitions, _KEPT_7_DAYS),
            Topic(self.events, self.partitions, _KEPT_7_DAYS),
            *(Topic(self.events_by(key), self.partitions, _KEPT_7_DAYS) for key in rekeyed),
            Topic(self.notifications, self.partitions, _KEPT_30_DAYS),
            Topic(self.feedback, self.partitions, _KEPT),
            *(Topic(self.dead_letters(app), self.partitions, {**_KEPT_30_DAYS, **_DEAD_LETTERS}) for app in STAGES),
            *self.control_topics(),
            Topic(self.metrics, 1, _REWRITTEN),
            Topic(self.logs, LOG_PARTITIONS, _LOGS),
        ]

    def control_topics(self) -> list[Topic]:
        """The control plane's: wanted, observed and released state, the leader, the schemas and the history."""
        return [
            *(Topic(name, 1, _COMPACTED) for name in (self.schemas, self.releases, self.deployments)),
            *(Topic(name, 1, _REWRITTEN) for name in (self.status, self.leases)),
            Topic(self.history, 1, _KEPT),
        ]

    def detector_topics(self, detector: str) -> list[Topic]:
        """The topics that belong to one detector: alerts, dead letters, state, changelog and coverage."""
        return [
            Topic(self.alerts(detector), self.partitions, _KEPT_30_DAYS),
            Topic(self.dead_letters(detector), self.partitions, {**_KEPT_30_DAYS, **_DEAD_LETTERS}),
            Topic(self.state(detector), self.partitions, _REWRITTEN),
            Topic(self.changelog(detector), 1, _TRANSIENT),
            Topic(self.coverage(detector), 1, _KEPT),
        ]

    def shadow_topics(self, detector: str, release: str) -> list[Topic]:
        """The topics of a release that runs next to the live one."""
        name = shadow_name(detector, release)
        return [
            Topic(self.shadow_alerts(detector, release), self.partitions, _KEPT_7_DAYS),
            Topic(self.dead_letters(name), self.partitions, {**_KEPT_7_DAYS, **_DEAD_LETTERS}),
            Topic(self.state(name), self.partitions, _REWRITTEN),
            Topic(self.changelog(name), 1, _TRANSIENT),
        ]


def _literal(prefix: str) -> str:
    """`prefix` in a regular expression; librdkafka's dialect knows no escaped hyphen, which `re.escape` writes."""
    return prefix.replace(".", r"\.")
