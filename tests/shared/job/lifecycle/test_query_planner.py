"""Where a query begins and with which state, on a real checkpoint folder; nothing is planned by Spark."""

from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from lozenge.contracts.topics import Topics
from lozenge.detector.definition import Settings
from lozenge.detector.manifest import Manifest
from lozenge.detector.tables.reference_tables import ReferenceTables
from lozenge.job.commit.claim import StartPosition
from lozenge.job.effective_config import EffectiveConfig
from lozenge.job.lifecycle import query_planner
from lozenge.job.lifecycle.query_planner import SNAPSHOT_TRIES, QueryPlanner
from lozenge.protocol.commit_metadata import CommitMetadata
from lozenge.protocol.coverage import Versions
from lozenge.spark.checkpoint import Checkpoint

HERE = {0: 50, 1: 60}
REWOUND = {0: 20, 1: 30}


class Operators:
    """Makes operators that only remember where they begin and whose state they got."""

    settings: Any = None

    def __init__(self) -> None:
        self.begins: list[Mapping[int, int]] = []
        self.tables = ReferenceTables({}, Path())
        self.versions = Versions("digest")
        self.limits: list[int | None] = []
        self.states: list[object] = []

    def operator(self, offsets: Mapping[int, int], most: int | None, partitions: int) -> Any:
        self.begins.append(offsets)
        self.limits.append(most)
        return SimpleNamespace(restore=lambda kafka: self._took("stored"), adopt_state=self._took)

    def _took(self, state: object) -> int:
        self.states.append(state)
        return 1


class Claims:
    """The group's position, which moves with each look at it that is planned in `moves`."""

    def __init__(self, *moves: Mapping[int, int]) -> None:
        self._moves = list(moves)
        self.group = SimpleNamespace(read=self.position)

    def position(self) -> StartPosition:
        offsets = self._moves.pop(0) if self._moves else HERE
        return StartPosition(offsets, CommitMetadata(1))


@pytest.fixture(autouse=True)
def _topic(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(query_planner, "bounds", lambda *_: {0: (5, 100), 1: (7, 9)})
    monkeypatch.setattr(query_planner, "rewound", lambda *_: REWOUND)


def planner_of(
    kind: str, folder: Path, policy: Any = "keep", *, limited: bool = True
) -> tuple[QueryPlanner, Operators]:
    windows = {"lateness": "10m", "window": "1m"} if kind == "aggregate" else {}
    manifest = Manifest.model_validate({"kind": kind, "owner": "tests", "title": "A test", **windows})
    kafka: Any = SimpleNamespace(topics=Topics(partitions=2))
    identity: Any = SimpleNamespace(input="events")
    operators: Any = Operators()
    checkpoint = Checkpoint(folder / "checkpoint")
    return QueryPlanner(kafka, identity, manifest, operators, checkpoint, policy, limited=limited), operators


def planned_batches(checkpoint: Checkpoint, *ends: Mapping[int, int]) -> None:
    """Spark has planned batches up to these offsets."""
    checkpoint.renew()
    (checkpoint.folder / "offsets").mkdir()
    for number, end in enumerate(ends):
        text = ", ".join(f'"{partition}": {offset}' for partition, offset in end.items())
        (checkpoint.folder / "offsets" / str(number)).write_text(f'v1\n{{}}\n{{"events": {{{text}}}}}')


@pytest.mark.parametrize("kind", ["rule", "stateful"])
def test_a_query_without_counts_begins_at_the_committed_offsets_with_an_empty_checkpoint(
    kind: str, tmp_path: Path
) -> None:
    planner, operators = planner_of(kind, tmp_path)
    planned_batches(planner.checkpoint, {0: 90, 1: 90})
    before = planner.checkpoint.id
    planned = planner.live(StartPosition(HERE, CommitMetadata(1, before, 0)), None)
    assert (planned.begins, operators.states) == (HERE, ["stored"])
    assert planner.checkpoint.id != before
    assert planner.checkpoint.last_planned() == -1


def test_the_state_of_the_operator_before_is_taken_instead_of_the_stored_one(tmp_path: Path) -> None:
    planner, operators = planner_of("stateful", tmp_path)
    previous: Any = object()
    planner.live(StartPosition(HERE, CommitMetadata(1)), previous)
    assert operators.states == [previous]


def test_an_aggregate_resumes_from_its_checkpoint_if_that_was_the_last_to_commit(tmp_path: Path) -> None:
    """Spark may have ended a batch that the job has not committed: it is taken back."""
    planner, _ = planner_of("aggregate", tmp_path)
    planned_batches(planner.checkpoint, {0: 40, 1: 40}, HERE, {0: 70, 1: 70})
    last = CommitMetadata(1, planner.checkpoint.id, 1)
    assert planner.live(StartPosition(HERE, last), None).begins == HERE
    assert (planner.checkpoint.id, planner.checkpoint.last_planned()) == (last.checkpoint, 1)


@pytest.mark.parametrize("last", [CommitMetadata(2, "another", 1), CommitMetadata(2, "own", 7)])
def test_an_aggregate_counts_its_open_windows_again_if_another_checkpoint_has_committed(
    last: CommitMetadata, tmp_path: Path
) -> None:
    planner, _ = planner_of("aggregate", tmp_path)
    planned_batches(planner.checkpoint, {0: 40, 1: 40})
    if last.checkpoint == "own":  # a batch that it has never planned
        last = CommitMetadata(2, planner.checkpoint.id, 7)
    assert planner.live(StartPosition(HERE, last), None).begins == REWOUND


def test_an_aggregate_that_nobody_has_run_counts_nothing_again(tmp_path: Path) -> None:
    planner, _ = planner_of("aggregate", tmp_path)
    assert planner.live(StartPosition(HERE, CommitMetadata()), None).begins == HERE


@pytest.mark.parametrize(("replaces", "begins"), [(True, HERE), (False, REWOUND)])
def test_a_fresh_aggregate_discards_counts_only_where_it_replaces_a_release(
    replaces: bool, begins: Mapping[int, int], tmp_path: Path
) -> None:
    planner, _ = planner_of("aggregate", tmp_path, "fresh")
    last = StartPosition(HERE, CommitMetadata(1, "another", 3))
    assert planner.live(last, None, replaces=replaces).begins == begins


@pytest.mark.parametrize(
    ("policy", "begins", "states"),
    [("keep", HERE, ["stored"]), ("fresh", HERE, []), ("rebuild", {0: 5, 1: 7}, [])],
)
def test_a_standby_gets_the_state_that_its_policy_says(
    policy: str, begins: Mapping[int, int], states: list[str], tmp_path: Path
) -> None:
    planner, operators = planner_of("stateful", tmp_path, policy)
    claims: Any = Claims()
    planned = planner.standby(claims)
    assert (planned.begins, planned.position.offsets, operators.states) == (begins, HERE, states)


def test_a_standby_reads_state_again_until_no_transaction_came_between(tmp_path: Path) -> None:
    planner, operators = planner_of("stateful", tmp_path)
    moved: Any = Claims({0: 1, 1: 1}, {0: 2, 1: 1}, {0: 3, 1: 1}, {0: 3, 1: 1})
    assert planner.standby(moved).position.offsets == {0: 3, 1: 1}
    assert operators.states == ["stored", "stored"]


def test_a_standby_of_a_live_job_that_never_rests_starts_all_the_same(tmp_path: Path) -> None:
    planner, operators = planner_of("stateful", tmp_path)
    moving: Any = Claims(*({0: n, 1: n} for n in range(2 * SNAPSHOT_TRIES)))
    planner.standby(moving)
    assert len(operators.states) == SNAPSHOT_TRIES


def test_a_new_configuration_forgets_that_a_batch_was_too_large(tmp_path: Path) -> None:
    planner, operators = planner_of("rule", tmp_path)
    config = EffectiveConfig(Settings(), timedelta(seconds=1), 100)
    planner.configure(config)
    assert planner.limit is not None
    planner.limit.shrink()
    planner.configure(config)
    planner.live(StartPosition(HERE, CommitMetadata()), None)
    planner.configure(EffectiveConfig(Settings(), timedelta(seconds=2), 80))
    planner.live(StartPosition(HERE, CommitMetadata()), None)
    assert operators.limits == [50, 80]


def test_a_source_that_takes_no_limit_gets_none(tmp_path: Path) -> None:
    planner, operators = planner_of("rule", tmp_path, limited=False)
    planner.configure(EffectiveConfig(Settings(), timedelta(seconds=60), 100))
    planner.live(StartPosition(HERE, CommitMetadata()), None)
    assert operators.limits == [None]


def test_the_newest_offsets_end_where_the_topic_begins(tmp_path: Path) -> None:
    planner, _ = planner_of("rule", tmp_path)
    assert planner.newest(10) == {0: (90, 100), 1: (7, 9)}
