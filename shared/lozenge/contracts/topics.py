"""Topic names and their contracts: the only place where a topic is spelled.

Names read `<domain>.<class>.<name>.v<N>`. The number of partitions is part of a topic's contract,
because `lozenge.contracts.partitioner.partition_of` decides from it where a key lives.
"""

import os
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field

PARTITIONS_VARIABLE = "LOZENGE_PARTITIONS"
MOST_PARTITIONS = 1024


def _partitions() -> int:
    """Of a platform; ends the process with code 2, as wrong settings do, if it is no number of partitions."""
    given = os.environ.get(PARTITIONS_VARIABLE, "4")
    if given.isascii() and given.isdigit() and 1 <= int(given) <= MOST_PARTITIONS:
        return int(given)
    print(f"{PARTITIONS_VARIABLE} is {given!r}: it must be a whole number from 1 to {MOST_PARTITIONS}", file=sys.stderr)
    raise SystemExit(2)


RAW_JSON = "AUTH-JSON"
RAW_ISO = "AUTH-ISO"
RAW_PARTITIONS = EVENT_PARTITIONS = _partitions()
"""Of the raw topics; of events, and of all that is keyed as they are. Every process of a platform is told the same."""
LOG_PARTITIONS = 4
CANDIDATE_BYTES = 8 * 1024 * 1024
DEAD_LETTER_BYTES = 2 * 1024 * 1024
"""A dead letter is its record with headers: larger than the largest that the topic took from which it comes."""

STAGES = ("upstream", "downstream")
"""The apps that are part of the platform, and no detectors."""
EVENTS = "pay.canonical.auth.v1"
NOTIFICATIONS = "pay.notifications.v1"
FEEDBACK = "pay.feedback.v1"
ALERTS_PATTERN = r"^pay\.alerts\.[a-z0-9_]+\.v1$"
SCHEMAS = "lozenge.ctl.schemas.v1"
DEPLOYMENTS = "lozenge.ctl.deployments.v1"
STATUS = "lozenge.ctl.status.v1"
LEASES = "lozenge.ctl.leases.v1"
HISTORY = "lozenge.ctl.history.v1"
RELEASES = "lozenge.ctl.releases.v1"
METRICS = "lozenge.metrics.v1"
LOGS = "lozenge.logs.v1"

_COMPACTED: Mapping[str, str] = {"cleanup.policy": "compact"}
# What is rewritten all the time is compacted early, so that reading it whole is little more than its live keys.
_REWRITTEN: Mapping[str, str] = {
    "cleanup.policy": "compact",
    "min.cleanable.dirty.ratio": "0.1",
    "segment.ms": "600000",
}
_KEPT_7_DAYS: Mapping[str, str] = {"retention.ms": str(7 * 24 * 3600 * 1000)}
_KEPT: Mapping[str, str] = {"retention.ms": "-1"}
# The longest line of a log, every character of it escaped.
_LOGS: Mapping[str, str] = {**_KEPT_7_DAYS, "max.message.bytes": str(2 * 1024 * 1024)}
# What is read at once, and made again where it was not. A row may be larger than any alert: that is looked at later.
_PASSING: Mapping[str, str] = {
    "retention.ms": str(3600 * 1000),
    "segment.ms": str(600 * 1000),
    "max.message.bytes": str(CANDIDATE_BYTES),
}
_KEPT_30_DAYS: Mapping[str, str] = {"retention.ms": str(30 * 24 * 3600 * 1000)}
_LETTERS: Mapping[str, str] = {"max.message.bytes": str(DEAD_LETTER_BYTES)}


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic's contract: name, partitions and broker-side configuration."""

    name: str
    partitions: int = EVENT_PARTITIONS
    config: Mapping[str, str] = field(default_factory=dict)


def events_by(key: str | None) -> str:
    """The canonical topic keyed by `key`; None or "card" is the primary topic."""
    return EVENTS if key in (None, "card") else f"pay.canonical.auth.by-{key}.v1"


def alerts(detector: str) -> str:
    """The alert topic that only `detector` may write."""
    return f"pay.alerts.{detector}.v1"


def dead_letters(app: str) -> str:
    """The dead-letter topic of one app ("upstream", "downstream" or a detector)."""
    return f"pay.dlq.{app}.v1"


def app_of_dead_letters(topic: str) -> str | None:
    """The app whose dead letters a topic holds; None for any other topic, and for what runs beside a live release."""
    match = re.fullmatch(r"pay\.dlq\.([a-z0-9_]+)\.v1", topic)
    return match.group(1) if match else None


def resolutions(app: str) -> str:
    """What was done about the dead letters of one app."""
    return f"lozenge.resolutions.{app}.v1"


def resolution_topic(app: str) -> Topic:
    """Made with the first thing that is done; kept for ever."""
    return Topic(resolutions(app), 1, _KEPT)


def state(detector: str) -> str:
    """The compacted topic that holds a stateful detector's state, partitioned like its input."""
    return f"lozenge.state.{detector}.v1"


def candidates(detector: str) -> str:
    """What an aggregate in Real-Time Mode makes of each event, on its way from Spark to who tells it; read once."""
    return f"lozenge.candidates.{detector}.v1"


def detector_of(alert_topic: str) -> str:
    """The detector that owns an alert topic; raises ValueError for any other topic."""
    match = re.fullmatch(r"pay\.alerts\.([a-z0-9_]+)\.v1", alert_topic)
    if match is None:
        raise ValueError(f"{alert_topic} is not an alert topic")
    return match.group(1)


def platform_topics(rekeyed: tuple[str, ...] = ("terminal",)) -> list[Topic]:
    """Topics that exist whatever detectors run; `rekeyed` names the declared copies of the events."""
    return [
        Topic(RAW_JSON, RAW_PARTITIONS, _KEPT_7_DAYS),
        Topic(RAW_ISO, RAW_PARTITIONS, _KEPT_7_DAYS),
        Topic(EVENTS, EVENT_PARTITIONS, _KEPT_7_DAYS),
        *(Topic(events_by(key), EVENT_PARTITIONS, _KEPT_7_DAYS) for key in rekeyed),
        Topic(NOTIFICATIONS, EVENT_PARTITIONS, _KEPT_30_DAYS),
        Topic(FEEDBACK, EVENT_PARTITIONS, _KEPT),
        Topic(dead_letters("upstream"), EVENT_PARTITIONS, {**_KEPT_30_DAYS, **_LETTERS}),
        Topic(dead_letters("downstream"), EVENT_PARTITIONS, {**_KEPT_30_DAYS, **_LETTERS}),
        *control_topics(),
        Topic(METRICS, 1, _REWRITTEN),
        Topic(LOGS, LOG_PARTITIONS, _LOGS),
    ]


def control_topics() -> list[Topic]:
    """The control plane's; what is desired, observed and released, the lead, the schemas and the history."""
    compacted = [Topic(name, 1, _COMPACTED) for name in (SCHEMAS, RELEASES, DEPLOYMENTS)]
    return [*compacted, Topic(STATUS, 1, _REWRITTEN), Topic(LEASES, 1, _REWRITTEN), Topic(HISTORY, 1, _KEPT)]


def coverage(detector: str) -> str:
    """Which release of a detector judged which events; kept for ever."""
    return f"lozenge.coverage.{detector}.v1"


def detector_topics(detector: str) -> list[Topic]:
    """The topics that belong to one detector: alerts, dead letters, state, candidates and coverage."""
    return [
        Topic(alerts(detector), EVENT_PARTITIONS, _KEPT_30_DAYS),
        Topic(dead_letters(detector), EVENT_PARTITIONS, {**_KEPT_30_DAYS, **_LETTERS}),
        Topic(state(detector), EVENT_PARTITIONS, _REWRITTEN),
        Topic(candidates(detector), 1, _PASSING),
        Topic(coverage(detector), 1, _KEPT),
    ]


def shadow_name(detector: str, release: str) -> str:
    """The topic-safe name of a release that runs beside the live one."""
    return f"{detector}.{re.sub(r'[^a-zA-Z0-9_-]', '-', release)}"


def shadow_alerts(detector: str, release: str) -> str:
    """Where a release beside the live one writes; no notifier reads it."""
    return f"pay.shadow.{shadow_name(detector, release)}.v1"


def shadow_topics(detector: str, release: str) -> list[Topic]:
    """The topics of a release that runs beside the live one."""
    name = shadow_name(detector, release)
    return [
        Topic(shadow_alerts(detector, release), EVENT_PARTITIONS, _KEPT_7_DAYS),
        Topic(dead_letters(name), EVENT_PARTITIONS, {**_KEPT_7_DAYS, **_LETTERS}),
        Topic(state(name), EVENT_PARTITIONS, _REWRITTEN),
        Topic(candidates(name), 1, _PASSING),
    ]
