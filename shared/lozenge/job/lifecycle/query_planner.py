"""Where a query of a job begins, and with which state.

An aggregate resumes from its own checkpoint if that was the last one to commit; otherwise it counts its open windows
again. Any other query begins with an empty checkpoint, and reads the stored state.
"""

from dataclasses import dataclass
from typing import Literal

from lozenge.detector.definition import Settings
from lozenge.detector.manifest import Manifest
from lozenge.job.commit.alert_encoder import AlertEncoder
from lozenge.job.commit.claim import Claims, StartPosition
from lozenge.job.drivers.window_replay import rewound
from lozenge.job.effective_config import EffectiveConfig
from lozenge.job.identity import Identity
from lozenge.job.operators.operator import Operator
from lozenge.job.query.batch_limit import BatchLimit
from lozenge.job.query.poison_search import Ranges
from lozenge.job.query.query_builder import QueryBuilder
from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.topic_reader import bounds
from lozenge.process.logging import logger
from lozenge.spark.checkpoint import Checkpoint

SNAPSHOT_TRIES = 5
"""How often a standby reads offsets and state again, until both are of the same transaction."""

StatePolicy = Literal["keep", "rebuild", "fresh"]


@dataclass(frozen=True, slots=True)
class PlannedStart:
    """A query before it starts: the position that is committed, the operator with its state, the offsets to read."""

    position: StartPosition
    operator: Operator
    begins: dict[int, int]


@dataclass(slots=True)
class QueryRun:
    """A query under one configuration. It has `read` so far, each partition up to an offset, with the last `batch`.

    While a batch is `in_flight`, the operator is ahead of what was accepted, so the next query can't take its state.
    `shared` is the sharing that it was planned for, `checkpoint` is the id of its checkpoint.
    """

    operator: Operator
    read: dict[int, int]
    encoder: AlertEncoder
    config: EffectiveConfig
    shared: bool
    checkpoint: str
    batch: int = -1
    in_flight: bool = False


class QueryPlanner:
    """Plans the queries of one job, one after the other."""

    def __init__(
        self,
        kafka: KafkaSettings,
        identity: Identity,
        declaration: Manifest,
        builder: QueryBuilder,
        checkpoint: Checkpoint,
        policy: StatePolicy,
        *,
        limited: bool,
    ) -> None:
        """With the state policy of a release that replaces another. Unless it is `limited`, a batch has no limit."""
        self._kafka, self._identity, self._declaration = kafka, identity, declaration
        self.builder, self.checkpoint, self.policy = builder, checkpoint, policy
        self.limit: BatchLimit | None = None
        self._limited = limited
        self._config: EffectiveConfig | None = None

    def configure(self, config: EffectiveConfig) -> None:
        """From now on queries have this configuration, and read the reference tables that are in force now.

        A new configuration forgets that a batch was too large. Raises DetectorError for a table without a good version.
        """
        self.builder.tables.take()
        if config != self._config:
            self._config, self.builder.settings = config, config.settings
            self.limit = BatchLimit(config.max_batch) if self._limited else None

    def check(self, settings: Settings) -> None:
        """Raises DetectorError if no query could be planned with these settings; the present one is left alone."""
        self.builder.check(settings, self._kafka.topics.partitions)

    def live(self, position: StartPosition, previous: Operator | None, *, replaces: bool = False) -> PlannedStart:
        """Of a live job at `position`, with the state of the operator `previous`, or with the stored state.

        An aggregate that `replaces` another release may have to discard the counts of open windows.
        """
        begins = self._begins(position, discard=replaces and self.policy == "fresh")
        operator = self._operator(begins)
        keys = operator.adopt_state(previous) if previous is not None else operator.restore(self._kafka)
        return self._planned(position, operator, begins, keys)

    def standby(self, claims: Claims) -> PlannedStart:
        """Of a standby at the group's position, with the state that the policy gives it.

        Meanwhile the live job writes offsets and state. They are read again until both are of the same transaction.
        State that is newer knows the events that it has counted. Older state would lose some: it is read second.
        """
        folds, policy = self._declaration.kind.state_in_topic, self.policy
        for _ in range(SNAPSHOT_TRIES):
            at = claims.position()
            if folds and policy == "rebuild":
                self.checkpoint.renew()
                begins = {p: low for p, (low, _) in self._bounds().items()}
            else:
                begins = self._begins(at, discard=policy == "fresh")
            operator = self._operator(begins)
            keys = 0 if folds and policy != "keep" else operator.restore(self._kafka)
            if not folds or claims.group.read().offsets == at.offsets:
                break
        return self._planned(at, operator, begins, keys)

    def newest(self, offsets: int) -> Ranges:
        """The newest `offsets` of each partition; raises BrokerUnavailable."""
        return {p: (max(low, end - offsets), end) for p, (low, end) in self._bounds().items()}

    def _bounds(self) -> dict[int, tuple[int, int]]:
        return bounds(self._kafka, self._identity.input, self._kafka.topics.partitions)

    def _begins(self, position: StartPosition, *, discard: bool) -> dict[int, int]:
        """The offsets to read from; `discard` starts an aggregate without the counts of open windows."""
        if not self._declaration.kind.state_in_checkpoint:
            self.checkpoint.renew()
            return dict(position.offsets)
        checkpoint, last = self.checkpoint, position.metadata
        if checkpoint.id == last.checkpoint and checkpoint.last_planned() >= last.batch:
            checkpoint.back_to(last.batch)  # in Real-Time Mode Spark ends a batch before the job commits it
            return checkpoint.planned(last.batch) or dict(position.offsets)
        checkpoint.renew()
        if last.batch < 0 or discard:  # nothing was counted, or counts are to be discarded
            return dict(position.offsets)
        return rewound(self._kafka, self._identity.input, position.offsets, self._declaration.memory)

    def _operator(self, begins: dict[int, int]) -> Operator:
        most = self.limit.value if self.limit is not None else None
        return self.builder.operator(begins, most, self._kafka.topics.partitions)

    def _planned(self, position: StartPosition, operator: Operator, begins: dict[int, int], keys: int) -> PlannedStart:
        tables = self.builder.versions.tables
        logger().info("query starts", offsets=begins, keys=keys, checkpoint=self.checkpoint.id, tables=tables)
        return PlannedStart(position, operator, begins)
