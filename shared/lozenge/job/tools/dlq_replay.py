"""`python -m lozenge.job.tools.dlq_replay [NAME | FOLDER]`: processes a detector's dead letters again.

What is judged are the letters' own bytes, for the records that they stand for may be gone. Every step is one
transaction: alerts, a new letter for each that fails again, and the line that says that these letters were replayed. So
a replay that is killed is simply run again, and of two at once the later one goes on. Alerts have the ids that the
live job would have given them. Prints one JSON object for each step; ends between two of them when it is told to.
Exit codes as those of the job.

Only for what remembers nothing: what a fold or an aggregate makes of an event depends on those before it.
"""

import argparse
import os
import sys
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from pyspark.sql import DataFrame, SparkSession

from lozenge.contracts.dead_letters import DeadLetter
from lozenge.contracts.headers import dead_letter, for_another_try
from lozenge.contracts.record import Record, place_of
from lozenge.detector.definition import Settings
from lozenge.detector.loader import LoadedDetector, find
from lozenge.errors import LozengeError
from lozenge.job.batch_result import DraftAlert, FailedRecord
from lozenge.job.commit.alert_encoder import AlertEncoder
from lozenge.job.commit.dead_letter_encoder import of_failure
from lozenge.job.effective_config import JobSpecFile
from lozenge.job.identity import Identity
from lozenge.job.query.canonical_events import RECORDS
from lozenge.job.query.poison_search import ENOUGH_TO_TELL, Ranges, refuse_nothing
from lozenge.job.query.query_builder import Plan
from lozenge.job.settings import JobSettings, detector_settings
from lozenge.job.tools.backtest import judge
from lozenge.job.tools.command import tell
from lozenge.kafka.dead_letter_queue import Resolver
from lozenge.kafka.settings import KafkaSettings
from lozenge.process import logging
from lozenge.process.env_settings import load
from lozenge.process.shutdown import end
from lozenge.protocol.dlq_resolutions import REPLAYED, DeadLetterSelection, replayable
from lozenge.spark.session import spark_session

STEP = 100
"""Letters that are judged and written at a time. Each that fails again costs about two evaluations to find."""


@dataclass(frozen=True)
class Step:
    """What one transaction has told of `letters`. `again` of them failed once more.

    `held` were not replayed because one before them under their key failed again; `left` are still to come.
    """

    letters: int
    alerts: int
    again: int
    held: int
    left: int


class DlqReplayPlan(Plan):
    """The plan over the bytes of `letters`: to Spark they are the records of a partition 0, numbered in their order."""

    def __init__(
        self,
        letters: Sequence[DeadLetter],
        loaded: LoadedDetector,
        identity: Identity,
        settings: Settings,
        kafka: KafkaSettings,
        spark: SparkSession,
    ) -> None:
        super().__init__(loaded, identity, settings, kafka, spark)
        self._letters = letters

    @property
    def all(self) -> Ranges:
        """All of them."""
        return {0: (0, len(self._letters))}

    def _bounded(self, ranges: Ranges) -> DataFrame:
        begin, end = ranges[0]
        rows = [(x.value, 0, number, x.headers) for number, x in enumerate(self._letters[begin:end], begin)]
        return self._events(self._spark.createDataFrame(rows, RECORDS))


def replay(
    loaded: LoadedDetector,
    job: JobSettings,
    kafka: KafkaSettings,
    choice: DeadLetterSelection,
    *,
    in_order: bool,
    message: str = "",
) -> Iterator[Step]:
    """Replays the letters of `choice` that stand, in the order of what they stand for; raises as a job's start does.

    With `in_order` a letter is not replayed while one before it under its key fails. It ends early where a whole step
    fails again: then the code is not mended.
    """
    declaration = loaded.declaration
    settings = detector_settings(loaded, JobSpecFile(job).current.settings)
    identity = Identity(loaded.name, job.release, live=True, key=declaration.key)
    resolver = Resolver(kafka, loaded.name)
    chosen = replayable(loaded.name, declaration.kind, resolver.choose(choice))
    alerts = AlertEncoder(identity, declaration, settings)
    failing: set[bytes | None] = set()
    for begin in range(0, len(chosen), STEP):
        step = chosen[begin : begin + STEP]
        spark = spark_session(f"{loaded.name}-replay", cores=os.cpu_count() or 1, memory_mb=1024)
        plan = DlqReplayPlan(step, loaded, identity, settings, kafka, spark)
        plan.learn()
        judged = judge(plan, declaration.kind, plan.all, refuse_nothing)
        waiting = _waiting(step, judged.failed_records, failing) if in_order else set[int]()
        drafts = [f for f in judged.alerts if f.position is None or f.position[1] not in waiting]
        again = [p for p in judged.failed_records if p.offset not in waiting]
        now = datetime.now(UTC)
        records = [
            *(alerts.record(_of_origin(draft, step), now) for draft in drafts),
            *(_once_more(identity, step[failed.offset], failed, now) for failed in again),
            *(of_failure(identity, failure) for failure in judged.failures_without_record),
        ]
        told = [letter for number, letter in enumerate(step) if number not in waiting]
        if told:
            fields = {
                "alerts": len(drafts),
                "failed_again": len(again),
                "release": identity.release,
                "message": message,
            }
            resolver.write(REPLAYED, told, records, **fields)
        yield Step(len(told), len(drafts), len(again), held=len(waiting), left=max(0, len(chosen) - begin - STEP))
        if len(again) == len(step) >= ENOUGH_TO_TELL:
            return


def _waiting(step: Sequence[DeadLetter], records: Collection[FailedRecord], failing: set[bytes | None]) -> set[int]:
    """The numbers of those that come behind one that fails under the same key; such keys are added to `failing`."""
    failed = {record.offset for record in records}
    waiting = set()
    for number, letter in enumerate(step):
        if letter.key in failing:
            waiting.add(number)
        elif number in failed:
            failing.add(letter.key)
    return waiting


def _of_origin(draft: DraftAlert, step: Sequence[DeadLetter]) -> DraftAlert:
    """The draft as the live job would have made it, of the record that the letter stands for."""
    if draft.position is None:
        return draft
    origin = step[draft.position[1]].origin
    return replace(draft, trigger=origin if draft.trigger else None, position=origin)


def _once_more(identity: Identity, letter: DeadLetter, failed: FailedRecord, now: datetime) -> Record:
    """The letter of what failed again, which keeps where and when it first failed, and counts."""
    headers = dead_letter(
        for_another_try(letter.headers),
        topic=letter.topic,
        partition=letter.origin[0],
        offset=letter.origin[1],
        app=identity.app,
        stage=failed.stage,
        error=failed.error,
        failed_at=now,
    )
    return Record(identity.dead_letters, letter.place[0], letter.key, letter.value, headers)


def main() -> int:
    """Prints a line for each step; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m lozenge.job.tools.dlq_replay", description=__doc__)
    parser.add_argument("which", nargs="?")
    parser.add_argument("--places", default="", help='in its dead-letter topic: "0:12 2:9120"')
    parser.add_argument("--key")
    parser.add_argument("--in-order", action="store_true")
    parser.add_argument("--message", default="")
    given = parser.parse_args()
    logging.configure("replay")
    try:
        job, kafka = load(JobSettings, KafkaSettings)
        choice = DeadLetterSelection(tuple(map(place_of, given.places.split())), given.key)
        loaded = find(given.which)
        steps = replay(loaded, job, kafka, choice, in_order=given.in_order, message=given.message)
        tell(steps, f"replaying dead letters of {loaded.name}")
    except LozengeError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    end(main())
