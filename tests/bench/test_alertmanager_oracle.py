"""The same 10,000 alerts, silences and inhibitions through a real Prometheus Alertmanager and through our stages.

`make bench-pytest ARGS="-k alertmanager"`, with Debian's package `prometheus-alertmanager` installed. Compared are the
alerts of each group of each route: who is told together, and who is not told at all. Prints what differs.

Two differences are meant, and not compared: Alertmanager tells all firing alerts of a group each time, ours those that
are new; and it waits for the whole `group_interval` where ours tells something new of a group at once that was not told
for that long.
"""

import json
import random
import shutil
import subprocess
import threading
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx2
import pytest

from lozenge.avro import Codec
from lozenge_deploy.broker import free_port
from lozenge_downstream.model import Record
from lozenge_downstream.routing.matchers import parse
from tests.downstream.conftest import Desk

ALERTS, ENTITIES, DETECTORS = 10_000, 1_500, 10
SEVERITIES = ("info", "low", "medium", "high", "critical")
GROUP_WAIT = 15
"""Seconds; all alerts must be there by then."""
CHUNK = 500
START_SECONDS = 60
PROGRAM = shutil.which("prometheus-alertmanager") or shutil.which("alertmanager")
SILENCES = (["detector = d7"], ["entity = card:13", "severity = medium"])

Groups = dict[tuple[str, str], set[str]]
"""The alerts of each group, by route and the labels that they have in common."""

THEIRS = """
route:
  receiver: default
  group_by: [entity]
  group_wait: {wait}s
  group_interval: 5m
  repeat_interval: 4h
  routes:
  - receiver: audit
    matchers: ['severity=~"medium|high|critical"']
    group_by: [detector]
    continue: true
  - receiver: three
    matchers: ['detector="d3"']
    group_by: [entity, detector]
    routes:
    - receiver: urgent
      matchers: ['severity=~"high|critical"']
  - receiver: ones
    matchers: ['entity=~"card:1.*"', 'detector!="d4"']
receivers:
{receivers}
inhibit_rules:
- source_matchers: ['severity="critical"']
  target_matchers: ['severity=~"info|low"']
  equal: [entity]
- source_matchers: ['detector="d1"']
  target_matchers: ['detector=~"d[12]"']
  equal: [entity]
"""
OURS: dict[str, Any] = {
    "noise": {"alerts": 10 * ALERTS},
    "route": {
        "group_by": ["entity"],
        "group_wait": f"{GROUP_WAIT}s",
        "routes": [
            {"name": "audit", "match": ["severity >= medium"], "group_by": ["detector"], "continue": True},
            {
                "name": "three",
                "match": ["detector = d3"],
                "group_by": ["entity", "detector"],
                "routes": [{"name": "urgent", "match": ["severity >= high"]}],
            },
            {"name": "ones", "match": ['entity =~ "card:1.*"', "detector != d4"]},
        ],
    },
    "inhibit": [
        {"source": ["severity = critical"], "target": ["severity <= low"], "equal": ["entity"]},
        {"source": ["detector = d1"], "target": ['detector =~ "d[12]"'], "equal": ["entity"]},
    ],
}


def alerts() -> Iterator[dict[str, str]]:
    """Their labels, the same on every run."""
    chance = random.Random(7)
    for number in range(ALERTS):
        yield {
            "alert_id": f"a-{number}",
            "detector": f"d{chance.randrange(DETECTORS)}",
            "severity": chance.choice(SEVERITIES),
            "entity": f"card:{chance.randrange(ENTITIES)}",
        }


@pytest.mark.skipif(PROGRAM is None, reason="the package prometheus-alertmanager is not installed")
def test_alertmanager_and_ours_group_silence_and_inhibit_alike(tmp_path: Path) -> None:
    theirs, ours = through_alertmanager(tmp_path), through_ours(tmp_path)
    places = sorted(theirs.keys() | ours.keys())
    different = [place for place in places if theirs.get(place, set()) != ours.get(place, set())]
    told = [sum(map(len, groups.values())) for groups in (theirs, ours)]
    print(f"\n{len(theirs):,} groups with {told[0]:,} alerts there, {len(ours):,} with {told[1]:,} here")
    for place in different[:20]:
        there, here = theirs.get(place, set()), ours.get(place, set())
        print(f"{place}: there alone {sorted(there - here)[:5]}, here alone {sorted(here - there)[:5]}")
    assert not different, f"{len(different)} of {len(places)} groups differ"


def through_ours(folder: Path) -> Groups:
    """What our stages tell, on a clock that is moved."""
    desk = Desk(f"sqlite:///{folder / 'store.db'}")
    desk.routing(**OURS)
    codec = Codec.of("alert")
    with desk.store.transaction() as t:
        for matchers in SILENCES:
            t.silences.add([parse(m) for m in matchers], "oracle", "compared", desk.now + 86_400)
    records = [_record(codec, number, labels) for number, labels in enumerate(alerts())]
    for start in range(0, len(records), CHUNK):
        desk.take(*records[start : start + CHUNK])
    while desk.later(GROUP_WAIT):
        pass
    groups: Groups = defaultdict(set)
    for told in desk.told():
        groups[told["routes"][0], _text(told["group"])].update(told["alert_ids"])
    desk.store.close()
    return dict(groups)


def _record(codec: Codec, number: int, labels: Mapping[str, str]) -> Record:
    now = datetime.now(UTC)
    type, _, id = labels["entity"].partition(":")
    alert = {
        "alert_id": labels["alert_id"],
        "detector": labels["detector"],
        "release": "r1",
        "settings_digest": "d1",
        "entity": {"type": type, "id": id},
        "severity": labels["severity"],
        "score": 0.5,
        "title": "Oracle",
        "reason": "compared",
        "evidence": {"event_ids": [], "values": {}},
        "event_time": now,
        "detected_at": now,
        "labels": {},
    }
    return Record(f"pay.alerts.{labels['detector']}.v1", 0, number, id.encode(), codec.encode(alert), [])


def through_alertmanager(folder: Path) -> Groups:
    """What Alertmanager tells its receivers."""
    names = ("default", "audit", "three", "urgent", "ones")
    groups: Groups = defaultdict(set)
    with receiving(groups) as url:
        receivers = "".join(f"- name: {n}\n  webhook_configs: [{{url: '{url}/{n}', max_alerts: 0}}]\n" for n in names)
        (folder / "alertmanager.yml").write_text(THEIRS.format(wait=GROUP_WAIT, receivers=receivers))
        with alertmanager(folder) as api:
            now = datetime.now(UTC)
            for matchers in SILENCES:
                httpx2.post(f"{api}/silences", json=_silence(matchers, now)).raise_for_status()
            end = (now + timedelta(hours=1)).isoformat()
            given = [{"labels": labels, "endsAt": end, "annotations": {}} for labels in alerts()]
            for start in range(0, len(given), CHUNK):
                httpx2.post(f"{api}/alerts", json=given[start : start + CHUNK], timeout=30).raise_for_status()
            seen, quiet = -1, 0
            while quiet < 2 * GROUP_WAIT:  # all groups have been told when nothing has come for so long
                time.sleep(1)
                count = sum(map(len, groups.values()))
                seen, quiet = count, quiet + 1 if count == seen else 0
    return dict(groups)


def _silence(matchers: list[str], now: datetime) -> dict[str, Any]:
    parsed = [parse(m) for m in matchers]
    return {
        "matchers": [{"name": m.label, "value": m.value, "isRegex": False, "isEqual": True} for m in parsed],
        "startsAt": now.isoformat(),
        "endsAt": (now + timedelta(days=1)).isoformat(),
        "createdBy": "oracle",
        "comment": "compared",
    }


def _text(group: Mapping[str, str]) -> str:
    return json.dumps(group, sort_keys=True)


@contextmanager
def receiving(groups: Groups) -> Iterator[str]:
    """A receiver that notes which alerts are told together."""
    lock = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            told = json.loads(self.rfile.read(int(self.headers["content-length"])))
            with lock:
                place = self.path.strip("/"), _text(told["groupLabels"])
                groups[place].update(alert["labels"]["alert_id"] for alert in told["alerts"])
            self.send_response(200)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        request_queue_size = 4096  # all groups are told at the same moment

    server = Server(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@contextmanager
def alertmanager(folder: Path) -> Iterator[str]:
    """A running Alertmanager; the address of its API."""
    assert PROGRAM
    port = free_port(0)
    command = [PROGRAM, f"--config.file={folder / 'alertmanager.yml'}", f"--storage.path={folder / 'alertmanager'}",
               f"--web.listen-address=127.0.0.1:{port}", "--cluster.listen-address="]  # fmt: skip
    with (folder / "alertmanager.log").open("w") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        api = f"http://127.0.0.1:{port}/api/v2"
        deadline = time.monotonic() + START_SECONDS
        while not _answers(api):
            assert process.poll() is None, (folder / "alertmanager.log").read_text()
            assert time.monotonic() < deadline, (folder / "alertmanager.log").read_text()
            time.sleep(0.1)
        yield api
    finally:
        process.terminate()
        process.wait(20)


def _answers(api: str) -> bool:
    try:
        return httpx2.get(f"{api}/status").is_success
    except httpx2.HTTPError:
        return False
