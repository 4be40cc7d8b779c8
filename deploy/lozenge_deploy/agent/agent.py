"""The agent's loop: while it is the leader, it ticks the replica set of every detector several times a second."""

import os
import socket
import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from uuid import uuid4

from lozenge.errors import BrokerUnavailable, LozengeError
from lozenge.kafka.compacted_topic import CompactedTopic
from lozenge.kafka.group_offsets import newest_commit_metadata
from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.topic_admin import ensure_topics
from lozenge.process.logging import logger
from lozenge.process.shutdown import Stop
from lozenge_deploy.agent.controller import JobLauncher
from lozenge_deploy.agent.job_logs import JobLogs
from lozenge_deploy.agent.launcher import Launcher
from lozenge_deploy.agent.replica_set import ReplicaSet
from lozenge_deploy.agent.tick import TIMEOUTS, Timeouts
from lozenge_deploy.control.deployments_view import follow_specs, follow_status
from lozenge_deploy.control.leader_election import TIMING, Leadership, LeadershipLost, LeaseTiming, Row
from lozenge_deploy.control.records import DeploymentSpec, DeploymentStatus, HistoryEvent, Lease
from lozenge_deploy.hosts.drain import moved, next_to_move
from lozenge_deploy.hosts.host_pool import HostPool
from lozenge_deploy.hosts.host_process import HOSTS, host_logs
from lozenge_deploy.releases.environments import in_environment
from lozenge_deploy.releases.release_store import Releases

TICK_SECONDS = 0.1
CLEANUP_SECONDS = 30.0
BROKER_PAUSE_SECONDS = 1.0
SLEPT_SECONDS = 10.0
"""A longer time between two ticks of a leader means that the machine or the process slept."""


class BrokerStability:
    """For how long the jobs could have reported and committed, in seconds. Its callers read both clocks.

    It starts again when the broker was unavailable, and after a sleep or a change of the clock: every job looks late
    then, so none counts as unhealthy for a while.
    """

    def __init__(self, wall: float, monotonic: float) -> None:
        self._read_at = wall, monotonic
        self._since = float("-inf")  # a controller grants adopted jobs their time by itself

    def interrupted(self, monotonic: float) -> None:
        """Starts again."""
        self._since = monotonic

    def seconds(self, wall: float, monotonic: float) -> float:
        """The seconds until now; call it in each tick, because a long time between two calls is a sleep."""
        previous, self._read_at = self._read_at, (wall, monotonic)
        if any(abs(now - before) > SLEPT_SECONDS for now, before in zip(self._read_at, previous, strict=True)):
            self.interrupted(monotonic)
        return monotonic - self._since


class Agent:
    """Runs the detectors of one broker on this machine, with all their files below `folder`.

    If it is killed, its jobs keep running, and the next agent with the same folder adopts them. Of several agents one
    is the leader; the followers wait until its lease expires. Raises BrokerUnavailable.
    """

    def __init__(
        self,
        kafka: KafkaSettings,
        folder: Path,
        *,
        launcher: JobLauncher | None = None,
        timing: LeaseTiming = TIMING,
        timeouts: Timeouts = TIMEOUTS,
        cleanup_seconds: float = CLEANUP_SECONDS,
        first_host: bool = False,
    ) -> None:
        """With `first_host` a Spark host waits for the first detector."""
        self._kafka, self._folder = kafka, folder.absolute()
        self._timeouts = timeouts
        self._me = Lease(agent=uuid4().hex[:12], host=socket.gethostname(), folder=str(self._folder))
        ensure_topics(kafka, kafka.topics.control.contracts())
        self._leadership = Leadership(kafka, self._me, timing)
        self._specs: CompactedTopic[DeploymentSpec] | None = None
        self._replica_sets: dict[str, ReplicaSet] = {}
        self._hosts = HostPool(self._folder / HOSTS, in_environment(os.environ))
        self._launcher = launcher or Launcher(kafka, Releases(kafka), self._hosts, first_host=first_host)
        self._logs = JobLogs(kafka, cleanup_seconds)
        self._outbox: list[Row] = []
        self._stability = BrokerStability(time.time(), time.monotonic())

    def run(self, stop: Stop) -> None:
        """Runs as a leader or a follower until `stop` is requested. The jobs keep running."""
        while not stop.wait(TICK_SECONDS):
            try:
                if self._leadership.tick():
                    self._tick_as_leader()
                elif self._leadership.leading:
                    self._stability.interrupted(time.monotonic())
                else:
                    self._follow()
            except LeadershipLost:
                self._follow()
            except BrokerUnavailable as error:
                self._broker_unavailable(error)
                stop.wait(BROKER_PAUSE_SECONDS)
            replica_sets = self._replica_sets.values()
            running = [job for replicas in replica_sets for job in replicas.running()]
            if self._leadership.leading:
                self._hosts.tick([job.record for job in running])
            self._logs.ship_hosts(host_logs(self._folder / HOSTS) if self._leadership.leading else {})
            self._logs.ship(running)
            self._logs.clean_up([folder for replicas in replica_sets for folder in replicas.folders])
        self._shut_down()

    def _tick_as_leader(self) -> None:
        if self._specs is None:
            self._assume_leadership()
        assert self._specs is not None
        list(self._specs.poll(0.0))
        broker_stable_seconds = self._stability.seconds(time.time(), time.monotonic())
        for detector, spec in list(self._specs.rows.items()):
            if detector not in self._replica_sets:
                self._replica_sets[detector] = self._replica_set(detector, DeploymentStatus(detector=detector))
            try:
                self._replica_sets[detector].tick(spec, broker_stable_seconds)
            except BrokerUnavailable as error:
                self._broker_unavailable(error)
            except Exception as error:  # an error of one detector must not affect the others
                logger().error(
                    f"controlling {detector}: {error}", exc_info=not isinstance(error, LozengeError | OSError)
                )
        self._move_from_draining_hosts(self._specs.rows)
        self._publish()

    def _move_from_draining_hosts(self, specs: Mapping[str, DeploymentSpec]) -> None:
        deployed = [(spec, self._replica_sets[name].status) for name, spec in specs.items()]
        if (found := next_to_move(deployed, self._hosts.draining())) is not None:
            self._change(moved(found[0], uuid4().hex[:12], found[1]))

    def _publish(self) -> None:
        """Publishes the outbox; if that fails, it is kept. A newer spec of an operator wins over the agent's."""
        if not self._outbox:
            return
        assert self._specs is not None
        list(self._specs.poll(0.0))
        newest = self._specs.rows
        rows = [
            (topic, key, record)
            for topic, key, record in self._outbox
            if not isinstance(record, DeploymentSpec) or (key in newest and newest[key].revision == record.revision)
        ]
        self._leadership.write(rows)
        self._outbox = []

    def _broker_unavailable(self, error: BrokerUnavailable) -> None:
        self._stability.interrupted(time.monotonic())
        logger().warning(error.message, hint=error.hint)

    def _assume_leadership(self) -> None:
        """Reads the specs and the status of all detectors, and adopts the jobs and the Spark hosts that run here."""
        logger().info("elected leader", agent=self._me.agent, folder=str(self._folder))
        with follow_status(self._kafka) as status:
            self._replica_sets = {name: self._replica_set(name, known) for name, known in status.rows.items()}
        self._hosts.adopt()
        for replicas in self._replica_sets.values():
            self._logs.find(replicas.folders)
        self._specs = follow_specs(self._kafka)

    def _replica_set(self, detector: str, status: DeploymentStatus) -> ReplicaSet:
        return ReplicaSet(
            self._folder / detector,
            self._launcher,
            partial(self._committed, detector),
            status.seen_from(f"{self._me.host}:{self._folder}"),
            on_status=lambda new: self._outbox.append((self._kafka.topics.control.status, detector, new)),
            on_event=self._record,
            on_change=self._change,
            timeouts=self._timeouts,
        )

    def _record(self, event: HistoryEvent) -> None:
        self._outbox.append((self._kafka.topics.control.history, event.detector, event))
        logger().info(event.what, **event.model_dump(exclude={"what", "at", "by"}, exclude_defaults=True))

    def _change(self, spec: DeploymentSpec) -> None:
        assert self._specs is not None
        self._specs.rows[spec.detector] = spec
        self._outbox.append((self._kafka.topics.control.deployments, spec.detector, spec))

    def _committed(self, detector: str) -> int:
        """The newest generation that has committed for the detector; 0 for none."""
        metadata = newest_commit_metadata(self._kafka, detector)
        return metadata.generation if metadata else 0

    def _follow(self) -> None:
        """Gives up leadership. Its jobs stop once another leader is known, unless that one adopts them here."""
        if self._specs is not None:
            logger().warning("leadership lost")
            self._specs.close()
            self._specs, self._outbox = None, []
        leader = self._leadership.leader
        if not self._replica_sets or leader is None or leader.agent in ("", self._me.agent):
            return
        logger().info("following leader", leader=leader.agent, host=leader.host, folder=leader.folder)
        if (leader.host, leader.folder) != (self._me.host, self._me.folder):
            for job in [job for replicas in self._replica_sets.values() for job in replicas.running()]:
                job.terminate()
        self._replica_sets = {}

    def _shut_down(self) -> None:
        try:
            if self._leadership.leading:
                self._publish()
                self._leadership.resign()
        except LozengeError as error:
            logger().warning(error.message)
        if self._specs is not None:
            self._specs.close()
        self._launcher.close()
        self._hosts.close()
        self._leadership.close()
        self._logs.close()
