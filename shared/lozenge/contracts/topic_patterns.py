"""Which topics of a broker are alert topics or dead-letter topics of a platform, and whose."""

import re

from lozenge.contracts.topics import Topics

_APP = "[a-z0-9_]+"
_PLACEHOLDER = "{app}"


def alert_topics(topics: Topics) -> str:
    """A regular expression for the alert topics of all detectors, as a subscription of librdkafka takes it."""
    return f"^{_pattern(topics.detector(_PLACEHOLDER).alerts, _APP)}$"


def detector_of(topics: Topics, alert_topic: str) -> str:
    """The detector that owns an alert topic; raises ValueError for any other topic."""
    match = re.fullmatch(_pattern(topics.detector(_PLACEHOLDER).alerts, f"({_APP})"), alert_topic)
    if match is None:
        raise ValueError(f"{alert_topic} is not an alert topic")
    return match.group(1)


def app_of_dead_letters(topics: Topics, topic: str) -> str | None:
    """The app whose dead letters a topic holds; None for any other topic, and for a shadow release's."""
    match = re.fullmatch(_pattern(topics.dead_letters(_PLACEHOLDER), f"({_APP})"), topic)
    return match.group(1) if match else None


def _pattern(name: str, app: str) -> str:
    """The regular expression of a topic's name; librdkafka knows no escaped hyphen, which `re.escape` writes."""
    return name.replace(".", r"\.").replace(_PLACEHOLDER, app)
