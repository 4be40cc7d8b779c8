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

from lozenge.protocol.job_status import JobStatusReporter, Phase

JobSpec = dict[str, Any]
behaviour, folder = sys.argv[1], Path.cwd()
reporting = JobStatusReporter(folder)
stopped = False


def stop(*_: object) -> None:
    global stopped
    stopped = behaviour != "deaf"


def go(order: JobSpec) -> None:
    reporting.took_over(order["generation"], {0: 7}, {0: 7})
    reporting.say(revision=order["revision"])


def await_file(name: str) -> None:
    while not (folder.parent / name).exists():
        time.sleep(0.02)


def ordered() -> JobSpec:
    order: JobSpec = json.loads((folder / "order.json").read_text("utf-8"))
    return order


signal.signal(signal.SIGTERM, stop)
if behaviour == "crash at start":
    sys.exit('{"level": "error", "event": "it cannot start"}')
if behaviour == "no broker":
    sys.exit(3)
order = ordered()
reporting.began(Phase.STARTING, order["revision"], "digest", {0: 0})
reporting.say(generation=order["generation"])
if order["standby"]:
    reporting.say(phase=Phase.STANDBY)
    if behaviour == "crash standing by":
        sys.exit("it cannot stand by")
    if not behaviour.startswith(("never ready", "ready when told")):
        reporting.say(phase=Phase.READY)
else:
    go(order)
if behaviour == "realtime":
    reporting.say(mode="realtime")
ballast = bytearray(150 * 2**20) if behaviour == "eats memory" else b""
while not stopped:
    time.sleep(0.02)
    if behaviour == "ready when told" and (folder.parent / "ready").exists() and reporting.now.phase is Phase.STANDBY:
        reporting.say(phase=Phase.READY)
    if (new := ordered()) != order:
        if behaviour == "never goes" and not new["standby"]:
            continue
        if behaviour == "crash when told to go" and not new["standby"]:
            sys.exit("it cannot go")
        if "bad" in new["settings"]:
            reporting.say(refused="bad: no such setting", revision=new["revision"])
        elif order["standby"] and not new["standby"]:
            go(new)
        else:
            reporting.say(refused="", revision=new["revision"], digest=str(new["settings"]))
        order = new
    if behaviour == "crash when limited" and "limit" in order["settings"]:
        sys.exit("it cannot live so")
    if reporting.now.phase is Phase.LIVE and behaviour == "crash when live":
        sys.exit("it cannot live")
    if behaviour == "parked":
        reporting.say(parked="" if (folder.parent / "mended").exists() else "it raises on 10 of 10 records")
    if behaviour == "dead letters":
        reporting.committed(0, {0: 7}, 1, 1)
    if behaviour == ("hangs" if reporting.now.phase is Phase.LIVE else "never ready and hangs"):
        reporting.say(turned_at=1.0)
    elif behaviour != "dead letters":
        reporting.turned()
if behaviour == "realtime":
    await_file("quiet")  # it tells the rest
    reporting.say(ended_at=time.time())
    await_file("gone")  # its JVM tidies up
