"""What a row compares: a system is one process that reads the topic of events and writes a topic of alerts.

A file in tests/bench/systems adds one or several: it assigns them to `SYSTEMS`. They take part in every row that asks
for what they can do.
"""

import importlib
import json
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import psutil

from lozenge.contracts.schemas import newest
from lozenge.kafka.settings import KafkaSettings
from lozenge_upstream.settings import DEMO_TOKEN_KEY
from tests.bench.harness.platform import TOPICS
from tests.bench.harness.workload import LIMIT, Kind, Task
from tests.streams import AUTH, RAW_JSON

FOLDER = Path(__file__).parents[1] / "systems"
BACKLOG_LINGER_MS = 5
"""What is written over a backlog may wait so long for company, as our own writers let it; else nothing waits."""
IN_TRANSACTIONS = "acks=all, linger 5 ms, in transactions"
"""How ours writes batch by batch, whatever waits."""
WEBHOOK_SECRET = "whsec_" + b64encode(b"of the benchmark, for all of it").decode()
Role = Literal["ours", "peer", "limit"]
Shape = Literal["hop", "backlog", "life", "update", "diamond"]
"""What is measured of it: latency at a rate, throughput while it drains what waits, how it starts and rests, or how
late alerts come while it is updated.

Of a diamond, which is three such processes in a chain, it is the latency from the raw record to the webhook.
"""
HOP: frozenset[Shape] = frozenset({"hop"})
BACKLOG: frozenset[Shape] = frozenset({"backlog"})
LIFE: frozenset[Shape] = frozenset({"life"})
DIAMOND: frozenset[Shape] = frozenset({"diamond"})
UPDATE: frozenset[Shape] = frozenset({"update"})
OF_A_JOB: frozenset[Shape] = HOP | BACKLOG | LIFE | UPDATE
JOBS: tuple[Kind, ...] = ("rule", "aggregate", "fold")
ALL_KINDS: frozenset[Kind] = frozenset(JOBS)
"""Of a job: what comes before it is no kind of detector, and has systems of its own."""
NORMALISE: frozenset[Kind] = frozenset({"normalise"})


class Unavailable(Exception):
    """The system cannot run here; says why."""


@dataclass(frozen=True, slots=True)
class Guarantees:
    """Under which conditions a system works; a row shows them, so that nobody compares unlike with like.

    `commit` says when offsets are committed, `reads` the isolation of its own consumer. The measurement always reads
    what is committed.
    """

    processing: Literal["exactly once", "at least once", "none"]
    commit: str
    reads: Literal["read committed", "read uncommitted"] = "read committed"
    writes: str = f"acks=all, linger 0; over a backlog {BACKLOG_LINGER_MS} ms"
    state: str = ""


@dataclass(frozen=True, slots=True)
class Start:
    """What a system is started with: `name` is new for every start, and so is its output topic.

    `backlog` is the number of events that wait; 0 if they are yet to come. A diamond sends to the URL `webhook`.
    """

    kafka: KafkaSettings
    task: Task
    name: str
    folder: Path
    backlog: int = 0
    webhook: str = ""

    @property
    def input(self) -> str:
        """The topic of events."""
        return TOPICS.events("auth")

    @property
    def output(self) -> str:
        """The topic of alerts."""
        return TOPICS.detector(self.name).alerts

    def file(self) -> Path:
        """The same for every peer's program, as JSON: all of this, and the Avro schemas with the ids to write."""
        order = {
            "bootstrap": self.kafka.bootstrap,
            "raw": TOPICS.prefixed(RAW_JSON),
            "input": self.input,
            "output": self.output,
            "token_key": DEMO_TOKEN_KEY,
            "webhook": self.webhook,
            "webhook_secret": WEBHOOK_SECRET,
            "name": self.name,
            "folder": str(self.folder),
            "kind": self.task.kind,
            "every": self.task.every,
            "linger_ms": BACKLOG_LINGER_MS if self.backlog else 0,
            "limit": str(LIMIT),
            "event_schema": AUTH.event_schema.definition,
            "event_schema_id": AUTH.event_schema.id,
            "alert_schema": newest("alert").definition,
            "alert_schema_id": newest("alert").id,
        }
        path = self.folder / "start.json"
        path.write_text(json.dumps(order))
        return path


@dataclass(frozen=True)
class HandOver:
    """How one process replaces another: the commands of one that is live at once and of a standby.

    The standby is asked to `take` over once it is `ready`, and is live when that returns. This may have to wait until
    the other, asked to stop, says that it has `ended`; its process may need longer.
    """

    live: Callable[[Start], Sequence[str]]
    standby: Callable[[Start], Sequence[str]]
    ready: Callable[[Start], bool]
    take: Callable[[Start], None]
    ended: Callable[[Start], bool] | None = None


@dataclass(frozen=True)
class System:
    """`command` gives the process to start, whose environment names the broker, and raises Unavailable.

    Without one there is no process, and the events themselves are what comes out. A limit that is no stream has a
    `probe` instead, which measures it on the events that wait in the topic. In rows of the shapes of its `core` it is
    measured unless others are requested, as is what a row's goals name; with all of them a row would take longer than
    its time. Without a `hand_over` an update ends it and starts it again. Latency is measured after
    `warm_up_seconds`. `hosts` gives processes that run already and work for it: what they cost counts as its own.
    """

    name: str
    role: Role
    guarantees: Guarantees
    command: Callable[[Start], Sequence[str]] | None = None
    kinds: frozenset[Kind] = ALL_KINDS
    shapes: frozenset[Shape] = OF_A_JOB
    probe: Callable[[Start], Mapping[str, float]] | None = None
    core: frozenset[Shape] = frozenset()
    hand_over: HandOver | None = None
    warm_up_seconds: float = 0.0
    hosts: Callable[[], Sequence[psutil.Process]] = tuple

    def fits(self, kind: Kind, shape: Shape) -> bool:
        """Whether it takes part in a row."""
        return kind in self.kinds and shape in self.shapes


def discovered() -> list[System]:
    """All systems of the folder: ours first, then peers, then limits, each in the order of their files."""
    found = [system for file in sorted(FOLDER.glob("*.py")) for system in _systems(file)]
    return sorted(found, key=lambda system: ("ours", "peer", "limit").index(system.role))


def _systems(file: Path) -> Sequence[System]:
    module = importlib.import_module(f"tests.bench.systems.{file.stem}")
    systems: Sequence[System] = getattr(module, "SYSTEMS", ())
    return systems
