"""A job without Spark and Kafka: it reads its order, reports and obeys as `lozenge.job` does, and fails as it is told.

It imports little, since the tests start a hundred of them.

Usage: `fake_job.py BEHAVIOUR`, run in the folder of its instance. It counts up the generation that is live in
`../live`, and one that is live while a higher generation is ends as a fenced job does.
"""

import json
import signal
import sys
import time
from pathlib import Path
from typing import Any

from lozenge.job.lifecycle.status_reporter import JobStatusReporter
from lozenge.protocol.job_status import Phase

JobSpec = dict[str, Any]
behaviour, folder = sys.argv[1], Path.cwd()
reporter = JobStatusReporter(folder)
stopped = False


def stop(*_: object) -> None:
    global stopped
    stopped = behaviour != "deaf"


def go(order: JobSpec) -> None:
    reporter.went_live(order["generation"], {0: 7}, {0: 7})
    reporter.update(revision=order["revision"])


def await_file(name: str) -> None:
    while not (folder.parent / name).exists():
        time.sleep(0.02)


def ordered() -> JobSpec:
    order: JobSpec = json.loads((folder / "job_spec.json").read_text("utf-8"))
    return order


signal.signal(signal.SIGTERM, stop)
if behaviour == "crash at start":
    sys.exit('{"level": "error", "event": "it cannot start"}')
if behaviour == "no broker":
    sys.exit(3)
order = ordered()
reporter.query_started(Phase.STARTING, order["revision"], "digest", {0: 0})
reporter.update(generation=order["generation"])
if order["standby"]:
    reporter.update(phase=Phase.STANDBY)
    if behaviour == "crash standing by":
        sys.exit("it cannot stand by")
    if not behaviour.startswith(("never ready", "ready when told")):
        reporter.update(phase=Phase.READY)
else:
    go(order)
if behaviour == "realtime":
    reporter.update(fenced=False)
ballast = bytearray(150 * 2**20) if behaviour == "eats memory" else b""
while not stopped:
    time.sleep(0.02)
    if behaviour == "ready when told" and (folder.parent / "ready").exists() and reporter.status.phase is Phase.STANDBY:
        reporter.update(phase=Phase.READY)
    if (new := ordered()) != order:
        if behaviour == "never goes" and not new["standby"]:
            continue
        if behaviour == "crash when told to go" and not new["standby"]:
            sys.exit("it cannot go")
        if "bad" in new["settings"]:
            reporter.update(rejected="bad: no such setting", revision=new["revision"])
        elif order["standby"] and not new["standby"]:
            go(new)
        else:
            reporter.update(rejected="", revision=new["revision"], digest=str(new["settings"]))
        order = new
    if behaviour == "crash when limited" and "limit" in order["settings"]:
        sys.exit("it cannot live so")
    if reporter.status.phase is Phase.LIVE and behaviour == "crash when live":
        sys.exit("it cannot live")
    if behaviour == "parked":
        reporter.update(circuit_open="" if (folder.parent / "mended").exists() else "it raises on 10 of 10 records")
    if behaviour == "dead letters":
        reporter.committed(0, {0: 7}, 1, 1)
    if behaviour == ("hangs" if reporter.status.phase is Phase.LIVE else "never ready and hangs"):
        reporter.update(last_progress_at=1.0)
    elif behaviour != "dead letters":
        reporter.progressed()
if behaviour == "realtime":
    await_file("quiet")  # it tells the rest
    reporter.update(finished_at=time.time())
    await_file("gone")  # its JVM tidies up
