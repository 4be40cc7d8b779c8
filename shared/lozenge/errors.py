"""Every error of Lozenge, as one tree.

    LozengeError
    ├── Retryable                 the same call may succeed later; nothing is wrong with the data
    │   ├── BrokerUnavailable     no Kafka broker answered in time
    │   ├── RegistryUnavailable   no schema registry answered where one should
    │   ├── SparkGone             Spark's JVM did not start, or ended under the running query
    │   ├── NotErased             places still have records of a person, or may have them
    │   ├── StoreUnavailable      (lozenge_downstream.store) the notifier's database is locked, away or full
    │   ├── SourceUnavailable     (lozenge_upstream.tables.source_rows) the database or folder of a table is away
    │   ├── ArchiveUnwritable     (lozenge.archive.delta_table) a table cannot be written, as on a full disk
    │   ├── CacheUnavailable      (lozenge.cache.entries) the server of a cache is away or full
    │   ├── SecretUnusable        (lozenge_downstream.channels.base.secrets) a secret is not where the routing file says
    │   ├── UnreadableTimestamp   (lozenge_upstream.streaming.query_errors) Spark cannot read a raw record, Python can
    │   ├── NotifierUnavailable   (lozenge_deploy.operations.notifier_client) no notifier answers where one should
    │   └── ChangeTimedOut        (lozenge_deploy.control.client) a change is not finished yet
    ├── Poison                    this one record can never be processed; it becomes a dead letter
    │   ├── DecodeError           bytes that are not the record they claim to be
    │   │   └── UnknownSchema     (lozenge.contracts.avro) a schema id that nobody has announced
    │   ├── DetectError           a detector's code raised on this record
    │   ├── EncodeError           what a detector made of this record is no alert that could be written
    │   └── Undeliverable         (lozenge_downstream.delivery.dispatcher) a channel refused it, or to the last attempt
    └── Fatal                     a person has to change something first
        ├── UsageError            the command or its arguments
        ├── ConfigError           settings or a declaration; carries every problem at once
        ├── ToolchainError        Java, jars or the virtual environment
        ├── TopicError            a topic is missing or breaks its contract
        ├── SchemaError           a schema is unknown or incompatible
        ├── DetectorError         a detector cannot be found, imported or planned, or fails on too much
        │   └── Flood             it raises on so many records that its code must be at fault
        ├── OffsetsLost           retention removed the job's next events, or its committed offsets are unknown
        ├── StaleGeneration       a newer generation of this job has replaced it
        ├── ChangeFailed          (lozenge_deploy.control.client) a requested change was refused or rolled back
        ├── LeadershipLost        (lozenge_deploy.control.leader_election) another agent is the leader
        └── Fenced                the broker refused this writer: another one called init_transactions

The caller that catches one decides by the first level: retry, dead letter, or stop. `exit_code` is what a
command ends with (documented in the README): 1 failed, 2 usage, 3 dependency unreachable.
"""

from collections.abc import Sequence

PROBLEM, HINT = "  - ", "  -> "
"""Begin the line of each problem and that of the hint where an error is printed, below its message."""


class LozengeError(Exception):
    """Root of the tree: what was being done, on what, and `hint`, what a person does next."""

    exit_code = 1

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message}\n{HINT}{self.hint}" if self.hint else self.message


class Retryable(LozengeError):
    """Trying again later may succeed."""


class BrokerUnavailable(Retryable):
    """No Kafka broker answered within the deadline."""

    exit_code = 3


class RegistryUnavailable(Retryable):
    """The schema registry did not answer, or answered with an error of its own."""

    exit_code = 3


class SparkGone(Retryable):
    """Spark's JVM did not start, or has ended by a signal or for lack of memory; what is committed stays."""


class NotErased(Retryable):
    """Places still have records of a person who was to be erased, or may have them; the command can be run again."""


class Poison(LozengeError):
    """One record that no retry can process; its bytes go to the dead-letter topic."""


class DecodeError(Poison):
    """The bytes are not the Avro record that their header claims."""


class DetectError(Poison):
    """A detector's own code raised while it processed one record."""


class EncodeError(Poison):
    """A detector's alert lacks its entity or time, or holds what the alert's schema does not."""


class Fatal(LozengeError):
    """The job must stop until a person has changed something."""


class UsageError(Fatal):
    """The command line names something that does not exist or does not fit."""

    exit_code = 2


class ConfigError(Fatal):
    """Settings or a declaration are invalid; `problems` holds all of them, each with its place."""

    exit_code = 2

    def __init__(self, message: str, *, problems: Sequence[str] = (), hint: str = "") -> None:
        super().__init__("\n".join([message, *(f"{PROBLEM}{p}" for p in problems)]), hint=hint)
        self.problems = tuple(problems)


class OffsetsLost(Fatal):
    """A job cannot resume: its offsets or the events there are gone; `problems` holds every partition."""

    def __init__(self, message: str, *, problems: Sequence[str], hint: str) -> None:
        super().__init__("\n".join([message, *(f"{PROBLEM}{p}" for p in problems)]), hint=hint)
        self.problems = tuple(problems)


class ToolchainError(Fatal):
    """Java, a jar or an environment is missing, too old or not what its checksum says."""


class TopicError(Fatal):
    """A topic is missing or has another partition count than its contract."""


class SchemaError(Fatal):
    """A schema is unknown or incompatible, or its id means another one; `problems` holds all of them."""

    def __init__(self, message: str, *, problems: Sequence[str] = (), hint: str = "") -> None:
        super().__init__("\n".join([message, *(f"{PROBLEM}{p}" for p in problems)]), hint=hint)
        self.problems = tuple(problems)


class DetectorError(Fatal):
    """A detector cannot be found, imported or planned, or it fails on too many records."""


class Flood(DetectorError):
    """A detector raises on so many records that its code must be at fault; nothing of the batch was committed."""


class StaleGeneration(Fatal):
    """The consumer group carries a newer generation: this process was replaced and must not write."""


class Fenced(Fatal):
    """The broker refused this transactional writer because a newer one exists."""


_CAUSE = "Caused by: "


def first_line(error: BaseException) -> str:
    """The first sentence of an error, without the plan and stack that Spark adds below it.

    Of one that Java raised it is the innermost cause: py4j's own first line names a call, and Spark wraps the rest.
    """
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    if not lines or not lines[0].startswith("An error occurred while calling "):
        return next(iter(lines), type(error).__name__)
    causes = [line.removeprefix(_CAUSE) for line in lines if line.startswith(_CAUSE)]
    return next(reversed(causes), lines[1].removeprefix(": ") if len(lines) > 1 else lines[0])
