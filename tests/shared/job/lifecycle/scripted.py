"""A job whose query, log and group follow a script: its decisions, outputs and status are the real ones."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from lozenge import Detector, Settings
from lozenge.contracts.record import Record
from lozenge.contracts.topics import Topics
from lozenge.detector.events import Alert
from lozenge.detector.loader import LoadedDetector
from lozenge.detector.manifest import Manifest
from lozenge.errors import DetectorError, Fenced
from lozenge.job.batch_result import BatchResult, DraftAlert
from lozenge.job.commit.claim import Claim, StartPosition
from lozenge.job.commit.resume_filter import ResumeFilter
from lozenge.job.drivers.driver import BatchPlanned, BatchProcessed, Capabilities, QueryEvent, QueryPlan
from lozenge.job.effective_config import EffectiveConfig, JobSpecFile
from lozenge.job.identity import Identity
from lozenge.job.lifecycle.job_loop import JobLoop
from lozenge.job.lifecycle.job_parts import Happened, JobParts
from lozenge.job.lifecycle.job_state import TRANSITIONS, JobEvent, JobState
from lozenge.job.lifecycle.query_planner import PlannedStart
from lozenge.job.lifecycle.spec_watcher import SpecWatcher
from lozenge.job.lifecycle.status_reporter import JobStatusReporter
from lozenge.job.query.batch_limit import BatchLimit
from lozenge.job.settings import JobSettings
from lozenge.kafka.settings import KafkaSettings
from lozenge.metrics.app_metrics import JobMetrics
from lozenge.protocol.commit_metadata import CommitMetadata
from lozenge.protocol.coverage import Versions
from lozenge.protocol.job_spec import JobSpec
from tests.streams import AUTH

AT = datetime(2026, 3, 1, 12, tzinfo=UTC)
PARTITIONS = frozenset({0, 1})


class Above(Settings):
    limit: float = 100.0


def alert(partition: int, offset: int) -> DraftAlert:
    """An alert of the event at this offset."""
    return DraftAlert(Alert(reason="seen"), "card_1", f"{partition}/{offset}", AT, AT, None, (partition, offset))


class Log:
    """What is committed: offsets, metadata and records. A job that a newer one has fenced commits nothing."""

    def __init__(self) -> None:
        self.offsets, self.metadata = dict.fromkeys(PARTITIONS, 0), CommitMetadata()
        self.records: list[Record] = []
        self.fenced = False
        self.broken: Exception | None = None
        self.transactions = 0

    def commit(
        self, records: Sequence[Record], group: object, offsets: Mapping[int, int], metadata: CommitMetadata
    ) -> None:
        if self.broken is not None:
            raise self.broken
        if self.fenced:
            raise Fenced("committing: a newer job has claimed", hint="nothing to do")
        self.records += records
        self.offsets |= offsets
        self.metadata = metadata
        self.transactions += 1

    def send(self, records: Sequence[Record]) -> None:
        if self.broken is not None:
            raise self.broken
        self.records += records

    def flush(self) -> None:
        pass


class ScriptedClaims:
    """Claims on a `Log`."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self.claims: list[Collection[int] | None] = []
        self.committed_meanwhile: Mapping[int, int] = {}
        """What the replaced job commits just before it is fenced."""
        self.coverage = SimpleNamespace(newest=None)
        self.group = SimpleNamespace(read=self._read, glance=self._read, close=lambda: None)
        self.writers = SimpleNamespace(each=self._each, acknowledged=log)
        self._among: Collection[int] = PARTITIONS

    def position(self) -> StartPosition:
        return StartPosition(dict(self._log.offsets), self._log.metadata)

    def claim(
        self, generation: int, versions: Versions, among: Collection[int] | None = None, *, was_standby: bool = False
    ) -> Claim:
        self.claims.append(among)
        self._log.offsets |= self.committed_meanwhile
        self._among = PARTITIONS if among is None else among
        offsets = {p: self._log.offsets[p] for p in self._among}
        return Claim(offsets, self._log.metadata, among is not None, ResumeFilter())

    def published_ahead(self, start: StartPosition) -> ResumeFilter:
        return ResumeFilter()

    def _each(self) -> Iterator[tuple[Log, Collection[int]]]:
        yield self._log, self._among

    def _read(self, *_: object) -> StartPosition:
        return self.position()


class ScriptedOperator:
    """An operator that has nothing to count."""

    keys = 0

    def state_changes(self) -> list[Record]:
        return []

    def cut_over(self, kafka: object, buffered: Sequence[DraftAlert]) -> Sequence[DraftAlert]:
        return buffered


class ScriptedTables:
    """Reference tables: `newest` is the good version, `refused` are the alarms."""

    def __init__(self) -> None:
        self.newest, self.taken = "1", dict[str, str]()
        self.refused: list[str] = []

    def poll(self) -> bool:
        return self.taken != {"limits": self.newest}

    def take(self) -> dict[str, str]:
        self.taken = {"limits": self.newest}
        return self.taken

    def alarms(self) -> list[str]:
        return self.refused

    def close(self) -> None:
        """It has no connection."""


class ScriptedPlanner:
    """Plans queries at once; `adopted` are the operators whose state the next query got."""

    policy = "keep"

    def __init__(self) -> None:
        self.tables = ScriptedTables()
        self.builder = SimpleNamespace(
            events=SimpleNamespace(excluded=[]), tables=self.tables, versions=Versions("digest")
        )
        self.checkpoint = SimpleNamespace(id="c0")
        self.limit: BatchLimit | None = BatchLimit(100)
        self.adopted: list[object] = []
        self.config: EffectiveConfig | None = None
        self.planned = 0

    def configure(self, config: EffectiveConfig) -> None:
        self.config = config
        self.builder.versions = Versions(config.settings.digest, self.tables.take())

    def check(self, settings: Settings) -> None:
        assert isinstance(settings, Above)
        if settings.limit < 0:
            raise DetectorError("planning one: detect() raised ValueError: no limit is negative", hint="set another")

    def newest(self, offsets: int) -> dict[int, tuple[int, int]]:
        return dict.fromkeys(PARTITIONS, (0, offsets))

    def standby(self, claims: ScriptedClaims) -> PlannedStart:
        return self._plan(claims.position(), None)

    def live(self, position: StartPosition, previous: object, *, replaces: bool = False) -> PlannedStart:
        return self._plan(position, previous)

    def _plan(self, position: StartPosition, previous: object) -> PlannedStart:
        self.adopted.append(previous)
        self.planned += 1
        self.checkpoint.id = f"c{self.planned}"
        operator: Any = ScriptedOperator()
        return PlannedStart(position, operator, dict(position.offsets))


class ScriptedDriver:
    """A query that follows the script; `plan` is that of the query that runs."""

    def __init__(self, *, standby: bool = True) -> None:
        self.capabilities = Capabilities(standby=standby, fenced=standby, limited=standby)
        self.warm, self.at_boundary, self.warmed_up = False, True, False
        self.plan: QueryPlan | None = None
        self.events: list[QueryEvent] = []
        self.late: list[QueryEvent] = []
        """What comes of a query that was stopped."""

    def warm_up(self, ranges: object, stopped: Callable[[], bool]) -> None:
        self.warmed_up = True

    def start(self, plan: QueryPlan) -> None:
        assert self.plan is None, "one query at a time"
        self.plan = plan

    def poll(self, seconds: float) -> Iterator[QueryEvent]:
        assert self.plan is not None
        while self.events:
            yield self.events.pop(0)

    def stop(self) -> None:
        self.plan = None

    def rest(self) -> Iterator[QueryEvent]:
        yield from self.late

    def close(self) -> None:
        self.plan = None


class ScriptedAssignment:
    """What a group assigns."""

    def __init__(self) -> None:
        self.partitions: frozenset[int] = frozenset()
        self.claimed: frozenset[int] = frozenset()
        self.exclusive, self._member = False, False

    def assigned(self) -> frozenset[int]:
        self.exclusive, self._member = False, True
        return self.partitions

    @property
    def changed(self) -> bool:
        return self._member and self.partitions != self.claimed

    def leave(self) -> None:
        self._member, self.claimed = False, frozenset()


class ScriptedRecovery:
    """Recovers from everything, unless it has an error to raise."""

    def __init__(self) -> None:
        self.raises: Exception | None = None
        self.ranges: list[Mapping[int, tuple[int, int]]] = []

    def after(self, error: Exception, batch: int, ranges: Mapping[int, tuple[int, int]], limit: object) -> None:
        self.ranges.append(ranges)
        if self.raises is not None:
            raise self.raises


class ScriptedJob(JobLoop):
    """A job in `folder`; `trace` has each transition that it took."""

    def __init__(
        self, folder: Path, *, kind: str = "rule", standby_driver: bool = True, log: Log | None = None, **spec: Any
    ) -> None:
        self.log = log or Log()
        self.folder, self.trace = folder, list[tuple[JobState, JobEvent, JobState]]()
        self.driver, self.planner = ScriptedDriver(standby=standby_driver), ScriptedPlanner()
        self.claims, self.assignment, self.recovery = ScriptedClaims(self.log), ScriptedAssignment(), ScriptedRecovery()
        settings, topics = JobSettings(folder=folder, release=folder.name), Topics(partitions=len(PARTITIONS))
        windows = {"lateness": "10m", "window": "1m"} if kind == "aggregate" else {}
        manifest = Manifest.model_validate({"kind": kind, "owner": "tests", "title": "A test", **windows})
        detect: Any = None  # the planner here does not call it
        detector = Detector(detect, settings=Above)
        loaded = LoadedDetector("one", "1.0.0", detector, manifest, folder, AUTH)
        self.write_spec(**spec)
        reporter = JobStatusReporter(folder)
        parts: dict[str, Any] = {
            "kafka": KafkaSettings(bootstrap="127.0.0.1:1", partitions=len(PARTITIONS)),
            "identity": Identity.of(loaded, settings, topics),
            "declaration": manifest,
            "specs": SpecWatcher(loaded, JobSpecFile(settings), reporter),
            "claims": self.claims,
            "planner": self.planner,
            "driver": self.driver,
            "assignment": self.assignment,
            "backfill": SimpleNamespace(start=lambda: None, stop=lambda: None),
            "recovery": self.recovery,
            "reporter": reporter,
            "metrics": JobMetrics("one"),
        }
        super().__init__(JobParts(**parts))

    def write_spec(self, **spec: Any) -> None:
        """Gives the job a spec."""
        JobSpec(**spec).write(self.folder)

    def begin(self) -> "ScriptedJob":
        """Begins, as `run` does."""
        self.handle(Happened(JobEvent.BEGUN))
        return self

    def plan_batch(self, number: int, *ends: int) -> BatchPlanned:
        """Spark plans a batch up to the offsets `ends` of each partition, and the job decides on it."""
        planned = BatchPlanned(number, dict(enumerate(ends)))
        self.driver.events.append(planned)
        self.advance()
        return planned

    def end_batch(self, number: int, *ends: int, alerts: Sequence[DraftAlert] = ()) -> BatchProcessed:
        """The batch is processed, and the job takes its result."""
        processed = BatchProcessed(number, dict(enumerate(ends)), BatchResult(alerts), 0.0)
        self.driver.events.append(processed)
        self.advance()
        return processed

    def batch(self, number: int, *ends: int, alerts: Sequence[DraftAlert] = ()) -> BatchProcessed:
        """A whole batch."""
        self.plan_batch(number, *ends)
        return self.end_batch(number, *ends, alerts=alerts)

    def _follow(self, happened: Happened) -> Happened | None:
        before = self.state
        following = super()._follow(happened)
        if (before, happened.event) in TRANSITIONS:
            self.trace.append((before, happened.event, self.state))
        return following
