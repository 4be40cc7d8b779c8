"""The script through a real Alertmanager, on the clock on the wall."""

import json
import shutil
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx2

from lozenge_deploy.local.ports import free_port
from lozenge_downstream.routing.matchers import parse
from tests.bench.oracle.notifications import There, group_of
from tests.bench.oracle.routes import theirs
from tests.bench.oracle.script import ASKED, END, FOREVER, SILENCES, WAVES, Given, Silence, alerts

PROGRAM = shutil.which("prometheus-alertmanager") or shutil.which("alertmanager")
CHUNK = 500
START_SECONDS = 60
Receivers = dict[str, set[str]]
"""Who receives each alert."""


def through_alertmanager(folder: Path, start: float) -> tuple[list[There], Receivers]:
    """The notifications of Alertmanager from `start`, which is ahead; times are seconds after it."""
    messages: list[There] = []
    receivers: Receivers = {}
    by_hand: dict[int, list[str]] = {}
    with receiving(messages, start) as url:
        (folder / "alertmanager.yml").write_text(theirs(start, url))
        with alertmanager(folder) as api, httpx2.Client(base_url=api, timeout=60) as client:
            for at in range(END):
                time.sleep(max(0.0, start + at - time.time()))
                for id in by_hand.pop(at, ()):
                    client.delete(f"/silence/{id}").raise_for_status()
                for silence in (s for s in SILENCES if s.made == at):
                    id = make(client, silence, start)
                    if silence.ends_by_hand:
                        by_hand.setdefault(silence.ends, []).append(id)
                if at in WAVES:
                    raise_alerts(client, [alert for alert in alerts() if alert.at == at])
                    assert time.time() < start + at + 8, "this machine is too busy to keep to the script"
                if at in ASKED:
                    receivers |= asked(client)
    return messages, receivers


def raise_alerts(client: httpx2.Client, given: Sequence[Given]) -> None:
    """Posts them without an end, as somebody does who will not repeat them."""
    for first in range(0, len(given), CHUNK):
        chunk = [{"labels": dict(alert.labels), "annotations": {}} for alert in given[first : first + CHUNK]]
        client.post("/alerts", json=chunk).raise_for_status()


def asked(client: httpx2.Client) -> Receivers:
    """Who receives each alert that lasts, silenced or not."""
    found = client.get("/alerts").raise_for_status().json()
    return {a["labels"]["alert_id"]: {r["name"] for r in a["receivers"]} for a in found}


def make(client: httpx2.Client, silence: Silence, start: float) -> str:
    """A silence; its id."""
    made = {
        "matchers": [
            {"name": m.label, "value": m.value, "isRegex": m.operator in ("=~", "!~"), "isEqual": "!" not in m.operator}
            for m in map(parse, silence.matchers)
        ],
        "startsAt": _iso(start + silence.starts),
        "endsAt": _iso(start + (FOREVER if silence.ends_by_hand else silence.ends)),
        "createdBy": "oracle",
        "comment": "compared",
    }
    answer = client.post("/silences", json=made).raise_for_status()
    return str(answer.json()["silenceID"])


def _iso(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat()


@contextmanager
def receiving(messages: list[There], start: float) -> Iterator[str]:
    """A receiver that records its messages."""
    lock = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            at = time.time() - start
            message: dict[str, Any] = json.loads(self.rfile.read(int(self.headers["content-length"])))
            alerts = {status: [a["labels"]["alert_id"] for a in message["alerts"] if a["status"] == status]
                      for status in ("firing", "resolved")}  # fmt: skip
            there = group_of(self.path.strip("/"), message["groupLabels"])
            with lock:
                messages.append(There(at, there, frozenset(alerts["firing"]), frozenset(alerts["resolved"])))
            self.send_response(200)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        request_queue_size = 4096  # all groups notify at the same moment
        daemon_threads = True

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
    """A running Alertmanager with the file and the data in `folder`; the address of its API. Killed at the end."""
    assert PROGRAM
    port = free_port(0)
    command = [PROGRAM, f"--config.file={folder / 'alertmanager.yml'}", f"--storage.path={folder / 'alertmanager'}",
               f"--web.listen-address=127.0.0.1:{port}", "--cluster.listen-address="]  # fmt: skip
    with (folder / "alertmanager.log").open("a") as log:
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
        process.kill()
        process.wait(20)


def _answers(api: str) -> bool:
    try:
        return httpx2.get(f"{api}/status").is_success
    except httpx2.HTTPError:
        return False
