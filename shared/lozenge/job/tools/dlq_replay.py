"""`python -m lozenge.job.tools.dlq_replay [NAME | FOLDER]`: processes a detector's dead letters again.

It processes the bytes of the dead letters, because their original records may have expired. Every step is one
transaction: alerts, a new dead letter for each that fails again, and the record that these dead letters were replayed.
So a replay that is killed is run again, and of two at once the later one fences the earlier. Alerts have the ids that
the live job would have given them. Prints one JSON object for each step, and ends between two steps at SIGTERM. Exit
codes are those of the job.

Only for detectors without state: the alerts of a fold or an aggregate depend on earlier events.
"""

import argparse
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from itertools import groupby
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from lozenge.contracts.dead_letters import DeadLetter, dead_letter_headers, replay_headers
from lozenge.contracts.record import Record, parse_position
from lozenge.detector.loader import LoadedDetector
from lozenge.detector.manifest import Manifest
from lozenge.detector.tables.reference_tables import ReferenceTables
from lozenge.host.tool_host import tool_session
from lozenge.job.batch_result import DraftAlert, FailedRecord
from lozenge.job.commit.alert_encoder import AlertEncoder
from lozenge.job.commit.dead_letter_encoder import of_failure
from lozenge.job.effective_config import JobSpecFile
from lozenge.job.identity import Identity
from lozenge.job.query.event_reader import EventReader
from lozenge.job.query.poison_search import CONCLUSIVE_FAILURES, Ranges, no_limit
from lozenge.job.query.query_builder import QueryBuilder
from lozenge.job.query.range_evaluator import evaluate
from lozenge.job.settings import JobSettings, detector_settings
from lozenge.job.tools import command
from lozenge.job.tools.recorded_tables import RecordedTables
from lozenge.kafka.dead_letter_queue import Resolver
from lozenge.kafka.schema_registry import settle_ids
from lozenge.kafka.settings import KafkaSettings
from lozenge.process.env_settings import load
from lozenge.process.shutdown import end
from lozenge.protocol.coverage import Versions
from lozenge.protocol.dlq_resolutions import REPLAYED, DeadLetterSelection, replayable
from lozenge.spark.kafka_source import RECORDS

STEP_SIZE = 100
"""Dead letters of one transaction. Each that fails again costs about two evaluations to find."""


@dataclass(frozen=True)
class ReplayStep:
    """One transaction: `dead_letters` were replayed, and `failed_again` of them failed.

    `blocked` ones were not replayed, because an earlier one with the same key failed. `remaining` ones follow.
    """

    dead_letters: int
    alerts: int
    failed_again: int
    blocked: int
    remaining: int


class DeadLetterReader(EventReader):
    """Reads dead letters as events: for Spark they are the records of partition 0, numbered in their order."""

    def __init__(
        self,
        chosen: Sequence[DeadLetter],
        identity: Identity,
        declaration: Manifest,
        kafka: KafkaSettings,
        spark: SparkSession,
    ) -> None:
        super().__init__(identity, declaration, kafka, spark)
        self._chosen = chosen

    @property
    def ranges(self) -> Ranges:
        """All of them."""
        return {0: (0, len(self._chosen))}

    def records(self, ranges: Ranges) -> DataFrame:
        """Their bytes and headers."""
        begin, end = ranges[0]
        rows = [(x.value, 0, number, x.headers) for number, x in enumerate(self._chosen[begin:end], begin)]
        return self._spark.createDataFrame(rows, RECORDS)


def replay(
    loaded: LoadedDetector,
    job: JobSettings,
    kafka: KafkaSettings,
    selection: DeadLetterSelection,
    *,
    in_order: bool,
    message: str = "",
) -> Iterator[ReplayStep]:
    """Replays the unresolved dead letters of `selection`, in the order of their original records.

    With `in_order`, a dead letter is not replayed after an earlier one with its key has failed. Ends early if a whole
    step fails again, because the code is not fixed then. Raises what the start of a job raises.
    """
    settle_ids(kafka, ["alert"])
    declaration = loaded.declaration
    settings = detector_settings(loaded, JobSpecFile(job).current.settings)
    identity = Identity(loaded.name, job.release, live=True, key=loaded.key, topics=kafka.topics, stream=loaded.stream)
    resolver = Resolver(kafka, loaded.name)
    chosen = replayable(loaded.name, declaration.kind, resolver.choose(selection))
    failing_keys: set[bytes | None] = set()
    remaining = len(chosen)
    for tables, step in _steps(chosen, RecordedTables(kafka, loaded)):
        remaining -= len(step)
        alerts = AlertEncoder(identity, declaration, Versions(settings.digest, tables.taken))
        spark = tool_session(f"{loaded.name}-dlq-replay")
        events = DeadLetterReader(step, identity, declaration, kafka, spark)
        events.learn()
        builder = QueryBuilder(loaded, identity, settings, events, tables)
        result = evaluate(builder, declaration.kind, events.ranges, 1, no_limit)
        blocked = _blocked(step, result.failed_records, failing_keys) if in_order else set[int]()
        drafts = [draft for draft in result.alerts if draft.position is None or draft.position[1] not in blocked]
        again = [failed for failed in result.failed_records if failed.offset not in blocked]
        now = datetime.now(UTC)
        records = [
            *(alerts.record(_with_origin(draft, step), now) for draft in drafts),
            *(_failed_again(identity, step[failed.offset], failed, now) for failed in again),
            *(of_failure(identity, failure) for failure in result.failures_without_record),
        ]
        replayed = [dead for number, dead in enumerate(step) if number not in blocked]
        if replayed:
            counts = {"alerts": len(drafts), "failed_again": len(again)}
            resolver.write(REPLAYED, replayed, records, **counts, release=identity.release, message=message)
        yield ReplayStep(
            dead_letters=len(replayed),
            alerts=len(drafts),
            failed_again=len(again),
            blocked=len(blocked),
            remaining=remaining,
        )
        if len(again) == len(step) >= CONCLUSIVE_FAILURES:
            return


def _steps(
    chosen: Sequence[DeadLetter], tables: RecordedTables
) -> Iterator[tuple[ReferenceTables, Sequence[DeadLetter]]]:
    """The dead letters in their order, at most `STEP_SIZE` at a time and all of a step with the same tables.

    Those are the tables that the live job had when it failed on the events.
    """
    for of_step, group in groupby(chosen, key=lambda dead: tables.of(*dead.origin)):
        of_group = list(group)
        for begin in range(0, len(of_group), STEP_SIZE):
            yield of_step, of_group[begin : begin + STEP_SIZE]


def _blocked(
    step: Sequence[DeadLetter], records: Collection[FailedRecord], failing_keys: set[bytes | None]
) -> set[int]:
    """The numbers of those that follow a failed one with the same key. Adds the keys of failed ones."""
    failed = {record.offset for record in records}
    blocked = set()
    for number, dead in enumerate(step):
        if dead.key in failing_keys:
            blocked.add(number)
        elif number in failed:
            failing_keys.add(dead.key)
    return blocked


def _with_origin(draft: DraftAlert, step: Sequence[DeadLetter]) -> DraftAlert:
    """The draft as the live job would have made it, with the position of the original record."""
    if draft.position is None:
        return draft
    origin = step[draft.position[1]].origin
    return replace(draft, trigger=origin if draft.trigger else None, position=origin)


def _failed_again(identity: Identity, dead: DeadLetter, failed: FailedRecord, now: datetime) -> Record:
    """The dead letter of a record that failed again. It keeps the origin and first failure, and counts the attempts."""
    headers = dead_letter_headers(
        replay_headers(dead.headers),
        topic=dead.topic,
        partition=dead.origin[0],
        offset=dead.origin[1],
        app=identity.app,
        stage=failed.stage,
        error=failed.error,
        failed_at=now,
    )
    return Record(identity.dead_letters, dead.position[0], dead.key, dead.value, headers)


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--positions", default="", help='positions in its dead-letter topic: "0:12 2:9120"')
    parser.add_argument("--key")
    parser.add_argument("--in-order", action="store_true")
    parser.add_argument("--message", default="")


def _results(loaded: LoadedDetector, given: argparse.Namespace) -> Iterator[Mapping[str, Any]]:
    job, kafka = load(JobSettings, KafkaSettings)
    selection = DeadLetterSelection(tuple(map(parse_position, given.positions.split())), given.key)
    steps = replay(loaded, job, kafka, selection, in_order=given.in_order, message=given.message)
    return map(asdict, command.until_stopped(steps, f"replaying dead letters of {loaded.name}"))


def main() -> int:
    """Runs the command; returns the exit code."""
    return command.main("dlq_replay", __doc__, _results, _arguments)


if __name__ == "__main__":
    end(main())
