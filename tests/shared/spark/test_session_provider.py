"""A process asks for a session by what it needs, and the provider decides about the JVM."""

from typing import Any

import pytest

from lozenge.spark import session_provider
from lozenge.spark.session_provider import OwnJvm, SessionProvider, SessionRequest


def test_a_jvm_of_ones_own_has_the_requested_size_and_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, dict[str, Any]]] = []
    monkeypatch.setattr(session_provider, "spark_session", lambda app, **given: asked.append((app, given)))
    provider: SessionProvider = OwnJvm()
    provider.start(SessionRequest("one", 2, 512, new_mb=32, result_mb=128, conf={"a": "b"}))
    provider.start(SessionRequest("two", 1, 450))
    conf = {"spark.driver.maxResultSize": "128m", "a": "b"}
    assert asked == [
        ("one", {"cores": 2, "memory_mb": 512, "new_mb": 32, "master": None, "conf": conf}),
        ("two", {"cores": 1, "memory_mb": 450, "new_mb": None, "master": None, "conf": {}}),
    ]
