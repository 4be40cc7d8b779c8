"""Requests, each in one transaction with its audit record, after what others have requested."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic

from lozenge.contracts.record import Record
from lozenge.kafka.compacted_topic import read_latest
from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.topic_admin import ensure_topics, partitions
from lozenge.kafka.writers import TransactionalWriter, exclusively
from lozenge.process.waiting import wait_until
from lozenge.protocol.declared_releases import Deployed, Q, R, RowFormat
from lozenge_deploy.operations import audit

VISIBLE_SECONDS = 10.0


@dataclass(frozen=True)
class Requests(Generic[R, Q]):
    """The releases and requests of one topic. `transactional_id` is that of the changes of one owner."""

    kafka: KafkaSettings
    topic: str
    format: RowFormat[R, Q]
    transactional_id: Callable[[str], str]

    def rows(self) -> Mapping[str, R | Q]:
        """All that is released and requested, by key; raises BrokerUnavailable."""
        if self.topic not in partitions(self.kafka):
            return {}
        found = read_latest(self.kafka, self.topic, check=self.format.decode)
        return {row.key.decode(): self.format.decode(row.key, row.value) for row in found}

    def states(self) -> dict[str, Deployed[R, Q]]:
        """What there is of each owner, by name; raises BrokerUnavailable."""
        return {state.name: state for state in self.format.states(self.rows())}

    def state_of(self, owner: str) -> Deployed[R, Q]:
        """What there is of one owner; raises BrokerUnavailable."""
        return self.format.state_of(owner, self.rows())

    def make(
        self,
        owner: str,
        decide: Callable[[Deployed[R, Q]], list[R | Q]],
        *,
        action: str,
        detail: Mapping[str, Any],
        dry_run: bool = False,
    ) -> list[R | Q]:
        """Makes the requests on which `decide` decides, and returns them once every reader sees them.

        A `dry_run` only decides. Raises what `decide` raises, and BrokerUnavailable.
        """
        if dry_run:
            return decide(self.state_of(owner))
        ensure_topics(self.kafka, self.kafka.topics.control.contracts())

        def change(writer: TransactionalWriter) -> list[R | Q]:
            if made := decide(self.state_of(owner)):
                records = [self.format.record(self.topic, row) for row in made]
                writer.write([*records, audit.kafka_record(self.kafka, action, owner, detail)])
                wait_until(lambda: all(self.rows().get(self._key(row)) == row for row in made), VISIBLE_SECONDS)
            return made

        return exclusively(self.kafka, self.transactional_id(owner), change)

    def retire(self, owner: str, *, action: str) -> None:
        """Withdraws what is requested of an owner: no instance runs any more. Its releases and positions stay."""
        ensure_topics(self.kafka, self.kafka.topics.control.contracts())

        def change(writer: TransactionalWriter) -> None:
            withdrawn = Record(self.topic, 0, owner.encode(), None)
            writer.write([withdrawn, audit.kafka_record(self.kafka, action, owner, {})])
            wait_until(lambda: owner not in self.rows(), VISIBLE_SECONDS)

        exclusively(self.kafka, self.transactional_id(owner), change)

    def _key(self, row: R | Q) -> str:
        return self.format.key_of(row).decode()
