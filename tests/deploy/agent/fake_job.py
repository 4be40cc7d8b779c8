"""A job without Spark and Kafka: it reads its spec, reports like `lozenge.job`, and fails as its behaviour says.

It imports little, since the tests start a hundred of them.

Usage: `fake_job.py BEHAVIOUR`, run in the folder of its job.
"""

import json
import signal
import sys
import time
from pathlib import Path
from typing import Any

from lozenge.job.lifecycle.status_reporter import JobStatusReporter
from lozenge.protocol.job_status import JobPhase

JobSpec = dict[str, Any]
behaviour, folder = sys.argv[1], Path.cwd()
reporter = JobStatusReporter(folder)
stopped = False


def stop(*_: object) -> None:
    global stopped
    stopped = behaviour != "deaf"


def go_live(spec: JobSpec) -> None:
    reporter.went_live(spec["generation"], {0: 7}, {0: 7})
    reporter.update(revision=spec["revision"])


def await_file(name: str) -> None:
    while not (folder.parent / name).exists():
        time.sleep(0.02)


def read_spec() -> JobSpec:
    spec: JobSpec = json.loads((folder / "job_spec.json").read_text("utf-8"))
    return spec


signal.signal(signal.SIGTERM, stop)
if behaviour == "crash at start":
    sys.exit('{"level": "error", "event": "it cannot start"}')
if behaviour == "no broker":
    sys.exit(3)
spec = read_spec()
reporter.query_started(JobPhase.STARTING, spec["revision"], "digest", {0: 0})
reporter.update(generation=spec["generation"])
if spec["standby"]:
    reporter.update(phase=JobPhase.STANDBY)
    if behaviour == "crash as standby":
        sys.exit("it cannot run as standby")
    if not behaviour.startswith(("never ready", "ready on signal")):
        reporter.update(phase=JobPhase.READY)
else:
    go_live(spec)
if behaviour == "realtime":
    reporter.update(fenced=False)
ballast = bytearray(150 * 2**20) if behaviour == "eats memory" else b""
while not stopped:
    time.sleep(0.02)
    if (
        behaviour == "ready on signal"
        and (folder.parent / "ready").exists()
        and reporter.status.phase is JobPhase.STANDBY
    ):
        reporter.update(phase=JobPhase.READY)
    if (new := read_spec()) != spec:
        if behaviour == "never live" and not new["standby"]:
            continue
        if behaviour == "crash at cut-over" and not new["standby"]:
            sys.exit("it cannot go live")
        if "bad" in new["settings"]:
            reporter.update(rejected="bad: no such setting", revision=new["revision"])
        elif spec["standby"] and not new["standby"]:
            go_live(new)
        else:
            reporter.update(rejected="", revision=new["revision"], digest=str(new["settings"]))
        spec = new
    if behaviour == "crash when limited" and "limit" in spec["settings"]:
        sys.exit("it cannot run so")
    if reporter.status.phase is JobPhase.LIVE and behaviour == "crash when live":
        sys.exit("it cannot live")
    if behaviour == "circuit open":
        reporter.update(circuit_open="" if (folder.parent / "fixed").exists() else "it raises on 10 of 10 records")
    if behaviour == "dead letters":
        reporter.committed(0, {0: 7}, 1, 1)
    if behaviour == ("hangs" if reporter.status.phase is JobPhase.LIVE else "never ready and hangs"):
        reporter.update(last_progress_at=1.0)
    elif behaviour != "dead letters":
        reporter.progressed()
if behaviour == "realtime":
    await_file("quiet")  # it publishes the rest
    reporter.update(finished_at=time.time())
    await_file("gone")  # its JVM cleans up
