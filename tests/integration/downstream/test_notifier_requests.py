"""Requests to a running notifier: feedback is published to Kafka, and new rules take effect at once."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx2
import pytest

from lozenge.contracts import ids
from lozenge.contracts.avro import Codec
from lozenge.kafka.settings import KafkaSettings
from lozenge_downstream.api.feedback_records import FeedbackLinks
from tests.deploy.command import invoke
from tests.integration.downstream.notifying import World, world_of

pytestmark = pytest.mark.integration

LINK_SECRET = "a secret of sixteen"
ALARMS = "matcher=alarm%3Drouting_invalid"


@pytest.fixture(scope="module")
def world(kafka: KafkaSettings, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("asked")
    with world_of(kafka, folder, f"sqlite:///{folder / 'store.db'}") as world:
        yield world


@contextmanager
def served(world: World) -> Iterator[str]:
    """The URL of a running notifier's API."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        bind = f"127.0.0.1:{free.getsockname()[1]}"
    settings = {"BIND": bind, "PUBLIC_URL": f"http://{bind}", "LINK_SECRET": LINK_SECRET}
    with world.notifier(**{f"LOZENGE_DOWNSTREAM_{name}": value for name, value in settings.items()}):
        world.wait_for(lambda: answers(bind), "the API")
        yield f"http://{bind}"


def answers(bind: str) -> bool:
    try:
        return bool(get(f"http://{bind}/healthz")["ok"])
    except httpx2.ConnectError:
        return False


def get(url: str) -> Any:
    return httpx2.get(url, trust_env=False).json()


def feedback(world: World) -> list[dict[str, Any]]:
    """All that people said, as another client reads it."""
    found = [Codec.of("feedback").decode(record.value) for record in world.read(world.topics.feedback)]
    return sorted(found, key=lambda said: said["at"])


def test_a_snooze_by_verb_by_http_and_by_link_comes_out_alike(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.send("one", range(1))
    id = ids.alert_id("one", "card", "card-0", "0")
    with served(world) as url:
        monkeypatch.setenv("LOZENGE_NOTIFIER_URL", url)
        world.settle()
        _snooze_three_times(world, url, id)


def _snooze_three_times(world: World, url: str, id: str) -> None:
    said = {"verdict": "snooze", "author": "ann"}  # each with a note of its own: the same again would be one click
    by_http, by_link = said | {"note": "by HTTP", "alert_id": id}, said | {"note": "by link"}
    assert httpx2.post(f"{url}/feedback", json=by_http, trust_env=False).is_success
    assert httpx2.post(FeedbackLinks(LINK_SECRET, url).make(id), data=by_link, trust_env=False).is_success
    run = invoke("feedback", id, "snooze", "--author", "ann", "--note", "by verb", cwd=world.folder)
    assert run.returncode == 0, run.stderr
    world.wait_for(lambda: len(feedback(world)) >= 3, "feedback")
    found = feedback(world)
    week = [(f["snoozed_until"] - f["at"]).total_seconds() for f in found]
    assert week == pytest.approx([7 * 86_400] * 3)
    about = {(f["alert_id"], f["detector"], f["entity"], f["verdict"], f["author"]) for f in found}
    assert about == {(id, "one", "card:card-0", "snooze", "ann")}
    assert {f["note"] for f in found} == {"by HTTP", "by link", "by verb"}
    silences = get(f"{url}/silences")
    assert [s["ends_at"] for s in silences] == pytest.approx([f["snoozed_until"].timestamp() for f in found])


RULE = """
[[inhibit_rules]]
source_matchers = ["SOURCE"]
target_matchers = ["detector = two"]
equal = ["entity"]
"""


def inhibited(world: World, url: str, number: int) -> str:
    """Why an alert of the detector two is not notified, about a card of which one notified before."""
    world.send("two", range(number, number + 1))
    id = ids.alert_id("two", "card", f"card-{number}", str(number))
    world.alert_ids.discard(id)  # nobody hears of it
    world.wait_for(lambda: "alert" in get(f"{url}/alerts/{id}"), "the alert")
    return ", ".join(muted["reason"] for muted in get(f"{url}/alerts/{id}")["muted"])


def test_a_rule_inhibits_by_alerts_that_came_before_it_was_written(world: World) -> None:
    file = world.folder / "routing.toml"
    without = file.read_text()
    sources = [ids.alert_id("one", "card", f"card-{number}", str(number)) for number in (1, 2)]
    with served(world) as url:
        world.send("one", range(1, 3))
        world.settle()
        marker = '[channels.marker]\ntype = "kafka"\ntopic = "t"\n'
        file.write_text(without + RULE.replace("SOURCE", "detector = one") + marker)
        world.wait_for(lambda: "marker" in {row["channel"] for row in get(f"{url}/channels")}, "the new file")
        assert inhibited(world, url, 1) == f"inhibited by alert {sources[0]}"
    file.write_text(without + RULE.replace("SOURCE", "detector =~ one"))
    with served(world) as url:
        assert inhibited(world, url, 2) == f"inhibited by alert {sources[1]}"
    file.write_text(without)


def test_an_invalid_routing_file_raises_an_alarm_and_the_version_before_is_used_also_after_a_restart(
    world: World,
) -> None:
    file = world.folder / "routing.toml"
    valid = file.read_text()
    with served(world) as url:
        used = get(f"{url}/routing")["version"]
        file.write_text("[route\n")
        world.wait_for(lambda: bool(get(f"{url}/cases?{ALARMS}")), "the alarm")
        said = get(f"{url}/routing")
        assert (said["version"], said["versions"][0]["problems"] != "") == (used, True)
    with served(world) as url:
        assert get(f"{url}/routing")["version"] == used
        file.write_text(valid)
        world.wait_for(lambda: get(f"{url}/routing")["versions"][0]["problems"] == "", "the valid file")
        assert get(f"{url}/routing")["version"] == used
        for case in get(f"{url}/cases?{ALARMS}"):
            world.alert_ids.update(a["alert_id"] for a in get(f"{url}/cases/{case['case_id']}")["alerts"])
        world.settle()
