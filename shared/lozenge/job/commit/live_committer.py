"""Commits the batches of a job that has claimed its partitions, each in one transaction of each of its writers.

The delivery guarantee decides how a batch's alerts relate to its transaction. In Real-Time Mode alerts are published
before the offsets of their events are committed, those of a rule by Spark. The next job, in any mode, skips alerts that
are already published.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial

from lozenge.contracts.record import Record
from lozenge.detector.manifest import Manifest
from lozenge.job.batch_result import BatchResult, DraftAlert
from lozenge.job.commit.alert_encoder import AlertEncoder
from lozenge.job.commit.claim import Claim, Claims, StartPosition
from lozenge.job.commit.dead_letter_encoder import dead_letters
from lozenge.job.commit.delivery_guarantees import COMMIT_BY_GUARANTEE
from lozenge.job.commit.resume_offsets import within
from lozenge.job.identity import Identity
from lozenge.kafka.group_offsets import Positions
from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.writers import TransactionalWriter
from lozenge.protocol.commit_metadata import CommitMetadata
from lozenge.protocol.coverage import RECONFIGURED, Versions


@dataclass(frozen=True, slots=True)
class BatchCommit:
    """All that a commit makes valid: the alerts and dead letters of a batch, its state changes, and where it ends.

    A standby's first commit is of all its batches. The result is that of its buffer, the state changes are of them all.
    """

    result: BatchResult
    state_changes: Sequence[Record]
    ends: dict[int, int]
    metadata: CommitMetadata


class LiveCommitter:
    """The commits under one claim; `offsets` and `metadata` are those of the last one.

    One of several instances has offsets of its own partitions only, and a transaction for each of them.
    """

    def __init__(
        self, kafka: KafkaSettings, identity: Identity, declaration: Manifest, claims: Claims, claim: Claim
    ) -> None:
        self._kafka, self._identity, self._declaration, self._claims = kafka, identity, declaration, claims
        self._shared, self._skipped = claim.shared, claim.skipped
        self.offsets, self.metadata = dict(claim.offsets), claim.metadata
        self._unacknowledged = False  # alerts that `publish` has sent may not be acknowledged yet
        self._uncertain = False  # a transaction has failed, and may have been committed all the same

    def published_ids(self) -> frozenset[str]:
        """The ids of alerts published ahead of the offsets; raises BrokerUnavailable. See `Claims.published_ahead`."""
        return self._claims.published_ahead(self._here).published

    def skip_published(self) -> None:
        """From now on `commit` and `publish` skip the alerts published by now; raises BrokerUnavailable."""
        self._await_acknowledgements()
        self._skipped = self._claims.published_ahead(self._here)

    def record_versions(self, versions: Versions) -> None:
        """Writes a coverage segment from which on these settings and tables hold; nothing if they do already."""
        coverage, metadata = self._claims.coverage, self.metadata
        if coverage.newest is None or coverage.newest.versions == versions:
            return
        here = Positions(self.offsets, metadata)
        segment = coverage.segment(RECONFIGURED, versions, metadata.generation, here, self.offsets, shared=self._shared)
        self._claims.write(segment, self._here)

    def commit(self, batch: BatchCommit, encoder: AlertEncoder) -> int:
        """Commits dead letters, state and offsets in one transaction, and alerts as guaranteed.

        Returns how many events were committed. Raises Fenced, BrokerUnavailable.
        """
        self._await_acknowledgements()
        now, metadata = datetime.now(UTC), batch.metadata
        offsets = {p: max(end, self.offsets[p]) for p, end in batch.ends.items()}
        events = sum(end - self.offsets[p] for p, end in offsets.items())
        result = batch.result._replace(alerts=self._skipped.unpublished(batch.result.alerts, encoder.alert_id))
        skipped = self._skipped.after(offsets)
        if skipped.published:  # what was published ahead is not all before these offsets
            metadata = replace(metadata, output_ahead=True)
        for writer, own in self._claims.writers.each():
            part = result.within(own) if self._shared else result
            others = [*dead_letters(self._kafka, self._identity, part)]
            others += [record for record in batch.state_changes if record.partition in own]
            COMMIT_BY_GUARANTEE[self._declaration.guarantee](
                [encoder.record(draft, now) for draft in part.alerts],
                others,
                partial(self._transact, writer, within(offsets, own), metadata),
                lambda records: self._claims.writers.acknowledged.write(records),
            )
        self.metadata, self._skipped = metadata, skipped
        return events

    def publish(self, drafts: Sequence[DraftAlert], encoder: AlertEncoder) -> Sequence[DraftAlert]:
        """Publishes alerts before their batch has ended; returns those that were not published before.

        The next commit waits for their acknowledgement. Raises BrokerUnavailable.
        """
        now, new = datetime.now(UTC), self._skipped.unpublished(drafts, encoder.alert_id)
        if new:
            self._unacknowledged = True  # also if only some of them are sent
            self._claims.writers.acknowledged.send([encoder.record(draft, now) for draft in new])
        return new

    def refresh(self) -> None:
        """Commits the same offsets again, so that they do not expire; not if a transaction's result is unknown."""
        if self._uncertain:
            return
        for writer, own in self._claims.writers.each():
            writer.commit([], self._claims.group, within(self.offsets, own), self.metadata)

    def close(self) -> None:
        """Returns once every published alert is acknowledged; raises BrokerUnavailable."""
        self._await_acknowledgements()

    @property
    def _here(self) -> StartPosition:
        return StartPosition(self.offsets, self.metadata)

    def _await_acknowledgements(self) -> None:
        if self._unacknowledged:
            self._claims.writers.acknowledged.flush()
        self._unacknowledged = False

    def _transact(
        self,
        writer: TransactionalWriter,
        offsets: dict[int, int],
        metadata: CommitMetadata,
        records: Sequence[Record],
    ) -> None:
        """One transaction. `offsets` change with each transaction and not with the batch.

        Else a job whose batch fails after the first of several transactions would commit older offsets on its way out.
        """
        self._uncertain = True
        writer.commit(records, self._claims.group, offsets, metadata)
        self.offsets, self._uncertain = self.offsets | offsets, False
