"""A job that replaces another, or shares its partitions, on a real broker without Spark: killed at every step.

The rule and the fold of these tests are evaluated in Python. Aggregates, whose counts are Spark's, are in
`test_cut_over`.
"""

from pathlib import Path

import pytest

from lozenge.job.lifecycle.job_loop import JobLoop
from lozenge.kafka.settings import KafkaSettings
from tests.integration.job.cut_overs import (
    DiesAfterClaim,
    DiesAfterFirstTransaction,
    DiesBeforeClaim,
    a_detector,
    survives_poison_at_the_cut_over,
    survives_the_death_of_the_old_one,
    survives_the_kill_of_the_new_one,
)

pytestmark = pytest.mark.integration

KINDS = ["rule", "stateful"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dies", [DiesBeforeClaim, DiesAfterClaim, DiesAfterFirstTransaction])
def test_a_kill_at_any_step_of_a_cut_over_loses_and_doubles_nothing(
    dies: type[JobLoop], kind: str, kafka: KafkaSettings, tmp_path: Path
) -> None:
    survives_the_kill_of_the_new_one(dies, a_detector(kind, kafka, tmp_path), kafka, None, tmp_path)


@pytest.mark.parametrize("step", ["before its transaction", "inside its transaction", "after its transaction"])
@pytest.mark.parametrize("kind", KINDS)
def test_the_death_of_the_old_release_at_any_step_of_a_batch_loses_and_doubles_nothing(
    kind: str, step: str, kafka: KafkaSettings, tmp_path: Path
) -> None:
    survives_the_death_of_the_old_one(step, a_detector(kind, kafka, tmp_path), kafka, None, tmp_path)


@pytest.mark.parametrize("kind", KINDS)
def test_a_query_that_fails_between_claim_and_first_transaction_restarts_at_the_claimed_offsets(
    kind: str, kafka: KafkaSettings, tmp_path: Path
) -> None:
    survives_poison_at_the_cut_over(a_detector(kind, kafka, tmp_path), kafka, None, tmp_path)
