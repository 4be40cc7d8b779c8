"""A cache takes releases while records come: each key is right, positions stay, and a bad one changes nothing."""

import json
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from lozenge.kafka.schema_topic import announce
from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.topic_admin import ensure_topics
from lozenge.process.waiting import wait_until
from lozenge.sink_declarations.project import DECLARATION
from lozenge.streams.project import STREAMS_VARIABLE
from lozenge_deploy.local.redis_server import LocalRedis
from lozenge_deploy.operations.declarations.apps import requests_of_apps
from tests.bench.backlog import write
from tests.brokers import Broker, own_platform
from tests.deploy.command import invoke
from tests.integration.harness import EVENT, event
from tests.integration.job.killing import process_of
from tests.sinks import released, sink_folder
from tests.streams import AUTH, FOLDER

NAME, VARIABLE = "taken", "TAKEN_CACHE_URL"
APP = f"sink-{NAME}"
CARDS, SECONDS = 40, 60.0
DECLARED = f"""
kind = "cache"
title = "Taken"
owner = "tests"
url = "${{{VARIABLE}}}"
stream = "auth"
"""
Called = Callable[..., Any]


@pytest.fixture
def kafka(broker: Broker) -> Iterator[KafkaSettings]:
    with own_platform(broker) as platform:
        ensure_topics(platform, platform.topics.platform_topics())
        announce(platform, [AUTH.event_schema])
        yield platform


@pytest.fixture
def url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    with LocalRedis(tmp_path / "valkey") as server:
        monkeypatch.setenv(VARIABLE, server.url)
        yield server.url


@pytest.fixture
def called(kafka: KafkaSettings, url: str, tmp_path: Path) -> Called:
    """What a command answers in the project: its JSON, or what it says on failure."""
    shutil.copytree(FOLDER, tmp_path / "upstream" / "streams")
    sink_folder(tmp_path, NAME, DECLARED)
    given = {STREAMS_VARIABLE: str(tmp_path / "upstream" / "streams")} | kafka.variables

    def call(*arguments: str) -> Any:
        run = invoke(*arguments, "-o", "json", cwd=tmp_path, **given)
        return json.loads(run.stdout) if not run.returncode else (run.returncode, run.stderr)

    return call


def status(called: Called) -> dict[str, Any]:
    [row] = called("status", APP)
    return dict(row)


def in_force(called: Called) -> tuple[str, str]:
    """The phase, and the release that runs."""
    row = status(called)
    return row["phase"], row["release"]


def right(called: Called) -> int:
    """How many keys are as in the topic; 0 if one is not."""
    found = called("cache", "verify", NAME)
    return int(found[0]["right"]) if isinstance(found, list) else 0


def test_releases_are_taken_at_a_commit_while_records_come_and_a_bad_one_leaves_the_good_one(
    called: Called, kafka: KafkaSettings, tmp_path: Path
) -> None:
    topic, file = AUTH.events(kafka.topics), tmp_path / "downstream" / "sinks" / NAME / DECLARATION
    stop, sent, logs = threading.Event(), count(), count()

    def records() -> Iterator[tuple[bytes, bytes]]:
        while not stop.is_set():
            time.sleep(0.002)
            number = next(sent)
            card = f"card_{number % CARDS}"
            yield card.encode(), EVENT.encode(event(number, card=card))

    def said() -> str:
        return "\n".join(log.read_text() for log in tmp_path.glob("log-*"))

    def runs(release: str) -> None:
        assert wait_until(lambda: in_force(called) == ("running", release), SECONDS), said()

    with ExitStack() as stack:

        def started() -> Any:
            log = tmp_path / f"log-{next(logs)}"
            return stack.enter_context(process_of(kafka, ["lozenge.sink", NAME], tmp_path, 1, log))

        assert "is not deployed" in called("sink", "rollback", NAME)[1]
        assert called("sink", "deploy", NAME, "--dry-run")[0]["changed"] is False
        assert called("sink", "deploy", NAME, "-m", "first")[0]["release"] == 1
        assert status(called)["phase"] == "not running"
        first = started()
        writer = threading.Thread(target=write, args=(kafka, topic, kafka.partitions, records()))
        writer.start()
        try:
            runs("r1")
            file.write_text(DECLARED + "rows = 7\n")
            assert called("sink", "deploy", NAME)[0]["release"] == 2
            started()
            first.kill()  # maybe while it takes the release
            runs("r2")
            file.write_text(DECLARED.replace('stream = "auth"', 'stream = "login"'))
            assert "would have events of login" in called("sink", "deploy", NAME)[1]
            released(kafka, APP, {"kind": "cache"}, 3, previous=2)
            assert wait_until(lambda: "r2 stays in force" in said(), SECONDS), said()
            assert "r3 is requested, and r2 runs" in status(called)["reason"]
            started().kill()  # a start in this state takes r2 too
            assert called("sink", "rollback", NAME, "--to", "r1")[0]["release"] == 1
            runs("r1")
            assert called("pause", APP, "--no-wait")[0]["paused"] is True
            assert status(called)["phase"] == "paused"
            assert "they would share" in called("scale", APP, "--instances", "99")[1]
            assert called("resume", APP, "--no-wait")[0]["paused"] is False
        finally:
            stop.set()
            writer.join()
        assert wait_until(lambda: right(called) == CARDS, SECONDS), said()
        assert called("retire", APP)[0]["retired"] is True
        assert "is not deployed" in called("resume", APP)[1]
    rows = requests_of_apps(kafka).states()[APP]
    assert [release.declaration.get("url") for release in rows.releases.values()] == [f"${{{VARIABLE}}}"] * 2 + [None]
    assert "redis://" not in json.dumps(called("sink", "history", NAME))
