"""`python -m lozenge_deploy.local.platform FOLDER`: the platform on one machine, which `lozenge up` starts.

It runs a broker on loopback, the normaliser of each stream, downstream, the agent, and on request the traffic
generator. FOLDER has everything: topics, the notifier's store, logs, jobs. SIGTERM stops all of it, jobs included. The
deployment specs stay in the topics, so the next start runs the same detectors.
"""

import argparse
import json
import os
import sys
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict
from pathlib import Path
from types import MappingProxyType

from lozenge.archive.settings import ARCHIVE_VARIABLE
from lozenge.errors import BrokerUnavailable, ConfigError, LozengeError, UsageError
from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.topic_admin import ensure_topics
from lozenge.process import logging
from lozenge.process.atomic_write import replace
from lozenge.process.env_settings import this_start
from lozenge.process.shutdown import StopSignal
from lozenge.process.waiting import wait_until
from lozenge.streams.definition import StreamDefinition
from lozenge.streams.merged import common_keys, merged_topics
from lozenge.streams.project import STREAMS_VARIABLE, Streams
from lozenge.toolchain.java import java_home
from lozenge_deploy.control.declared_apps import DeclaredApps
from lozenge_deploy.hosts.host_process import HOSTS, host_processes
from lozenge_deploy.local.declared_programs import DeclaredProgram, programs_of
from lozenge_deploy.local.embedded_broker import EmbeddedBroker
from lozenge_deploy.local.platform_request import Requested, requested
from lozenge_deploy.local.running_platform import STATE
from lozenge_deploy.local.upstream_replicas import app_of_program, instance_names, normaliser_variables
from lozenge_deploy.supervision.job_process import EXIT, JobProcess, job_processes
from lozenge_deploy.supervision.log_shipper import Shipper
from lozenge_deploy.supervision.restart_policy import ProgramState
from lozenge_deploy.supervision.supervisor import Program, Supervisor

API = "127.0.0.1:8470"
ARCHIVE = "archive"
STOP_SECONDS = 30.0
TICK_SECONDS = 0.5


def programs(
    folder: Path,
    kafka: KafkaSettings,
    streams: Streams,
    rekeys: Collection[str] | None,
    wanted: Requested,
    declared: Mapping[str, DeclaredProgram] = MappingProxyType({}),
) -> dict[str, Program]:
    """The programs next to the broker, by name; of `rekeys`, or all, each stream has copies by its own.

    By those that another stream has too it is merged. `declared` are those of file sources, sinks and tables.
    """
    common = {**kafka.variables, STREAMS_VARIABLE: str(streams.folder), "JAVA_HOME": str(java_home())}

    def program(name: str, module: Sequence[str], **variables: str) -> Program:
        environment: Mapping[str, str] = {**os.environ, **common, **variables}
        return Program(name, [sys.executable, "-m", *module], lambda _: environment, folder)

    def normalisers(stream: StreamDefinition) -> Iterator[Program]:
        keys = [key for key in stream.rekeys if rekeys is None or key in rekeys]
        count = 0 if wanted.held == stream.app else wanted.instances(stream.app)
        merges = _merges(stream, streams, rekeys)
        for name in instance_names(stream.app, count):
            yield program(name, ["lozenge_upstream"], **normaliser_variables(stream, keys, merges))

    store = os.environ.get("LOZENGE_DOWNSTREAM_STORE", f"sqlite:///{folder / 'downstream.db'}")
    api = os.environ.get("LOZENGE_DOWNSTREAM_BIND", API)
    archive = {ARCHIVE_VARIABLE: str(folder / ARCHIVE)}
    routing = {"LOZENGE_DOWNSTREAM_ROUTING": wanted.routing} if wanted.routing else {}
    found = [
        program("agent", ["lozenge_deploy.agent", str(folder / "jobs")]),
        *(each for stream in streams.definitions for each in normalisers(stream)),
        *(program(name, each.module, **archive, **each.variables) for name, each in declared.items()),
        program(
            "downstream",
            ["lozenge_downstream"],
            LOZENGE_DOWNSTREAM_STORE=store,
            LOZENGE_DOWNSTREAM_BIND=api,
            LOZENGE_DOWNSTREAM_INSTANCE=folder.name,
            **routing,
        ),
        program("exporter", ["lozenge_deploy.observe.exporter"]),
    ]
    if wanted.feed:
        found.append(program("feed", ["lozenge_deploy.demo.feed", "--past-days", "0", "--rate", f"{wanted.feed:g}"]))
    return {each.name: each for each in found}


def _merges(stream: StreamDefinition, streams: Streams, rekeys: Collection[str] | None) -> list[str]:
    return [key for key in common_keys(stream, streams.definitions) if rekeys is None or key in rekeys]


def remerged(before: Streams, after: Streams, rekeys: Collection[str] | None) -> set[str]:
    """The normalisers that merge their stream by other keys now that there are other streams."""
    merges = {stream.app: _merges(stream, before, rekeys) for stream in before.definitions}
    return {
        stream.app
        for stream in after.definitions
        if stream.app in merges and _merges(stream, after, rekeys) != merges[stream.app]
    }


def read_again(streams: Streams) -> Streams:
    """The streams of the folder as it is now; those that run if one of them is wrong."""
    try:
        return Streams.of(streams.folder)
    except ConfigError as error:
        logging.logger().error(error.message, hint=error.hint)
        return streams


def create_topics(kafka: KafkaSettings, streams: Streams) -> None:
    """The topics of the platform and of its streams, as far as they do not exist."""
    of_streams = [topic for each in streams.definitions for topic in each.topics(kafka.topics, each.rekeys)]
    common = {key for each in streams.definitions for key in common_keys(each, streams.definitions)}
    of_streams += merged_topics(kafka.topics, streams.definitions, common)
    ensure_topics(kafka, [*kafka.topics.platform_topics(), *of_streams])


def run(folder: Path, streams: Streams, rekeys: Collection[str] | None, stop: StopSignal) -> None:
    """Runs what is requested in `folder` until `stop` is; raises UsageError if the folder or the port is in use."""
    folder.mkdir(parents=True, exist_ok=True)
    with EmbeddedBroker(folder / "broker", requested(folder).port) as broker, jobs_of(folder / "jobs"):
        kafka = KafkaSettings.local(broker.bootstrap)
        create_topics(kafka, streams)
        shipper = Shipper(kafka)
        with (
            closing(DeclaredApps(kafka)) as deployed,
            Supervisor(folder / "logs") as supervisor,
            closing(shipper),
        ):
            applied: Requested | None = None
            declared: dict[str, DeclaredProgram] = {}
            while True:
                wanted, before_it = newest_request(folder, applied), declared
                declared = programs_of(deployed.poll().values())
                if wanted != applied or declared != before_it:
                    changed = wanted.programs_changed(applied) if applied else set()
                    changed |= {name for name in failed_of(supervisor) if declared.get(name) != before_it.get(name)}
                    if applied is not None and wanted.streams != applied.streams:
                        before, streams = streams, read_again(streams)
                        create_topics(kafka, streams)
                        apps = remerged(before, streams, rekeys)
                        changed |= {name for name in supervisor.children if app_of_program(name) in apps}
                    needed = programs(folder, kafka, streams, rekeys, wanted, declared)
                    apply_programs(needed, supervisor, shipper, changed)
                    applied = wanted
                if stop.wait(TICK_SECONDS):
                    break
                if broker.pid is None:
                    raise BrokerUnavailable("the broker has ended", hint=f"read {broker.log}; `lozenge up` starts it")
                supervisor.watch()
                shipper.ship()
                states = {name: str(child.state) for name, child in supervisor.children.items()}
                errors = {name: supervisor.children[name].last_error() for name in failed_of(supervisor)}
                report = {"pid": os.getpid(), "bootstrap": broker.bootstrap, "programs": states, "failed": errors}
                report["requested"] = asdict(applied)
                replace(folder / STATE, json.dumps(report))
    (folder / STATE).unlink(missing_ok=True)


def newest_request(folder: Path, applied: Requested | None) -> Requested:
    """What is requested now; once something is applied, a file that cannot be read changes nothing."""
    try:
        return requested(folder)
    except UsageError:
        if applied is None:
            raise
        return applied


def failed_of(supervisor: Supervisor) -> list[str]:
    """The programs that are not started again by themselves; another release of theirs starts them."""
    return [name for name, child in supervisor.children.items() if child.state is ProgramState.FAILED]


def apply_programs(
    wanted: Mapping[str, Program], supervisor: Supervisor, shipper: Shipper, changed: Collection[str] = ()
) -> None:
    """Starts the programs of `wanted` that do not run, stops the others, and starts those that have `changed` again."""
    for name in supervisor.children.keys() - (wanted.keys() - set(changed)):
        shipper.unfollow(supervisor.end(name).log)
    for name in [name for name in wanted if name not in supervisor.children]:
        shipper.follow(supervisor.start(wanted[name]).log, app_of_program(name), this_start(), "")


@contextmanager
def jobs_of(folder: Path) -> Iterator[None]:
    """Stops all jobs and hosts of the folder at the end: the agent has stopped before and leaves them running."""
    try:
        yield
    finally:
        replicas = folder.iterdir() if folder.is_dir() else ()
        left = [job for replica in replicas for job in job_processes(replica) if job.alive()]
        for job in left:
            job.terminate()
        wait_until(lambda: not any(job.alive() for job in left), STOP_SECONDS)
        for job in left:
            _kill(job)
        for host in host_processes(folder / HOSTS):
            host.terminate()  # it ends within a moment, or once it has published where it listens


def _kill(job: JobProcess) -> None:
    job.kill()
    while job.alive():
        time.sleep(0.02)
    if job.exit_code() is None:  # it was asked to end and took too long, which is no failure
        (job.folder / EXIT).write_text("0\n")


def main() -> int:
    """Runs until a signal; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m lozenge_deploy.local.platform", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rekeys", nargs="*")
    parser.add_argument("--streams", type=Path)
    given = parser.parse_args()
    logging.configure("platform")
    stop = StopSignal()
    try:
        streams = Streams.of(given.streams) if given.streams else Streams.load()
        run(given.folder.absolute(), streams, given.rekeys, stop)
    except LozengeError as error:
        logging.logger().error(error.message, hint=error.hint)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
