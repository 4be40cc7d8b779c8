"""Several instances of one detector: partitions change hands at exact offsets, also those of one that dies.

Their queries are Python. `lozenge scale` with Spark is in the tests of the agent.
"""

from pathlib import Path

import pytest

from lozenge import Detector
from lozenge.detector.loader import LoadedDetector
from lozenge.errors import Fenced
from lozenge.job.lifecycle.job_loop import JobLoop
from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.topic_reader import read_log
from lozenge.kafka.writers import PartitionWriters
from lozenge.protocol.coverage import CoverageSegment, gaps, intervals, overlaps
from lozenge.protocol.job_status import JobPhase
from tests.integration.harness import alerts, event, group_offsets, new_detector, send, wait_for
from tests.integration.job.traffic import CARDS, KINDS, Above, Job, Mortal, Traffic, await_each_once
from tests.merged_streams import BY_CARD


@pytest.fixture(params=["rule", "stateful"])
def loaded(request: pytest.FixtureRequest, kafka: KafkaSettings, tmp_path: Path) -> LoadedDetector:
    detect, declared = KINDS[request.param]
    return new_detector(kafka, Detector(detect, settings=Above), tmp_path, kind=request.param, **declared)


def share(job: Job) -> int:
    """How many partitions it processes."""
    return len(job.run.runner.parts.assignment.claimed)


def covered_once(kafka: KafkaSettings, loaded: LoadedDetector) -> None:
    topic = loaded.stream.events(kafka.topics)
    committed = {partition: offset for partition, (offset, _) in group_offsets(kafka, loaded.name, topic).items()}
    covered = intervals(read_log(kafka, kafka.topics.detector(loaded.name).coverage, CoverageSegment), committed)
    assert (gaps(covered), overlaps(covered)) == ([], [])


def test_partitions_are_handed_over_while_events_come(
    kafka: KafkaSettings, tmp_path: Path, loaded: LoadedDetector
) -> None:
    with Traffic(kafka, loaded) as traffic:
        one = Job(loaded, kafka, None, tmp_path / "r1", generation=1)
        one.wait(JobPhase.LIVE)
        one.order(generation=1, shared=True)
        wait_for(lambda: share(one) == 4, "the first one processes all")
        two = Job(loaded, kafka, None, tmp_path / "r2", generation=2, shared=True)
        wait_for(lambda: share(one) == share(two) == 2 and two.report.records > 0, "both process their half")
        two.run.stop()
        wait_for(lambda: share(one) == 4, "the first one processes all again")
        one.order(generation=1)
        wait_for(lambda: one.run.runner.parts.assignment.exclusive, "it shares with nobody")
        sent = traffic.end()
        await_each_once(kafka, loaded, loaded.declaration.kind, sent, one)
    covered_once(kafka, loaded)


def test_the_partitions_of_an_instance_that_died_inside_its_transaction_lose_and_repeat_nothing(
    kafka: KafkaSettings, tmp_path: Path, loaded: LoadedDetector
) -> None:
    with Traffic(kafka, loaded) as traffic:
        one = Job(loaded, kafka, None, tmp_path / "r1", generation=1, shared=True)
        two = Job(loaded, kafka, None, tmp_path / "r2", make=Mortal, generation=2, shared=True)
        wait_for(lambda: share(one) == share(two) == 2 and two.report.records > 0, "both process their half")
        assert isinstance(two.run.runner, Mortal)
        two.run.runner.dies = "inside its transaction"
        two.run.join()
        wait_for(lambda: share(one) == 4, "the survivor processes all")
        sent = traffic.end()
        await_each_once(kafka, loaded, loaded.declaration.kind, sent, one)
    covered_once(kafka, loaded)


def test_three_instances_of_a_fold_over_two_streams_and_the_death_of_one_lose_and_repeat_nothing(
    kafka: KafkaSettings, tmp_path: Path
) -> None:
    detect, declared = KINDS["stateful"]
    detector = Detector(detect, settings=Above)
    loaded = new_detector(kafka, detector, tmp_path, BY_CARD, kind="stateful", **declared)
    with Traffic(kafka, loaded) as traffic:
        jobs = [
            Job(loaded, kafka, None, tmp_path / f"r{n}", make=Mortal if n == 2 else JobLoop, generation=n, shared=True)
            for n in (1, 2, 3)
        ]
        wait_for(lambda: sorted(map(share, jobs)) == [1, 1, 2] and jobs[1].report.records > 0, "all three process")
        assert isinstance(jobs[1].run.runner, Mortal)
        jobs[1].run.runner.dies = "inside its transaction"
        jobs[1].run.join()
        wait_for(lambda: share(jobs[0]) == share(jobs[2]) == 2, "the survivors process all")
        sent = traffic.end()
        wait_for(lambda: len(alerts(kafka, loaded.name)) >= sent * CARDS, "all alerts")
        jobs[0].run.stop()
        await_each_once(kafka, loaded, loaded.declaration.kind, sent, jobs[2])
    covered_once(kafka, loaded)


def test_an_instance_whose_partition_was_taken_while_it_slept_publishes_nothing_more(
    kafka: KafkaSettings, tmp_path: Path
) -> None:
    loaded = new_detector(kafka, Detector(KINDS["rule"][0], settings=Above), tmp_path)
    zombie = Job(loaded, kafka, None, tmp_path / "r1", generation=1, shared=True)
    wait_for(lambda: share(zombie) == 4, "it processes all")
    PartitionWriters(kafka, loaded.name).fence({0, 1, 2, 3}, shared=True, before=True)
    before = group_offsets(kafka, loaded.name)
    send(kafka, [event(n, f"card_{n}", "150.00") for n in range(20)])
    zombie.run.join()
    assert isinstance(zombie.run.error, Fenced)
    assert {p: o for p, (o, _) in group_offsets(kafka, loaded.name).items()} == {p: o for p, (o, _) in before.items()}
