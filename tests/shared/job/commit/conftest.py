"""Kafka of the tests of commits."""

import pytest

from tests.shared.job.commit.scripted import ScriptedBroker


@pytest.fixture
def scripted(monkeypatch: pytest.MonkeyPatch) -> ScriptedBroker:
    """A broker that follows a script; claims and commits meet it."""
    broker = ScriptedBroker()
    broker.connect(monkeypatch)
    return broker
