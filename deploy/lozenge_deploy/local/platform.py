"""`python -m lozenge_deploy.local.platform FOLDER`: the platform on one machine, which `lozenge up` starts.

It runs a broker on loopback, upstream, downstream, the agent, and on request the traffic generator. FOLDER has
everything: topics, the notifier's store, logs, jobs. SIGTERM stops all of it, jobs included. The deployment specs stay
in the topics, so the next start runs the same detectors.
"""

import argparse
import json
import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

from lozenge.contracts.topics import REKEYS
from lozenge.errors import BrokerUnavailable, LozengeError
from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.topic_admin import ensure_topics
from lozenge.process import logging
from lozenge.process.atomic_write import replace
from lozenge.process.env_settings import this_start
from lozenge.process.shutdown import StopSignal
from lozenge.toolchain.java import java_home
from lozenge_deploy.local.embedded_broker import EmbeddedBroker
from lozenge_deploy.local.upstream_replicas import app_of_program, instance_names, requested_instances
from lozenge_deploy.supervision.job_process import JobProcess, job_processes
from lozenge_deploy.supervision.log_shipper import Shipper
from lozenge_deploy.supervision.restart_policy import ProgramState
from lozenge_deploy.supervision.supervisor import Program, Supervisor

PORT = 9092
API = "127.0.0.1:8470"
STATE = "platform.json"
STOP_SECONDS = 30.0
TICK_SECONDS = 0.5


def programs(
    folder: Path, kafka: KafkaSettings, rekeys: Sequence[str], rate: float, instances: int
) -> dict[str, Program]:
    """The programs next to the broker, by name.

    `rate` is that of the traffic generator in records per second, `instances` the number of upstream's instances.
    """
    common = {**kafka.variables, "JAVA_HOME": str(java_home())}

    def program(name: str, module: Sequence[str], **variables: str) -> Program:
        environment: Mapping[str, str] = {**os.environ, **common, **variables}
        return Program(name, [sys.executable, "-m", *module], lambda _: environment, folder)

    keyed = {"LOZENGE_UPSTREAM_REKEYS": json.dumps(list(rekeys))}
    store = os.environ.get("LOZENGE_DOWNSTREAM_STORE", f"sqlite:///{folder / 'downstream.db'}")
    api = os.environ.get("LOZENGE_DOWNSTREAM_BIND", API)
    found = [
        program("agent", ["lozenge_deploy.agent", str(folder / "jobs")]),
        *(program(name, ["lozenge_upstream"], **keyed) for name in instance_names(instances)),
        program(
            "downstream",
            ["lozenge_downstream"],
            LOZENGE_DOWNSTREAM_STORE=store,
            LOZENGE_DOWNSTREAM_BIND=api,
            LOZENGE_DOWNSTREAM_INSTANCE=folder.name,
        ),
        program("exporter", ["lozenge_deploy.observe.exporter"]),
    ]
    if rate:
        found.append(program("feed", ["lozenge_deploy.demo.feed", "--past-days", "0", "--rate", f"{rate:g}"]))
    return {each.name: each for each in found}


def run(folder: Path, port: int, rekeys: Sequence[str], rate: float, stop: StopSignal) -> None:
    """Runs until `stop` is requested; raises UsageError if the folder or the port is in use."""
    folder.mkdir(parents=True, exist_ok=True)
    with EmbeddedBroker(folder / "broker", port) as broker, jobs_of(folder / "jobs"):
        kafka = KafkaSettings.local(broker.bootstrap)
        ensure_topics(kafka, kafka.topics.platform_topics(tuple(rekeys)))
        shipper = Shipper(kafka)
        with Supervisor(folder / "logs") as supervisor, closing(shipper):
            instances = 0
            while True:
                if (wanted := requested_instances(folder)) != instances:
                    instances = wanted
                    apply_programs(programs(folder, kafka, rekeys, rate, instances), supervisor, shipper)
                if stop.wait(TICK_SECONDS):
                    break
                if broker.pid is None:
                    raise BrokerUnavailable("the broker has ended", hint=f"read {broker.log}; `lozenge up` starts it")
                supervisor.watch()
                shipper.ship()
                states = {name: str(child.state) for name, child in supervisor.children.items()}
                errors = {n: c.last_error() for n, c in supervisor.children.items() if c.state is ProgramState.FAILED}
                report = {"pid": os.getpid(), "bootstrap": broker.bootstrap, "programs": states, "failed": errors}
                replace(folder / STATE, json.dumps(report))
    (folder / STATE).unlink(missing_ok=True)


def apply_programs(wanted: Mapping[str, Program], supervisor: Supervisor, shipper: Shipper) -> None:
    """Starts the programs of `wanted` that do not run, and stops the others."""
    for name in supervisor.children.keys() - wanted.keys():
        shipper.unfollow(supervisor.end(name).log)
    for name in [name for name in wanted if name not in supervisor.children]:
        shipper.follow(supervisor.start(wanted[name]).log, app_of_program(name), this_start(), "")


@contextmanager
def jobs_of(folder: Path) -> Iterator[None]:
    """Stops all jobs of the folder at the end: the agent has stopped before and leaves them running."""
    try:
        yield
    finally:
        replicas = folder.iterdir() if folder.is_dir() else ()
        left = [job for replica in replicas for job in job_processes(replica) if job.alive()]
        for job in left:
            job.terminate()
        deadline = time.monotonic() + STOP_SECONDS
        while any(job.alive() for job in left) and time.monotonic() < deadline:
            time.sleep(0.1)
        for job in left:
            _kill(job)


def _kill(job: JobProcess) -> None:
    job.kill()
    while job.alive():
        time.sleep(0.02)


def main() -> int:
    """Runs until a signal; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m lozenge_deploy.local.platform", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--port", type=int, default=PORT)
    parser.add_argument("--rekeys", nargs="*", default=list(REKEYS))
    parser.add_argument("--feed", type=float, default=0.0, help="generated records per second")
    given = parser.parse_args()
    logging.configure("platform")
    stop = StopSignal()
    try:
        run(given.folder.absolute(), given.port, given.rekeys, given.feed, stop)
    except LozengeError as error:
        logging.logger().error(error.message, hint=error.hint)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
