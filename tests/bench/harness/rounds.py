"""All systems of a row in turn, round after round: A B C A B C ..., so that what changes with time hits all alike."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from lozenge.errors import LozengeError
from lozenge.kafka.settings import KafkaSettings
from tests.bench.harness.machine import PATIENCE_SECONDS, Watch, await_quiet
from tests.bench.harness.row import Cell, Plan, Row, Visit
from tests.bench.harness.running import Dead
from tests.bench.harness.statistics import Ratio, ratio
from tests.bench.harness.system import Start, System, Unavailable


class Disturbed(Exception):
    """Other work runs on the machine, so nothing is measured."""


@dataclass
class Outcome:
    """What becomes of a row; what was measured stays in it if it ends early.

    `absent` are the systems that could not run at all, with the reason. What was measured while other work ran counts
    only if that was wanted (`anyway`).
    """

    row: Row
    plan: Plan
    systems: Sequence[System]
    anyway: bool
    cells: list[Cell] = field(default_factory=list)
    absent: dict[str, str] = field(default_factory=dict)

    @property
    def seconds(self) -> float:
        """How long each rate is measured."""
        return self.plan.seconds(len(self.systems))

    @property
    def points(self) -> list[str]:
        """Where it was measured, in the order of the measurement."""
        return list(dict.fromkeys(cell.point for cell in self.cells if cell.values))

    def sound(self, system: str, point: str) -> list[Cell]:
        """The measurements that count."""
        those = [cell for cell in self.cells if (cell.system, cell.point) == (system, point) and not cell.void]
        return [cell for cell in those if self.anyway or not cell.disturbed]

    def values(self, system: str, point: str, measure: str) -> dict[int, float]:
        """By round."""
        return {c.round: c.values[measure] for c in self.sound(system, point) if measure in c.values}

    def ratios(self, point: str, measure: str) -> Iterator[tuple[System, System, Ratio]]:
        """(ours, other, ratio) of all pairs that were measured in the same rounds."""
        for ours in self.systems:
            for other in self.systems:
                if ours.role == "ours" and other.role != "ours":
                    mine, theirs = (self.values(s.name, point, measure) for s in (ours, other))
                    if found := ratio(mine, theirs):
                        yield ours, other, found


def run(outcome: Outcome, kafka: KafkaSettings, folder: Path, on_cell: Callable[[Cell], None]) -> None:
    """Measures the row. Raises Disturbed unless the machine is quiet before each visit, or that does not matter."""
    row, plan, anyway = outcome.row, outcome.plan, outcome.anyway
    task, watch = row.task_of(plan), Watch()
    row.method.prepare(kafka, task, plan)
    for number in range(1, plan.rounds + 1):
        for system in outcome.systems:
            if system.name in outcome.absent:
                continue
            if not anyway and (why := await_quiet(watch, PATIENCE_SECONDS)):
                raise Disturbed(why)
            name = f"bench_{time.time_ns():x}"
            backlog = plan.events if row.method.shape == "backlog" else 0
            start = Start(kafka, task, name, folder / f"{row.name}-{number}-{name}", backlog)
            visit = Visit(row, system, number, start, plan, outcome.seconds, watch)
            try:
                for cell in row.method.measure(visit):
                    outcome.cells.append(cell)
                    on_cell(cell)
            except (Unavailable, LozengeError) as error:
                outcome.absent[system.name] = str(error)
            except Dead as error:
                outcome.cells.append(Cell(system.name, number, "", {}, str(error)))
                on_cell(outcome.cells[-1])
