"""A mapping changes and comes back under five running detectors and another stream, and neither notices.

    python -m pytest -q -s tests/bench/test_mapping_change.py    LOZENGE_MAPPING_RATE=40 LOZENGE_MAPPING_SECONDS=30

A platform of `lozenge up` normalises payments and logins. `lozenge stream deploy auth` and `rollback` change payments
at exact raw offsets, which the history names. The batch ids of the detectors have no gap, the normaliser of logins
stays the process that it was, and each raw record is one event or one dead letter.
"""

import json
import os
import shutil
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil

from lozenge.contracts.avro import Codec
from lozenge.contracts.dead_letters import SOURCE_OFFSET, SOURCE_PARTITION
from lozenge.kafka.settings import KafkaSettings
from lozenge.streams.folder import MAPPINGS
from lozenge_deploy.demo.feed import Generator
from lozenge_deploy.demo.feed.formats import RAW_JSON, RAW_LOGIN
from lozenge_deploy.demo.feed.producer import RecordProducer
from lozenge_deploy.demo.feed.schedule import steady, throttled
from lozenge_deploy.releases.build import parts_of
from lozenge_deploy.releases.environments import environment
from lozenge_deploy.releases.test_run import proof_of
from tests.bench.soak import Watcher
from tests.bench.world import wait_until
from tests.deploy.command import ROOT, lozenge
from tests.integration import clients
from tests.integration.harness import committed
from tests.streams import FOLDER, STREAMS

DETECTORS = ("large_amount", "duplicate_charge", "shared_device", "impossible_travel", "account_takeover")
RATE = float(os.environ.get("LOZENGE_MAPPING_RATE", "40"))
SECONDS = float(os.environ.get("LOZENGE_MAPPING_SECONDS", "30"))
CASE_EVERY = 3.0
MERCHANT = 'merchant_id = { transform = "text", path = "merchant" }'
CONSTANT = 'merchant_id = { transform = "constant", value = "another" }'


class Project:
    """A copy of this project's streams and detectors, and the platform that runs them."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.streams, self.work = folder, folder / "upstream" / "streams", folder / ".lozenge"
        self.variables: dict[str, str] = {"LOZENGE_STREAMS": str(self.streams)}
        shutil.copytree(FOLDER, self.streams)
        for name in DETECTORS:
            shutil.copytree(ROOT / "detectors" / name, folder / "detectors" / name)
        (folder / "pyproject.toml").touch()

    def lozenge(self, *arguments: str) -> str:
        """Runs a command, which must succeed; returns what it prints."""
        run = lozenge(*arguments, cwd=self.folder, **self.variables)
        assert run.returncode == 0, f"{' '.join(arguments)}: {run.stdout}{run.stderr}"
        return run.stdout

    @contextmanager
    def up(self) -> Iterator[KafkaSettings]:
        """The platform with all detectors, whose own tests do not run here."""
        self.lozenge("up", "--port", "0")
        try:
            kafka = KafkaSettings.local(json.loads((self.work / "platform.json").read_text())["bootstrap"])
            self.variables |= kafka.variables
            for name in DETECTORS:
                home = self.folder / "detectors" / name
                proof_of(home, environment(parts_of(home))).touch()
                self.lozenge("deploy", name, "--watch", "0s")
            yield kafka
        finally:
            self.lozenge("down")

    def normaliser(self, stream: str) -> int:
        """The process of the normaliser of a stream."""
        platform = psutil.Process(json.loads((self.work / "platform.json").read_text())["pid"])
        [found] = [
            each.pid
            for each in platform.children()
            if each.cmdline()[-1:] == ["lozenge_upstream"] and each.environ()["LOZENGE_UPSTREAM_STREAM"] == stream
        ]
        return found


@contextmanager
def traffic(kafka: KafkaSettings) -> Iterator[None]:
    """Payments and logins, broken ones among them, as long as the block runs."""
    stop, now = threading.Event(), datetime.now(UTC)
    feed = Generator(now, malformed_rate=0.02, logins=True)
    sender = RecordProducer(kafka, [RAW_JSON, RAW_LOGIN], stop.is_set)
    live = feed.live(throttled(steady(now, RATE), stop.is_set), CASE_EVERY)
    thread = threading.Thread(target=sender.send, args=(live,))
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
        sender.close()
    assert sender.failed == 0


def test_neither_a_detector_nor_another_stream_notices(tmp_path: Path) -> None:
    project = Project(tmp_path / "project")
    mapping = project.streams / "auth" / MAPPINGS / "auth_json.toml"
    with project.up() as kafka:
        watcher = Watcher(project.work / "jobs")
        watcher.start()
        with traffic(kafka):
            assert wait_until(lambda: all(_batches(watcher, name) > 2 for name in DETECTORS)), "they process"
            project.lozenge("stream", "deploy", "auth", "-m", "as it is")
            other, began = project.normaliser("login"), time.time()
            time.sleep(SECONDS)
            mapping.write_text(mapping.read_text("utf-8").replace(MERCHANT, CONSTANT, 1), "utf-8")
            print(project.lozenge("stream", "deploy", "auth", "--no-test", "-m", "a constant"), flush=True)
            time.sleep(SECONDS)
            print(project.lozenge("stream", "rollback", "auth", "-m", "not so"), flush=True)
            time.sleep(SECONDS)
            ended = time.time()
            assert project.normaliser("login") == other
        watcher.end()
        disturbed = [line for name in DETECTORS for line in watcher.disturbances(name, began, ended)]
        print(disturbed or f"{len(DETECTORS)} detectors: process and batch ids unbroken", flush=True)
        assert not disturbed
        assert _releases(project, "auth", RAW_JSON) == ["folder", "r1", "r2", "r1"]
        assert _releases(project, "login", RAW_LOGIN) == ["folder"]
        print(project.lozenge("stream", "history", "auth"), flush=True)
        for stream, raw in (("auth", RAW_JSON), ("login", RAW_LOGIN)):
            each_came_out_once(kafka, stream, raw)


def _batches(watcher: Watcher, name: str) -> int:
    return len({batch for *_, batch in list(watcher.seen[name])})


def _releases(project: Project, stream: str, raw: str) -> list[str]:
    """Those that a stream's raw topic went through."""
    rows = json.loads(project.lozenge("stream", "history", stream, "-o", "json"))
    return [row["release"] for row in rows if row["topic"] == raw]


def each_came_out_once(kafka: KafkaSettings, stream: str, raw: str) -> None:
    """Each raw record is one event or one dead letter; prints their numbers."""
    definition = STREAMS.get(stream)
    sent = {(p, offset) for p, end in clients.ends(kafka, kafka.topics.prefixed(raw)).items() for offset in range(end)}

    def found() -> Counter[tuple[int, int]]:
        decode = Codec(definition.event_schema).decode
        events = [decode(record.value)["raw"] for record in committed(kafka, kafka.topics.events(stream))]
        dead = [dict(record.headers) for record in committed(kafka, kafka.topics.dead_letters(definition.app))]
        return Counter((each["partition"], each["offset"]) for each in events) + Counter(map(_position, dead))

    assert wait_until(lambda: found().keys() == sent), f"{stream}: {len(sent - found().keys())} are missing"
    twice = {position: n for position, n in found().items() if n > 1}
    print(f"{stream}: {len(sent)} raw records, each came out once", flush=True)
    assert not twice


def _position(headers: dict[str, Any]) -> tuple[int, int]:
    return int(headers[SOURCE_PARTITION]), int(headers[SOURCE_OFFSET])
