"""Leader election among agents: a lease that the leader renews, and a fence that makes a former leader's writes fail.

The lease determines when a leader is considered dead. The broker's transactional id makes that safe: only the agent
that called `init_transactions` last can write. An agent that slept past its lease learns it at its next write,
whatever its clock says. The jobs that it started have an older generation and cannot commit either.
"""

import time
from collections.abc import Iterable
from dataclasses import dataclass

from confluent_kafka import KafkaError, KafkaException, Producer
from pydantic import BaseModel

from lozenge.errors import BrokerUnavailable, Fatal, LozengeError
from lozenge.kafka.compacted_topic import follow
from lozenge.kafka.settings import SILENT, KafkaSettings
from lozenge.kafka.writers import FENCED
from lozenge_deploy.control.records import Lease

_LEADER = "leader"

Row = tuple[str, str, BaseModel | None]
"""Topic, key and record (None deletes the key)."""


@dataclass(frozen=True)
class LeaseTiming:
    """Seconds: validity of a lease, its renewal, and the timeout of a call to the broker."""

    lease: float = 10.0
    renew: float = 3.0
    call: float = 5.0


TIMING = LeaseTiming()


class LeadershipLost(Fatal):
    """Another agent is the leader; nothing of this write was stored."""


class Leadership:
    """The leadership of this agent. Call `tick` several times a second; act only while it returns True."""

    def __init__(self, kafka: KafkaSettings, me: Lease, timing: LeaseTiming = TIMING) -> None:
        """Raises BrokerUnavailable."""
        self._kafka, self._me, self._timing = kafka, me, timing
        self._leases = follow(kafka, kafka.topics.control.leases, Lease)
        self._seen_at = time.monotonic()
        self._renewed_at = 0.0
        self._producer: Producer | None = None

    @property
    def leader(self) -> Lease | None:
        """The newest lease."""
        return self._leases.rows.get(_LEADER)

    @property
    def leading(self) -> bool:
        """Whether this agent is the leader, as far as it knows."""
        return self._producer is not None

    def tick(self) -> bool:
        """Renews the lease, or campaigns if it has expired; whether this agent may act. Raises BrokerUnavailable."""
        now = time.monotonic()
        if self._producer is not None:
            if now - self._renewed_at > self._timing.renew:
                self._renew()
            return self._producer is not None and time.monotonic() - self._renewed_at < self._timing.lease
        if any(key == _LEADER for key in self._leases.poll(0.1)):
            self._seen_at = now
        return self._campaign() if self._free() else False

    def write(self, rows: Iterable[Row]) -> None:
        """Writes records of the control topics in one transaction; raises LeadershipLost.

        Raises BrokerUnavailable if it is unknown whether they are stored. Leadership may have to be acquired again.
        """
        assert self._producer is not None
        try:
            self._producer.begin_transaction()
            for topic, key, record in rows:
                value = record.model_dump_json().encode() if record is not None else None
                self._producer.produce(topic, value, key.encode(), partition=0)
            self._producer.commit_transaction(self._timing.call)
        except KafkaException as error:
            raise self._failed(error) from error

    def resign(self) -> None:
        """Releases the lease, so that another agent need not wait until it expires."""
        if self._producer is not None:
            self.write([(self._kafka.topics.control.leases, _LEADER, self._me.model_copy(update={"agent": ""}))])
        self._producer = None

    def close(self) -> None:
        """Closes the connection."""
        self._leases.close()

    def _free(self) -> bool:
        """Whether there is no other leader; a lease of this agent from before a lost connection does not count."""
        leader = self.leader
        if leader is None or leader.agent in ("", self._me.agent):
            return True
        return time.monotonic() - self._seen_at > self._timing.lease

    def _campaign(self) -> bool:
        before, leases = self.leader, follow(self._kafka, self._kafka.topics.control.leases, Lease)
        self._leases.close()
        self._leases = leases
        if self.leader != before:  # this agent has not read for long: there may be a leader
            self._seen_at = time.monotonic()
            return False
        producer = Producer(
            self._kafka.client(transactional_id="lozenge-agent", transaction_timeout_ms=10_000), logger=SILENT
        )
        try:
            producer.init_transactions(self._timing.call)
        except KafkaException as error:
            raise BrokerUnavailable(
                f"acquiring leadership: {error.args[0].str()}", hint=f"check the broker at {self._kafka.bootstrap}"
            ) from error
        self._producer = producer
        self._renew()
        return self._producer is not None

    def _renew(self) -> None:
        asked, lease = time.monotonic(), Lease(**self._me.model_dump(exclude={"at"}))
        try:
            self.write([(self._kafka.topics.control.leases, _LEADER, lease)])
        except LeadershipLost:
            return  # the next tick follows
        self._renewed_at = asked
        self._leases.rows[_LEADER] = lease

    def _failed(self, error: KafkaException) -> LozengeError:
        cause: KafkaError = error.args[0]
        if cause.code() in FENCED or cause.fatal():
            self._producer, self._seen_at = None, time.monotonic()
            return LeadershipLost("writing to the control topics: another agent is the leader")
        if self._producer is not None:
            try:
                self._producer.abort_transaction(self._timing.call)
            except KafkaException:  # a commit in progress cannot be aborted: only a new producer can continue
                self._producer = None
        return BrokerUnavailable(
            f"writing to the control topics: {cause.str()}", hint=f"check the broker at {self._kafka.bootstrap}"
        )
