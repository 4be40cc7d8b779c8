"""Desired and observed state of every detector, read-only."""

from contextlib import ExitStack
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from lozenge.kafka.compacted_topic import CompactedTopic, follow
from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.topic_admin import partitions
from lozenge_deploy.control.records import (
    ChangeOutcome,
    DeploymentSpec,
    DeploymentStatus,
    DetectorPhase,
    Goal,
    format_offsets,
)


@dataclass(frozen=True)
class Deployment:
    """A detector that has been deployed; `observed` is None until an agent has reconciled it."""

    spec: DeploymentSpec
    observed: DeploymentStatus | None

    @property
    def phase(self) -> str:
        """Its phase; "pending" before the first observation."""
        return self.observed.phase.value if self.observed else "pending"

    @property
    def problem(self) -> tuple[str, str] | None:
        """What is wrong and the next command; None if it is healthy or converging."""
        name, seen = self.spec.detector, self.observed
        if seen is None:
            return "no agent has picked it up", "`lozenge up` starts one on this machine"
        if seen.phase is DetectorPhase.CIRCUIT_OPEN:
            skip = f"`lozenge offsets {name} --to ...` skips them, and `lozenge coverage {name}` keeps the gap"
            return seen.reason, f"nothing is lost; `lozenge deploy {name}` with a fix processes the events, or {skip}"
        if seen.outcome is ChangeOutcome.FAILED or seen.reason:
            return seen.reason, f"`lozenge logs {name} --level error`, then `lozenge history {name}`"
        return None

    @property
    def fenced(self) -> str | None:
        """Which release was replaced by the current one, when and at which offsets; None if none was."""
        if self.observed is None or self.observed.fenced in ("", self.observed.release) or not self.observed.fenced_at:
            return None
        since = f" at {format_offsets(self.observed.fenced_from)}" if self.observed.fenced_from else ""
        return f"{self.observed.fenced} fenced {self.observed.fenced_at:%H:%M} UTC{since}"

    @property
    def retired(self) -> bool:
        """Whether it is retired."""
        return self.spec.goal is Goal.RETIRED


def follow_specs(kafka: KafkaSettings) -> CompactedTopic[DeploymentSpec]:
    """Follows the specs by detector, and has read them to their present end; raises BrokerUnavailable."""
    return follow(kafka, kafka.topics.control.deployments, DeploymentSpec, "detector")


def follow_status(kafka: KafkaSettings) -> CompactedTopic[DeploymentStatus]:
    """Follows the status of each detector likewise."""
    return follow(kafka, kafka.topics.control.status, DeploymentStatus, "detector")


class Deployments:
    """Follows the control topics, read-only; used by one thread. Empty if nothing was ever deployed."""

    def __init__(self, kafka: KafkaSettings) -> None:
        """Raises BrokerUnavailable."""
        self._specs: CompactedTopic[DeploymentSpec] | None = None
        self._observed: CompactedTopic[DeploymentStatus] | None = None
        self._closing = ExitStack()
        if {kafka.topics.control.deployments, kafka.topics.control.status} <= partitions(kafka).keys():
            self._specs = self._closing.enter_context(follow_specs(kafka))
            self._observed = self._closing.enter_context(follow_status(kafka))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._closing.close()

    def all(self) -> dict[str, Deployment]:
        """Every detector that was ever deployed, by name, as of now."""
        if self._specs is None or self._observed is None:
            return {}
        list(self._specs.poll(0.0))
        list(self._observed.poll(0.0))
        observed = self._observed.rows
        return {name: Deployment(spec, observed.get(name)) for name, spec in sorted(self._specs.rows.items())}
