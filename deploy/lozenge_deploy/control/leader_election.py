"""One agent leads: a lease that it renews, and a fence that makes a deposed one's writes fail.

The lease says when to give a leader up; the broker's transactional id makes sure of it. Whoever calls
`init_transactions` last is the only one that can write, so an agent that slept past its lease finds out at its
next write, whatever its clock says. What it started before carries an older generation and cannot commit either.
"""

import time
from collections.abc import Iterable
from dataclasses import dataclass

from confluent_kafka import KafkaError, KafkaException, Producer
from pydantic import BaseModel

from lozenge.errors import BrokerUnavailable, Fatal, LozengeError
from lozenge.kafka.compacted_topic import Table
from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.writers import FENCED
from lozenge_deploy.control.records import Lease

_LEADER = "leader"

Row = tuple[str, str, BaseModel | None]
"""Topic, key and record (None deletes the key)."""


@dataclass(frozen=True)
class Timing:
    """In seconds: how long a lease holds, when it is renewed, and how long the broker may take for a call."""

    lease: float = 10.0
    renew: float = 3.0
    call: float = 5.0


TIMING = Timing()


class LeadershipLost(Fatal):
    """Another agent leads now; nothing of this write was stored."""


class Leadership:
    """This agent's part in it. Call `tick` several times a second; act only while it returns True."""

    def __init__(self, kafka: KafkaSettings, me: Lease, timing: Timing = TIMING) -> None:
        """Raises BrokerUnavailable."""
        self._kafka, self._me, self._timing = kafka, me, timing
        self._leases = Table(kafka, kafka.topics.leases, Lease)
        self._seen_at = time.monotonic()
        self._renewed_at = 0.0
        self._producer: Producer | None = None

    @property
    def leader(self) -> Lease | None:
        """Whose lease was seen last."""
        return self._leases.rows.get(_LEADER)

    @property
    def leading(self) -> bool:
        """Whether no other agent has taken the lead from this one, as far as it knows."""
        return self._producer is not None

    def tick(self) -> bool:
        """Renews the lease or, where it has run out, asks for it; whether this agent may act now.

        Raises BrokerUnavailable where it cannot.
        """
        now = time.monotonic()
        if self._producer is not None:
            if now - self._renewed_at > self._timing.renew:
                self._renew()
            return self._producer is not None and time.monotonic() - self._renewed_at < self._timing.lease
        if any(key == _LEADER for key in self._leases.poll(0.1)):
            self._seen_at = now
        return self._campaign() if self._free() else False

    def write(self, rows: Iterable[Row]) -> None:
        """Writes records of the control topics, all or none; raises Deposed.

        Raises BrokerUnavailable if nobody knows whether they are stored; the lead may have to be asked for again.
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
        """Gives the lease up, so that another agent need not wait for its end."""
        if self._producer is not None:
            self.write([(self._kafka.topics.leases, _LEADER, self._me.model_copy(update={"agent": ""}))])
        self._producer = None

    def close(self) -> None:
        """Gives the connection back."""
        self._leases.close()

    def _free(self) -> bool:
        """Whether nobody leads, or only this agent itself, before it lost its connection."""
        leader = self.leader
        if leader is None or leader.agent in ("", self._me.agent):
            return True
        return time.monotonic() - self._seen_at > self._timing.lease

    def _campaign(self) -> bool:
        before, leases = self.leader, Table(self._kafka, self._kafka.topics.leases, Lease)
        self._leases.close()
        self._leases = leases
        if self.leader != before:  # this agent has not looked for long: somebody may lead
            self._seen_at = time.monotonic()
            return False
        producer = Producer(self._kafka.client(transactional_id="lozenge-agent", transaction_timeout_ms=10_000))
        try:
            producer.init_transactions(self._timing.call)
        except KafkaException as error:
            raise BrokerUnavailable(
                f"asking for the lead: {error.args[0].str()}", hint=f"check the broker at {self._kafka.bootstrap}"
            ) from error
        self._producer = producer
        self._renew()
        return self._producer is not None

    def _renew(self) -> None:
        asked, lease = time.monotonic(), Lease(**self._me.model_dump(exclude={"at"}))
        try:
            self.write([(self._kafka.topics.leases, _LEADER, lease)])
        except LeadershipLost:
            return  # the next tick follows
        self._renewed_at = asked
        self._leases.rows[_LEADER] = lease

    def _failed(self, error: KafkaException) -> LozengeError:
        cause: KafkaError = error.args[0]
        if cause.code() in FENCED or cause.fatal():
            self._producer, self._seen_at = None, time.monotonic()
            return LeadershipLost("writing to the control topics: another agent leads now")
        if self._producer is not None:
            try:
                self._producer.abort_transaction(self._timing.call)
            except KafkaException:  # a commit that is under way cannot be taken back: only a new producer goes on
                self._producer = None
        return BrokerUnavailable(
            f"writing to the control topics: {cause.str()}", hint=f"check the broker at {self._kafka.bootstrap}"
        )
