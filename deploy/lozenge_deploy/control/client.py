"""The operator's side of the control topics: what is wanted, what is so, and waiting until the two agree."""

import getpass
import time
from collections.abc import Callable
from contextlib import ExitStack
from datetime import UTC, datetime
from heapq import merge
from operator import attrgetter
from types import TracebackType
from typing import Any, Self
from uuid import uuid4

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from lozenge.contracts.topics import STAGES
from lozenge.errors import BrokerUnavailable, Fatal, Retryable, UsageError
from lozenge.kafka.compacted_topic import Table
from lozenge.kafka.dead_letter_queue import resolutions
from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.topic_admin import ensure_topics
from lozenge.kafka.topic_reader import read
from lozenge_deploy.control.leader_election import TIMING
from lozenge_deploy.control.records import DeploymentSpec, DeploymentStatus, Goal, HistoryEvent, Lease, Outcome, now

SEND_SECONDS = 10.0
NO_AGENT_SECONDS = 2 * TIMING.lease
"""An agent that has been silent for so long is none."""


class NotDone(Fatal):
    """A change that was asked for did not come about."""


class OutOfTime(Retryable):
    """A change is still being worked on."""

    exit_code = 124


class Control:
    """Reads and changes what is desired; used by one thread. Raises BrokerUnavailable."""

    def __init__(self, kafka: KafkaSettings, *, no_agent_seconds: float = NO_AGENT_SECONDS) -> None:
        self._kafka, self._no_agent_seconds = kafka, no_agent_seconds
        ensure_topics(kafka, kafka.topics.control_topics())
        with ExitStack() as tables:
            self._desired = tables.enter_context(Table(kafka, self._kafka.topics.deployments, DeploymentSpec))
            self._observed = tables.enter_context(Table(kafka, self._kafka.topics.status, DeploymentStatus))
            self._tables = tables.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._tables.close()

    def desired(self, detector: str) -> DeploymentSpec | None:
        """What is wanted of a detector; None if it has never been deployed."""
        return self._desired.rows.get(detector)

    def deployed(self, detector: str) -> DeploymentSpec:
        """What is wanted of a detector that has been deployed; raises UsageError for any other."""
        if (found := self.desired(detector)) is None:
            if detector in STAGES:
                raise UsageError(
                    f"looking for {detector}: it is no detector, but a stage of the platform, which is not deployed",
                    hint=f"`lozenge status {detector}` tells where it stands; its group's offsets are moved with "
                    "Kafka's own tools while it does not run",
                )
            there = ", ".join(sorted(self._desired.rows)) or "none"
            raise UsageError(
                f"looking for {detector}: it has never been deployed; there is {there}",
                hint=f"`lozenge deploy {detector}` releases its folder and starts it",
            )
        return found

    def change(self, present: DeploymentSpec, what: str, message: str = "", **changes: Any) -> DeploymentSpec:
        """Wishes `present` with `changes`; returns the new desired state, which falls back to `present`."""
        fields = {
            "what": what,
            "message": message,
            "undoes": "",
            "state": self.pending(present),
            "before": self.fallback(present),
        }
        return self.wish(present.but(**fields | changes), after=present)

    def fallback(self, present: DeploymentSpec) -> DeploymentSpec:
        """What a change of `present` goes back to: `present`, which goes back further until it has proved good.

        One that has never been live is nothing to go back to, if there was another one before.
        """
        if present.before is not None and not self._lived(present):
            return present.before
        return present.but(state=self.pending(present), before=self.unproved(present))

    def unproved(self, present: DeploymentSpec) -> DeploymentSpec | None:
        """What `present` goes back to if it turns out ill; None once it has proved good."""
        seen = self._observed.rows.get(present.detector)
        proved = seen is not None and seen.revision == present.revision and seen.outcome is Outcome.DONE
        return None if proved and present.goal is Goal.RUNNING else present.before

    def live_release(self, detector: str) -> str:
        """The release that is live, or was last; "" if none ever was."""
        observed = self._observed.rows.get(detector)
        return observed.release if observed is not None else ""

    def pending(self, present: DeploymentSpec) -> str:
        """What a change of `present` begins with: its own policy until it has been live, then `keep`."""
        return "keep" if self._lived(present) else present.state

    def _lived(self, present: DeploymentSpec) -> bool:
        observed = self._observed.rows.get(present.detector)
        return observed is not None and observed.has(present)

    def wish(self, desired: DeploymentSpec, *, after: DeploymentSpec | None = None) -> DeploymentSpec:
        """Publishes a desired state as a new revision of the caller's.

        Raises NotDone if it was worked out from `after` and that is no longer what is wanted; BrokerUnavailable.
        """
        list(self._desired.poll(0.2))
        present = self.desired(desired.detector)
        if after is not None and present is not None and present.revision != after.revision:
            raise NotDone(
                f"asking for {desired.what} of {desired.detector}: {present.by} asked for {present.what} meanwhile",
                hint=f"nothing has changed; see `lozenge status {desired.detector}`, then ask again",
            )
        new = desired.model_copy(update={"revision": uuid4().hex[:12], "by": getpass.getuser(), "at": now()})
        happening = HistoryEvent(
            detector=new.detector, what=new.what, release=new.release, by=new.by, detail=new.message, at=new.at
        )
        producer = Producer(self._kafka.client(enable_idempotence=True, message_timeout_ms=int(SEND_SECONDS * 1000)))
        failed: list[str] = []
        offsets: list[int] = []

        def told(error: KafkaError | None, message: Message) -> None:
            if error:
                failed.append(str(error))
            elif message.topic() == self._kafka.topics.deployments:
                offsets.append(message.offset() or 0)

        try:
            for topic, record in ((self._kafka.topics.history, happening), (self._kafka.topics.deployments, new)):
                producer.produce(
                    topic,
                    record.model_dump_json().encode(),
                    new.detector.encode(),
                    0,
                    on_delivery=told,
                )
            left = producer.flush(SEND_SECONDS + 1)
        except KafkaException as error:
            left, failed = 1, [error.args[0].str()]
        if left or failed:
            raise BrokerUnavailable(
                f"asking for {new.what} of {new.detector}: {', '.join(failed) or 'no answer'}",
                hint=f"check the broker at {self._kafka.bootstrap}, then ask again",
            )
        deadline = time.monotonic() + SEND_SECONDS
        while self._desired.position <= offsets[0] and time.monotonic() < deadline:
            list(self._desired.poll(0.05))  # whatever else is wanted from now on came later
        return new

    def await_outcome(
        self, wanted: DeploymentSpec, timeout: float, tell: Callable[[DeploymentStatus], None]
    ) -> DeploymentStatus:
        """Waits until the agent has carried out `wanted`; `tell` hears of every step.

        Raises NotDone if it was rolled back or failed, or another change came first, or no agent answers;
        OutOfTime after `timeout` seconds.
        """
        deadline, name = time.monotonic() + timeout, wanted.detector
        silent_by = time.monotonic() + self._no_agent_seconds
        told: DeploymentStatus | None = None
        while time.monotonic() < deadline:
            list(self._desired.poll(0.05))
            list(self._observed.poll(0.05))
            present, observed = self._desired.rows.get(name), self._observed.rows.get(name)
            if present is not None and present.undoes == wanted.revision:
                raise NotDone(
                    f"{wanted.what} of {name}: {present.message}",
                    hint=f"{present.release} runs on; `lozenge logs {name}` and `lozenge history {name}` tell more",
                )
            if present is not None and present.revision != wanted.revision:
                raise NotDone(
                    f"{wanted.what} of {name}: {present.by} asked for {present.what} meanwhile",
                    hint=f"`lozenge status {name}` tells what is wanted now",
                )
            if observed is not None and observed.revision == wanted.revision:
                if observed != told:
                    tell(observed)
                    told = observed
                if observed.outcome in (Outcome.WATCHED, Outcome.DONE):
                    return observed
                if observed.outcome is Outcome.FAILED and wanted.before is None:
                    raise NotDone(
                        f"{wanted.what} of {name}: {observed.reason}", hint=f"`lozenge logs {name}` tells more"
                    )
            elif time.monotonic() > silent_by:
                if not self._agent_leads():
                    raise NotDone(
                        f"{wanted.what} of {name}: it is asked for, but no agent answers",
                        hint="start one: `lozenge up` on this machine, else `python -m lozenge_deploy.agent`",
                    )
                silent_by = time.monotonic() + self._no_agent_seconds
        raise OutOfTime(
            f"{wanted.what} of {name}: not done after {timeout:.0f} s",
            hint=f"it goes on; `lozenge status {name}` tells how far it is",
        )

    def history(self, detector: str) -> list[HistoryEvent]:
        """All that ever happened to a detector, and was done about its dead letters, the oldest first."""
        messages = read(self._kafka, self._kafka.topics.history, {0: 0})
        mine = (m.value() for m in messages if m.key() == detector.encode())
        happened = [HistoryEvent.model_validate_json(value) for value in mine if value is not None]
        resolved = [
            HistoryEvent(
                detector=detector,
                what=line.action,
                release=line.release,
                by=line.by,
                detail=str(line),
                at=datetime.fromtimestamp(line.at, UTC),
            )
            for line in resolutions(self._kafka, detector)
        ]
        return list(merge(happened, resolved, key=attrgetter("at")))

    def _agent_leads(self) -> bool:
        with Table(self._kafka, self._kafka.topics.leases, Lease) as leases:
            lease = leases.rows.get("leader")
            return (
                lease is not None and bool(lease.agent) and (now() - lease.at).total_seconds() < self._no_agent_seconds
            )
