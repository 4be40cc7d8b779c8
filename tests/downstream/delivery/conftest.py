"""A store in a file, and a webhook with its secret."""

from collections.abc import Iterator
from typing import Any

import pytest

from lozenge_downstream.store import Store
from tests.downstream.conftest import SECRET


@pytest.fixture(autouse=True)
def secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOOK_SECRET", SECRET)


def hook(url: str, **settings: Any) -> dict[str, Any]:
    webhook = {"type": "webhook", "secret": {"env": "HOOK_SECRET"}, "networks": ["127.0.0.0/8"]}
    return {"url": url, "first_retry": 0.1, "max_retry": 0.2, **webhook, **settings}


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    """An empty store on the machine's own clock."""
    store = Store(url)
    yield store
    store.close()
