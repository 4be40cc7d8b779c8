"""The operator's side of the control topics: specs, statuses, and waiting until they agree."""

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

from lozenge.apps import is_file_source, is_stage
from lozenge.errors import BrokerUnavailable, Fatal, Retryable, UsageError
from lozenge.kafka.compacted_topic import follow
from lozenge.kafka.dead_letter_queue import resolutions
from lozenge.kafka.row_decoding import row_of
from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.topic_admin import ensure_topics
from lozenge.kafka.topic_reader import read
from lozenge.process.user_name import user_name
from lozenge_deploy.control.deployments_view import follow_specs, follow_status
from lozenge_deploy.control.leader_election import TIMING
from lozenge_deploy.control.records import (
    ChangeOutcome,
    DeploymentSpec,
    DeploymentStatus,
    Goal,
    HistoryEvent,
    Lease,
    now,
)

SEND_SECONDS = 10.0
NO_AGENT_SECONDS = 2 * TIMING.lease
"""An agent that has been silent for so long is none."""


class ChangeFailed(Fatal):
    """A requested change was not made."""


class ChangeTimedOut(Retryable):
    """A requested change is still in progress."""

    exit_code = 124


class Control:
    """Reads and changes deployment specs; used by one thread. Raises BrokerUnavailable."""

    def __init__(self, kafka: KafkaSettings, *, no_agent_seconds: float = NO_AGENT_SECONDS) -> None:
        self._kafka, self._no_agent_seconds = kafka, no_agent_seconds
        ensure_topics(kafka, kafka.topics.control.contracts())
        with ExitStack() as tables:
            self._specs = tables.enter_context(follow_specs(kafka))
            self._observed = tables.enter_context(follow_status(kafka))
            self._tables = tables.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._tables.close()

    def spec(self, detector: str) -> DeploymentSpec | None:
        """The deployment spec of a detector; None if it has never been deployed."""
        return self._specs.rows.get(detector)

    def deployed(self, detector: str) -> DeploymentSpec:
        """The deployment spec of a deployed detector; raises UsageError for any other."""
        if (found := self.spec(detector)) is None:
            if is_stage(detector):
                raise UsageError(
                    f"looking for {detector}: it is a stage of the platform, not a detector",
                    hint="`lozenge source` changes file sources"
                    if is_file_source(detector)
                    else f"`lozenge status {detector}` shows its lag",
                )
            there = ", ".join(sorted(self._specs.rows)) or "none"
            raise UsageError(
                f"looking for {detector}: it has never been deployed; deployed are: {there}",
                hint=f"`lozenge deploy {detector}` releases its folder and starts it",
            )
        return found

    def change(self, present: DeploymentSpec, what: str, message: str = "", **changes: Any) -> DeploymentSpec:
        """Applies `present` with `changes`; returns the new deployment spec, whose fallback is `present`."""
        fields = {
            "what": what,
            "message": message,
            "undoes": "",
            "state": self.pending(present),
            "before": self.fallback(present),
        }
        return self.apply(present.updated(**fields | changes), after=present)

    def fallback(self, present: DeploymentSpec) -> DeploymentSpec:
        """The fallback of a change of `present`: `present`, with its own fallback until it has passed its trial.

        A state that has never been live is skipped if it has a fallback.
        """
        if present.before is not None and not self._was_live(present):
            return present.before
        return present.updated(state=self.pending(present), before=self.unproved(present))

    def unproved(self, present: DeploymentSpec) -> DeploymentSpec | None:
        """The fallback of `present`; None once it has passed its trial."""
        seen = self._observed.rows.get(present.detector)
        passed = seen is not None and seen.revision == present.revision and seen.outcome is ChangeOutcome.DONE
        return None if passed and present.goal is Goal.RUNNING else present.before

    def live_release(self, detector: str) -> str:
        """The release that is live, or was last; "" if none ever was."""
        observed = self._observed.rows.get(detector)
        return observed.release if observed is not None else ""

    def pending(self, present: DeploymentSpec) -> str:
        """The state policy of a change of `present`: its own until it has been live, then `keep`."""
        return "keep" if self._was_live(present) else present.state

    def _was_live(self, present: DeploymentSpec) -> bool:
        observed = self._observed.rows.get(present.detector)
        return observed is not None and observed.has(present)

    def apply(self, spec: DeploymentSpec, *, after: DeploymentSpec | None = None) -> DeploymentSpec:
        """Publishes a deployment spec as a new revision by the current user.

        Raises ChangeFailed if it was derived from `after` and that is no longer in force; BrokerUnavailable.
        """
        list(self._specs.poll(0.2))
        present = self.spec(spec.detector)
        if after is not None and present is not None and present.revision != after.revision:
            raise ChangeFailed(
                f"cannot {spec.what} {spec.detector}: {present.what} was requested by {present.by} meanwhile",
                hint=f"nothing has changed; see `lozenge status {spec.detector}`, then try again",
            )
        new = spec.model_copy(update={"revision": uuid4().hex[:12], "by": user_name(), "at": now()})
        event = HistoryEvent(
            detector=new.detector, what=new.what, release=new.release, by=new.by, detail=new.message, at=new.at
        )
        producer = Producer(self._kafka.client(enable_idempotence=True, message_timeout_ms=int(SEND_SECONDS * 1000)))
        failed: list[str] = []
        offsets: list[int] = []

        def delivered(error: KafkaError | None, message: Message) -> None:
            if error:
                failed.append(str(error))
            elif message.topic() == self._kafka.topics.control.deployments:
                offsets.append(message.offset() or 0)

        try:
            control = self._kafka.topics.control
            for topic, record in ((control.history, event), (control.deployments, new)):
                producer.produce(
                    topic,
                    record.model_dump_json().encode(),
                    new.detector.encode(),
                    0,
                    on_delivery=delivered,
                )
            left = producer.flush(SEND_SECONDS + 1)
        except KafkaException as error:
            left, failed = 1, [error.args[0].str()]
        if left or failed:
            raise BrokerUnavailable(
                f"cannot {new.what} {new.detector}: {', '.join(failed) or 'the broker does not answer'}",
                hint=f"check the broker at {self._kafka.bootstrap}, then try again",
            )
        deadline = time.monotonic() + SEND_SECONDS
        while self._specs.position <= offsets[0] and time.monotonic() < deadline:
            list(self._specs.poll(0.05))  # later revisions then follow this one
        return new

    def await_outcome(
        self, wanted: DeploymentSpec, timeout: float, on_change: Callable[[DeploymentStatus], None]
    ) -> DeploymentStatus:
        """Waits until the agent has made the change `wanted`; calls `on_change` for every new status.

        Raises ChangeFailed if it was rolled back or failed, or another change replaced it, or no agent answers;
        ChangeTimedOut after `timeout` seconds.
        """
        deadline, name = time.monotonic() + timeout, wanted.detector
        silent_by = time.monotonic() + self._no_agent_seconds
        last: DeploymentStatus | None = None
        while time.monotonic() < deadline:
            list(self._specs.poll(0.05))
            list(self._observed.poll(0.05))
            present, observed = self._specs.rows.get(name), self._observed.rows.get(name)
            if present is not None and present.undoes == wanted.revision:
                raise ChangeFailed(
                    f"{wanted.what} of {name}: {present.message}",
                    hint=f"{present.release} still runs; see `lozenge logs {name}` and `lozenge history {name}`",
                )
            if present is not None and present.revision != wanted.revision:
                raise ChangeFailed(
                    f"{wanted.what} of {name}: {present.what} was requested by {present.by} meanwhile",
                    hint=f"`lozenge status {name}` shows the requested state",
                )
            if observed is not None and observed.revision == wanted.revision:
                if observed != last:
                    on_change(observed)
                    last = observed
                if observed.outcome in (ChangeOutcome.WATCHED, ChangeOutcome.DONE):
                    return observed
                if observed.outcome is ChangeOutcome.FAILED and wanted.before is None:
                    raise ChangeFailed(f"{wanted.what} of {name}: {observed.reason}", hint=f"see `lozenge logs {name}`")
            elif time.monotonic() > silent_by:
                if not self._has_leader():
                    raise ChangeFailed(
                        f"{wanted.what} of {name}: it is pending, and no agent answers",
                        hint="start one: `lozenge up` on this machine, else `python -m lozenge_deploy.agent`",
                    )
                silent_by = time.monotonic() + self._no_agent_seconds
        raise ChangeTimedOut(
            f"{wanted.what} of {name}: not done after {timeout:.0f} s",
            hint=f"it continues; `lozenge status {name}` shows its progress",
        )

    def history(self, detector: str) -> list[HistoryEvent]:
        """The history of a detector, with what was done about its dead letters, the oldest first."""
        messages = read(self._kafka, self._kafka.topics.control.history, {0: 0})
        mine = (row_of(m, history_event) for m in messages if m.key() == detector.encode())
        happened = [event for event in mine if event is not None]
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

    def _has_leader(self) -> bool:
        with follow(self._kafka, self._kafka.topics.control.leases, Lease) as leases:
            lease = leases.rows.get("leader")
            return (
                lease is not None and bool(lease.agent) and (now() - lease.at).total_seconds() < self._no_agent_seconds
            )


def history_event(key: bytes, value: bytes) -> HistoryEvent:
    return HistoryEvent.model_validate_json(value)
