"""The description of the topics for other services is of the topics and schemas that there are."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from lozenge.contracts.schemas import newest
from lozenge.contracts.topics import Topics

TOPICS = Topics()
FILE = Path(__file__).parents[1] / "docs" / "asyncapi.yaml"
DOCUMENT: dict[str, Any] = yaml.safe_load(FILE.read_text("utf-8"))


@pytest.mark.parametrize(("name", "topic"), [("notification", TOPICS.notifications), ("feedback", TOPICS.feedback)])
def test_it_names_the_topic_and_the_newest_schema(name: str, topic: str) -> None:
    (channel,) = [c for c in DOCUMENT["channels"].values() if c["address"] == topic]
    assert list(channel["messages"]) == [name]
    schema = DOCUMENT["components"]["messages"][name]["payload"]["schema"]["$ref"]
    assert (FILE.parent / schema).read_text("utf-8") == newest(name).text


def test_it_says_how_long_notifications_are_kept() -> None:
    (topic,) = [t for t in TOPICS.platform_topics() if t.name == TOPICS.notifications]
    described = DOCUMENT["channels"]["notifications"]["bindings"]["kafka"]["topicConfiguration"]
    assert str(described["retention.ms"]) == topic.config["retention.ms"]
