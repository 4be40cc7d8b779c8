"""The detectors of a campaign raise what the oracle expects of them: what differs later was done by a fault."""

import json
from datetime import UTC, datetime

import pytest

from lozenge.testing import detector_of, run
from lozenge_deploy.releases.lint.folder import require_sound
from tests.faults import oracle
from tests.faults.building import OWN
from tests.faults.plan import JOBS
from tests.faults.records import record

pytestmark = pytest.mark.integration

RECORDS, CARDS, PER_SECOND = 36_000, 20, 30
BEGAN = int(datetime(2026, 3, 1, 12, tzinfo=UTC).timestamp() * 1_000_000)


def payments() -> list[oracle.Payment]:
    """The payments of the first few cards in twenty minutes of a campaign."""
    found = []
    for number in range(RECORDS):
        at = BEGAN + number * 1_000_000 // PER_SECOND
        raw = record(1, number, at)
        payment = oracle.payment((0, number), raw.value, at // 1000)
        if payment is not None and int(json.loads(raw.value)["pan"][1:]) < CARDS:
            found.append(payment)
    return found


@pytest.mark.parametrize("name", JOBS)
def test_a_detector_can_be_deployed(name: str) -> None:
    assert not require_sound(OWN / name).warnings


@pytest.mark.parametrize("name", JOBS)
def test_a_detector_raises_what_the_oracle_expects(name: str) -> None:
    given = payments()
    expected = oracle.alerts(given)[name]
    assert len(expected) > 2
    raised = run(
        detector_of(str(OWN / name / f"{name}.py")),
        [
            {
                "event_id": payment.event_id,
                "event_time": payment.at,
                "card_id": payment.card_id,
                "amount": payment.amount,
                "auth_result": "declined" if payment.declined else "approved",
            }
            for payment in given
        ],
        batches=500,
    )
    found = sorted((alert.alert_id, alert.evidence) for alert in raised)
    assert found == sorted((alert.alert_id, alert.evidence) for alert in expected)
