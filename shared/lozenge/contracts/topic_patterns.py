"""Which topics hold events, alerts, dead letters, states, a list or a table of a platform, and whose."""

import re
from collections.abc import Iterable

from lozenge.contracts.topics import LIST_NAME, Topics, platform_table, reference_list

_NAME = "[a-z0-9_]+"
_APP = "[a-z0-9_-]+"
_JOB = rf"{_NAME}(?:\.[a-zA-Z0-9_-]+)?"
_PLACEHOLDER = "{app}"
_OF_STAGES = r"pay\.(alerts|canonical|dlq|feedback|merged|notifications|shadow)\."
_WRITTEN = re.compile(rf"lozenge\.|{_OF_STAGES}")
_OF_PEOPLE = re.compile(rf"lozenge\.changelog\.|{_OF_STAGES}")


def is_written_by_platform(topic: str) -> bool:
    """Whether a topic, named without a prefix, is one of the platform's own, and so holds no raw records."""
    return _WRITTEN.match(topic) is not None


def alert_topics(topics: Topics) -> str:
    """A regular expression for the alert topics of all detectors, as a subscription of librdkafka takes it."""
    return f"^{_pattern(topics.detector(_PLACEHOLDER).alerts, _NAME)}$"


def detector_of(topics: Topics, alert_topic: str) -> str:
    """The detector that owns an alert topic; raises ValueError for any other topic."""
    match = re.fullmatch(_pattern(topics.detector(_PLACEHOLDER).alerts, f"({_NAME})"), alert_topic)
    if match is None:
        raise ValueError(f"{alert_topic} is not an alert topic")
    return match.group(1)


def app_of_dead_letters(topics: Topics, topic: str) -> str | None:
    """The app whose dead letters a topic holds; None for any other topic, and for a shadow release's."""
    match = re.fullmatch(_pattern(topics.dead_letters(_PLACEHOLDER), f"({_APP})"), topic)
    return match.group(1) if match else None


def event_topics(topics: Topics, existing: Iterable[str], key: str) -> list[str]:
    """Those of `existing` that hold events keyed by `key`: copies by it, streams' own topics, then the merged topic."""
    forms = [_pattern(name, _NAME) for name in (topics.events(_PLACEHOLDER, key), topics.events(_PLACEHOLDER))]
    forms.append(_pattern(topics.merged(key), _NAME))
    return [name for form in forms for name in sorted(existing) if re.fullmatch(form, name)]


def name_of_list(topics: Topics, topic: str) -> str | None:
    """The name of the reference list that is in `topic`; None if none is."""
    match = re.fullmatch(_pattern(reference_list(topics, _PLACEHOLDER).name, f"({LIST_NAME})"), topic)
    return match.group(1) if match else None


def job_of_state(topics: Topics, topic: str) -> str | None:
    """The detector whose state is in `topic`, or "DETECTOR.RELEASE" of a shadow release; None for any other topic."""
    match = re.fullmatch(_pattern(topics.detector(_PLACEHOLDER).state, f"({_JOB})"), topic)
    return match.group(1) if match else None


def names_people(topics: Topics, topic: str) -> bool:
    """Whether a topic of the platform that is not compacted may name an entity: in records, logs, the audit log."""
    named = topic.removeprefix(topics.prefix)
    own = topics.prefixed(named) == topic and _OF_PEOPLE.match(named) is not None
    return own or topic in (topics.logs, topics.control.audit.name)


def name_of_table(topics: Topics, topic: str) -> str | None:
    """The name of the platform's table that is in `topic`; None if none is."""
    match = re.fullmatch(_pattern(platform_table(topics, _PLACEHOLDER).name, f"({LIST_NAME})"), topic)
    return match.group(1) if match else None


def _pattern(name: str, app: str) -> str:
    """The regular expression of a topic's name; librdkafka knows no escaped hyphen, which `re.escape` writes."""
    return name.replace(".", r"\.").replace(_PLACEHOLDER, app)
