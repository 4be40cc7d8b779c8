"""The agent's loop: while it leads, every desired detector has a keeper that is ticked several times a second."""

import socket
import threading
import time
from functools import partial
from pathlib import Path
from uuid import uuid4

from lozenge import topics
from lozenge.admin import ensure_topics
from lozenge.errors import BrokerUnavailable, LozengeError
from lozenge.kafka import KafkaSettings
from lozenge.logs import logger
from lozenge_deploy.agent.instance import LOG, Facts
from lozenge_deploy.agent.keeper import Keeper
from lozenge_deploy.agent.launcher import Launcher
from lozenge_deploy.control.leadership import Deposed, Leadership, Row
from lozenge_deploy.control.records import Desired, Happening, Lease, Observed
from lozenge_deploy.control.table import Table
from lozenge_deploy.releases import Releases
from lozenge_deploy.shipping import Shipper
from lozenge_deploy.standing import newest_stamp

TICK_SECONDS = 0.1


class Agent:
    """Runs the detectors of one broker on this machine, with all their files below `folder`.

    Killing it leaves the jobs running; the next agent with the same folder adopts them. Of several agents one
    leads, the others wait for its lease to run out. Raises BrokerUnavailable.
    """

    def __init__(self, kafka: KafkaSettings, folder: Path) -> None:
        self._kafka, self._folder = kafka, folder.absolute()
        self._host = socket.gethostname()
        self._me = Lease(agent=uuid4().hex[:12], host=self._host, folder=str(self._folder))
        ensure_topics(kafka, topics.control_topics())
        self._leadership = Leadership(kafka, self._me)
        self._desired: Table[Desired] | None = None
        self._keepers: dict[str, Keeper] = {}
        self._launcher = Launcher(Releases(kafka))
        self._shipper = Shipper(kafka)
        self._followed: dict[Path, Facts] = {}
        self._outbox: list[Row] = []
        self._stop = threading.Event()
        self._calm_since = time.monotonic()

    def stop(self) -> None:
        """Asks `run` to end; safe from a signal handler. The jobs go on."""
        self._stop.set()

    def run(self) -> None:
        """Until `stop`: follows, or leads."""
        log = logger()
        while not self._stop.wait(TICK_SECONDS):
            try:
                if self._leadership.tick():
                    self._lead()
                elif self._desired is not None and not self._leadership.leading:
                    self._step_down()
            except Deposed:
                self._step_down()
            except BrokerUnavailable as error:
                self._calm_since = time.monotonic()
                log.warning(error.message, hint=error.hint)
                self._stop.wait(1)
            self._ship()
        self._leave()

    def _lead(self) -> None:
        if self._desired is None:
            self._take_office()
        assert self._desired is not None
        list(self._desired.poll(0.0))
        calm = time.monotonic() - self._calm_since
        for detector, desired in list(self._desired.rows.items()):
            if detector not in self._keepers:
                self._keepers[detector] = self._keeper(detector, Observed(detector=detector))
            try:
                self._keepers[detector].tick(desired, calm)
            except (LozengeError, OSError) as error:  # one detector's trouble is no other's
                logger().error(f"keeping {detector}: {error}")
        if self._outbox:
            rows, self._outbox = self._outbox, []
            try:
                self._leadership.write(rows)
            except BrokerUnavailable:
                self._outbox = rows + self._outbox
                raise

    def _take_office(self) -> None:
        """Reads what is desired and what was observed, and adopts what runs here."""
        logger().info("leads", agent=self._me.agent, folder=str(self._folder))
        with Table(self._kafka, topics.STATUS, Observed) as status:
            self._keepers = {d: self._keeper(d, observed) for d, observed in status.rows.items()}
        self._desired = Table(self._kafka, topics.DEPLOYMENTS, Desired)

    def _keeper(self, detector: str, observed: Observed) -> Keeper:
        place = f"{self._host}:{self._folder}"
        return Keeper(
            self._folder / detector,
            observed.model_copy(update={"place": place}),
            self._launcher,
            newest=partial(self._committed, detector),
            say=lambda new: self._outbox.append((topics.STATUS, detector, new)),
            tell=self._tell,
            wish=self._wish,
        )

    def _tell(self, happening: Happening) -> None:
        self._outbox.append((topics.HISTORY, happening.detector, happening))
        logger().info(happening.what, **happening.model_dump(exclude={"what", "at", "by"}, exclude_defaults=True))

    def _wish(self, desired: Desired) -> None:
        assert self._desired is not None
        self._desired.rows[desired.detector] = desired
        self._outbox.append((topics.DEPLOYMENTS, desired.detector, desired))

    def _committed(self, detector: str) -> int:
        """The newest generation that has committed for the detector; 0 for none."""
        stamp = newest_stamp(self._kafka, detector)
        return stamp.generation if stamp else 0

    def _ship(self) -> None:
        """Follows the log of every job that runs here, and of one that has ended until it is shipped."""
        running = {i.folder / LOG: i.facts for keeper in self._keepers.values() for i in keeper.running()}
        for file, facts in running.items():
            if self._followed.get(file) != facts:
                self._shipper.follow(file, facts.detector, f"g{facts.generation}", facts.release)
        for file in self._followed.keys() - running.keys():
            self._shipper.unfollow(file)
        self._followed = running
        self._shipper.ship()

    def _step_down(self) -> None:
        """Leaves the detectors to the new leader, which adopts the jobs if it works in the same folder."""
        leader = self._leadership.leader
        logger().warning("leads no longer", leader=leader.agent if leader else None)
        same = leader is not None and (leader.host, leader.folder) == (self._me.host, self._me.folder)
        for keeper in self._keepers.values():
            for instance in () if same else keeper.running():
                instance.terminate()
        if self._desired is not None:
            self._desired.close()
        self._desired, self._keepers, self._outbox = None, {}, []

    def _leave(self) -> None:
        try:
            self._leadership.resign()
        except LozengeError as error:
            logger().warning(error.message)
        self._shipper.close()
        self._launcher.close()
        self._leadership.close()
