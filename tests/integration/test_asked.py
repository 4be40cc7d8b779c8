"""A running notifier that is asked and told things over its API: what people say comes out in Kafka."""

import socket
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest

from lozenge import topics
from lozenge.avro import Codec
from lozenge_downstream.verdicts import Links
from tests.deploy.test_cli import lozenge
from tests.integration.notifying import World, world_of

pytestmark = pytest.mark.integration

LINK_SECRET = "a secret of sixteen"


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("asked")
    with world_of(folder, f"sqlite:///{folder / 'store.db'}") as world:
        yield world


@pytest.fixture
def url(world: World, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Where a notifier runs whose API the verbs use."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        bind = f"127.0.0.1:{free.getsockname()[1]}"
    url = f"http://{bind}"
    monkeypatch.setenv("LOZENGE_NOTIFIER_URL", url)
    settings = {"BIND": bind, "PUBLIC_URL": url, "LINK_SECRET": LINK_SECRET}
    with world.notifier(**{f"LOZENGE_DOWNSTREAM_{name}": value for name, value in settings.items()}):
        yield url


def feedback(world: World) -> list[dict[str, Any]]:
    """All that people said, as another client reads it."""
    found = [Codec.of("feedback").decode(record.value) for record in world.read(topics.FEEDBACK)]
    return sorted(found, key=lambda said: said["at"])


def test_a_snooze_by_verb_by_http_and_by_link_comes_out_alike(world: World, url: str) -> None:
    world.send("one", range(1))
    world.settle()
    (id,) = world.alert_ids
    said = {"verdict": "snooze", "author": "ann", "note": "travels"}
    assert httpx2.post(f"{url}/verdicts", json=said | {"alert_id": id}, trust_env=False).is_success
    assert httpx2.post(Links(LINK_SECRET, url).make(id), data=said, trust_env=False).is_success
    run = lozenge("verdict", id, "snooze", "--author", "ann", "--note", "travels", cwd=world.folder)
    assert run.returncode == 0, run.stderr
    world.wait_for(lambda: len(feedback(world)) >= 3, "feedback")
    found = feedback(world)
    week = [(f["snoozed_until"] - f["at"]).total_seconds() for f in found]
    assert week == pytest.approx([7 * 86_400] * 3)
    about = {(f["alert_id"], f["detector"], f["entity"], f["verdict"], f["author"], f["note"]) for f in found}
    assert about == {(id, "one", "card:card-0", "snooze", "ann", "travels")}
    silences = httpx2.get(f"{url}/silences", trust_env=False).json()
    assert [s["ends_at"] for s in silences] == pytest.approx([f["snoozed_until"].timestamp() for f in found])
