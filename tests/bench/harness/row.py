"""A row: one task, measured of every system that fits, and what the ratios of ours to others should be.

A file in tests/bench/rows adds one or several: it assigns them to `ROWS`.
"""

import importlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from lozenge.kafka.settings import KafkaSettings
from tests.bench.harness.machine import Load, Watch
from tests.bench.harness.system import Shape, Start, System
from tests.bench.harness.workload import Task

FOLDER = Path(__file__).parents[1] / "rows"
START_SECONDS = 20.0
"""What a start, a warm-up and an end take of a visit, about."""
LEAST_SECONDS, MOST_SECONDS = 10.0, 600.0


@dataclass(frozen=True, slots=True)
class Measure:
    """What is measured; `better` is the direction that is wanted."""

    name: str
    unit: str
    better: str = "lower"


@dataclass(frozen=True, slots=True)
class Goal:
    """What the ratio of ours to the system `against` should be: the `bar` is required, the `stretch` is hoped for."""

    measure: str
    against: str
    bar: float
    stretch: float


@dataclass(frozen=True, slots=True)
class Plan:
    """How much of it: `rounds` times every system, `seconds` at each of the `rates`, a backlog of `events`.

    Without `rates` they are the row's own. `rest_seconds` is how long a system is watched that has nothing to do.
    """

    rounds: int
    minutes: float
    rates: Sequence[int]
    events: int
    rest_seconds: float = 30.0

    def seconds(self, systems: int) -> float:
        """Of traffic at each rate, so that all rounds of so many systems take `minutes`; at least 10, at most 600."""
        visit = self.minutes * 60 / (self.rounds * systems)
        return min(MOST_SECONDS, max(LEAST_SECONDS, (visit - START_SECONDS) / len(self.rates)))


FULL = Plan(rounds=5, minutes=30, rates=(), events=1_000_000)
QUICK = Plan(rounds=1, minutes=1, rates=(300,), events=100_000, rest_seconds=10.0)


@dataclass(frozen=True, slots=True)
class Cell:
    """One measurement of one system at one `point` of a row (a rate, say) in one round.

    `void` says why it does not count, `disturbed` why it is not scored; either is "" if all is well.
    """

    system: str
    round: int
    point: str
    values: Mapping[str, float]
    void: str = ""
    disturbed: str = ""
    facts: Mapping[str, float] = field(default_factory=dict)
    curve: Sequence[float] = ()


@dataclass(frozen=True, slots=True)
class Visit:
    """One system in one round of a row: what a row's `measure` is given."""

    row: "Row"
    system: System
    round: int
    start: Start
    plan: Plan
    seconds: float
    watch: Watch

    @property
    def kafka(self) -> KafkaSettings:
        """The broker of all rounds."""
        return self.start.kafka

    def cell(self, point: str, values: Mapping[str, float], void: str, facts: Mapping[str, float], load: Load) -> Cell:
        """What was measured at a point under the load."""
        said = {**facts, "others_cores": round(load.others, 3), "steal_cores": round(load.steal, 3)}
        return Cell(self.system.name, self.round, point, values, void, load.disturbs, said)


def _nothing_waits(kafka: KafkaSettings, task: Task, plan: Plan) -> None:
    """Every visit begins with an empty topic."""


@dataclass(frozen=True)
class Method:
    """How rows of a shape are measured: `measure` gives the cells of one visit.

    `prepare` fills the topic before the first round. `seconds` is what a visit takes of a plan with so many systems,
    about.
    """

    shape: Shape
    measures: Sequence[Measure]
    measure: Callable[[Visit], Iterator[Cell]]
    seconds: Callable[[Plan, Task, int], float]
    prepare: Callable[[KafkaSettings, Task, Plan], None] = _nothing_waits


@dataclass(frozen=True)
class Row:
    """A task, and by which method it is measured.

    With `laps`, the cards are so many that the backlog goes that often over all of them. `rates` are events a second.
    Its backlog is `times` the plan's. What is not `quick` is no part of the rough table. With `partitions`
    it needs a platform with so many; else it runs on any. `ours` names the system that represents us where
    none of the core of its shape can do the task.
    """

    name: str
    title: str
    method: Method
    task: Task
    goals: Sequence[Goal] = ()
    laps: int = 0
    rates: Sequence[int] = (300, 1000, 5000)
    times: int = 1
    quick: bool = True
    partitions: int = 0
    ours: str = ""

    def plan_of(self, plan: Plan) -> Plan:
        """The plan at the size of the row."""
        return replace(plan, events=plan.events * self.times, rates=plan.rates or self.rates)

    def task_of(self, plan: Plan) -> Task:
        """The task at the size of the plan."""
        return replace(self.task, keys=max(1, plan.events // self.laps)) if self.laps else self.task

    def fits(self, system: System) -> bool:
        """Whether it can take part."""
        return system.fits(self.task.kind, self.method.shape)

    def needs(self, system: System) -> bool:
        """Whether it takes part unless others are requested: ours, and whatever the goals name."""
        named = system.name in {self.ours, *(goal.against for goal in self.goals)}
        return self.fits(system) and (named or self.method.shape in system.core)

    def minutes(self, plan: Plan, systems: Sequence[System]) -> float:
        """What the row takes, about; `plan` is at its size. Writing its backlog and a probe's seconds do not count."""
        visits = sum(not system.probe for system in systems)
        return plan.rounds * visits * self.method.seconds(plan, self.task_of(plan), len(systems)) / 60

    def goal(self, measure: str, against: str) -> Goal | None:
        """What is asked of a ratio, if anything is."""
        return next((g for g in self.goals if (g.measure, g.against) == (measure, against)), None)


def discovered() -> dict[str, Row]:
    """All rows of the folder by name."""
    modules = [importlib.import_module(f"tests.bench.rows.{file.stem}") for file in sorted(FOLDER.glob("*.py"))]
    return {row.name: row for module in modules for row in module.ROWS}
