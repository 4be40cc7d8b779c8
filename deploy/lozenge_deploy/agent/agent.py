"""The agent's loop: while it leads, every desired detector has a crew that is ticked several times a second."""

import socket
import threading
import time
from functools import partial
from pathlib import Path
from uuid import uuid4

from lozenge.contracts import topics
from lozenge.errors import BrokerUnavailable, LozengeError
from lozenge.kafka.compacted_topic import Table
from lozenge.kafka.group_offsets import newest_commit_metadata
from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.topic_admin import ensure_topics
from lozenge.process.logging import logger
from lozenge_deploy.agent.controller import PATIENCE, Patience
from lozenge_deploy.agent.job_logs import JobLogs
from lozenge_deploy.agent.launcher import Launcher
from lozenge_deploy.agent.replica_set import ReplicaSet
from lozenge_deploy.agent.restart_policy import Launches
from lozenge_deploy.control.leader_election import TIMING, Leadership, LeadershipLost, Row, Timing
from lozenge_deploy.control.records import DeploymentSpec, DeploymentStatus, HistoryEvent, Lease
from lozenge_deploy.releases.release_store import Releases

TICK_SECONDS = 0.1
TIDY_SECONDS = 30.0
SLEPT_SECONDS = 10.0
"""Between two looks of an agent that leads lies far less."""


class Agent:
    """Runs the detectors of one broker on this machine, with all their files below `folder`.

    Killing it leaves the jobs running; the next agent with the same folder adopts them. Of several agents one
    leads, the others wait for its lease to run out. Raises BrokerUnavailable.
    """

    def __init__(
        self,
        kafka: KafkaSettings,
        folder: Path,
        *,
        launcher: Launches | None = None,
        timing: Timing = TIMING,
        patience: Patience = PATIENCE,
        tidy_seconds: float = TIDY_SECONDS,
    ) -> None:
        self._kafka, self._folder = kafka, folder.absolute()
        self._patience, self._tidy_seconds = patience, tidy_seconds
        self._host = socket.gethostname()
        self._me = Lease(agent=uuid4().hex[:12], host=self._host, folder=str(self._folder))
        ensure_topics(kafka, topics.control_topics())
        self._leadership = Leadership(kafka, self._me, timing)
        self._desired: Table[DeploymentSpec] | None = None
        self._crews: dict[str, ReplicaSet] = {}
        self._launcher = launcher or Launcher(Releases(kafka))
        self._logs = JobLogs(kafka)
        self._tidied_at = 0.0
        self._outbox: list[Row] = []
        self._stop = threading.Event()
        self._seen_at = time.time(), time.monotonic()
        self._calm_since = float("-inf")  # a keeper leaves those time that it finds running

    def stop(self) -> None:
        """Asks `run` to end; safe from a signal handler. The jobs go on."""
        self._stop.set()

    def run(self) -> None:
        """Until `stop`: follows, or leads."""
        while not self._stop.wait(TICK_SECONDS):
            try:
                if self._leadership.tick():
                    self._lead()
                elif self._leadership.leading:
                    self._calm_since = time.monotonic()
                else:
                    self._follow()
            except LeadershipLost:
                self._follow()
            except BrokerUnavailable as error:
                self._broker_is_away(error)
                self._stop.wait(1)
            self._logs.ship([i for crew in self._crews.values() for i in crew.running()])
            self._tidy()
        self._leave()

    def _lead(self) -> None:
        if self._desired is None:
            self._take_office()
        assert self._desired is not None
        list(self._desired.poll(0.0))
        self._notice_sleep()
        calm = time.monotonic() - self._calm_since
        for detector, desired in list(self._desired.rows.items()):
            if detector not in self._crews:
                self._crews[detector] = self._crew(detector, DeploymentStatus(detector=detector))
            try:
                self._crews[detector].tick(desired, calm)
            except BrokerUnavailable as error:
                self._broker_is_away(error)
            except Exception as error:  # one detector's trouble is no other's, whatever it is
                logger().error(f"keeping {detector}: {error}", exc_info=not isinstance(error, LozengeError | OSError))
        self._send()

    def _notice_sleep(self) -> None:
        """After the machine or this process slept, or the clock was set, everything looks late: nobody is judged."""
        seen, self._seen_at = self._seen_at, (time.time(), time.monotonic())
        if any(abs(now - before) > SLEPT_SECONDS for now, before in zip(self._seen_at, seen, strict=True)):
            self._calm_since = time.monotonic()

    def _send(self) -> None:
        """Publishes what there is to tell; what cannot be told now waits. A newer wish of somebody's comes first."""
        if not self._outbox:
            return
        assert self._desired is not None
        list(self._desired.poll(0.0))
        wanted = self._desired.rows
        rows = [
            (topic, key, record)
            for topic, key, record in self._outbox
            if not isinstance(record, DeploymentSpec) or wanted[key].revision == record.revision
        ]
        self._leadership.write(rows)
        self._outbox = []

    def _broker_is_away(self, error: BrokerUnavailable) -> None:
        self._calm_since = time.monotonic()
        logger().warning(error.message, hint=error.hint)

    def _take_office(self) -> None:
        """Reads what is desired and what was observed, and adopts what runs here."""
        logger().info("leads", agent=self._me.agent, folder=str(self._folder))
        with Table(self._kafka, topics.STATUS, DeploymentStatus) as status:
            self._crews = {d: self._crew(d, observed) for d, observed in status.rows.items()}
        for crew in self._crews.values():
            self._logs.find(crew.folders)
        self._desired = Table(self._kafka, topics.DEPLOYMENTS, DeploymentSpec)

    def _crew(self, detector: str, observed: DeploymentStatus) -> ReplicaSet:
        return ReplicaSet(
            self._folder / detector,
            self._launcher,
            partial(self._committed, detector),
            observed.seen_from(f"{self._host}:{self._folder}"),
            say=lambda new: self._outbox.append((topics.STATUS, detector, new)),
            tell=self._tell,
            wish=self._wish,
            patience=self._patience,
        )

    def _tell(self, happening: HistoryEvent) -> None:
        self._outbox.append((topics.HISTORY, happening.detector, happening))
        logger().info(happening.what, **happening.model_dump(exclude={"what", "at", "by"}, exclude_defaults=True))

    def _wish(self, desired: DeploymentSpec) -> None:
        assert self._desired is not None
        self._desired.rows[desired.detector] = desired
        self._outbox.append((topics.DEPLOYMENTS, desired.detector, desired))

    def _committed(self, detector: str) -> int:
        """The newest generation that has committed for the detector; 0 for none."""
        stamp = newest_commit_metadata(self._kafka, detector)
        return stamp.generation if stamp else 0

    def _tidy(self) -> None:
        if time.monotonic() - self._tidied_at > self._tidy_seconds:
            self._tidied_at = time.monotonic()
            for crew in self._crews.values():
                self._logs.tidy(crew.folders)

    def _follow(self) -> None:
        """Leads no longer. Once it is known who does, its jobs end, unless the new leader adopts them here."""
        if self._desired is not None:
            logger().warning("leads no longer")
            self._desired.close()
            self._desired, self._outbox = None, []
        leader = self._leadership.leader
        if not self._crews or leader is None or leader.agent in ("", self._me.agent):
            return
        logger().info("follows", leader=leader.agent, host=leader.host, folder=leader.folder)
        if (leader.host, leader.folder) != (self._me.host, self._me.folder):
            for instance in [i for crew in self._crews.values() for i in crew.running()]:
                instance.terminate()
        self._crews = {}

    def _leave(self) -> None:
        try:
            if self._leadership.leading:
                self._send()
                self._leadership.resign()
        except LozengeError as error:
            logger().warning(error.message)
        if self._desired is not None:
            self._desired.close()
        self._launcher.close()
        self._leadership.close()
        self._logs.close()
