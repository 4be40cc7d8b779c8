"""Dead letters of failures that no record causes."""

from lozenge.contracts.topics import Topics
from lozenge.errors import DetectError
from lozenge.job.batch_result import FailureWithoutRecord
from lozenge.job.commit.dead_letter_encoder import NO_OFFSET, of_failure
from lozenge.job.identity import Identity
from tests.streams import AUTH

TOPICS = Topics()

IDENTITY = Identity("card_velocity", "r1", live=True, key="card_id", topics=TOPICS, stream=AUTH)


def test_a_failure_without_a_record_keeps_its_key_its_state_and_the_reason() -> None:
    failure = FailureWithoutRecord("timer", "timer/12:00", 3, b"card_1", b'{"n": 4}', DetectError("the timer raised"))
    record = of_failure(IDENTITY, failure)
    assert (record.topic, record.partition) == (TOPICS.dead_letters("card_velocity"), 3)
    assert (record.key, record.value) == (b"card_1", b'{"n": 4}')
    headers = dict(record.headers)
    assert headers["__connect.errors.stage"] == b"timer"
    assert headers["__connect.errors.exception.message"] == b"the timer raised"
    assert headers["__connect.errors.topic"] == IDENTITY.state.encode()
    assert headers["__connect.errors.offset"] == str(NO_OFFSET).encode()
    assert headers["attempt"] == b"1"
