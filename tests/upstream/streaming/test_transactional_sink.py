"""A batch is one transaction; an error aborts it and says who refused it. The broker's part is an integration test."""

from typing import Any

import pytest

from lozenge.errors import BrokerUnavailable, Fenced
from lozenge.protocol.commit_metadata import CommitMetadata
from lozenge_upstream.streaming.transactional_sink import Sink

ENDS = {"AUTH-JSON": {"0": 7}}
METADATA = CommitMetadata(output_ahead=True)


class Producer:
    """Notes its calls; the call `failing` raises `error`."""

    name, bootstrap = "upstream-one", "kafka:9092"

    def __init__(self, failing: str = "", error: Exception | None = None) -> None:
        self.calls: list[str] = []
        self.arguments: dict[str, tuple[Any, ...]] = {}
        self.failing, self._error = failing, error

    def __getattr__(self, call: str) -> Any:
        def called(*arguments: Any) -> None:
            self.calls.append(call)
            self.arguments[call] = arguments
            if call == self.failing and self._error is not None:
                raise self._error

        return called


def sink_of(producer: Any) -> Sink:
    return Sink(producer)


def test_records_and_offsets_are_one_transaction() -> None:
    producer, rows = Producer(), object()
    sink = sink_of(producer)
    sink.commit(rows, ENDS, METADATA)  # type: ignore[arg-type]
    assert producer.calls == ["claim", "begin", "send", "send_offsets", "commit"]
    assert producer.arguments["send"] == (rows,)
    assert producer.arguments["send_offsets"] == (ENDS, METADATA)


def test_a_move_is_a_transaction_without_records() -> None:
    producer = Producer()
    sink_of(producer).move(ENDS, METADATA)
    assert producer.calls == ["claim", "begin", "send_offsets", "commit"]


@pytest.mark.parametrize("failing", ["begin", "send", "send_offsets", "commit"])
@pytest.mark.parametrize(
    ("error", "raised"),
    [
        (ValueError("org.apache.kafka.common.errors.ProducerFencedException: newer"), Fenced),
        (ValueError("org.apache.kafka.common.errors.InvalidProducerEpochException: older"), Fenced),
        (ValueError("org.apache.kafka.clients.consumer.CommitFailedException: rebalanced"), Fenced),
        (ValueError("org.apache.kafka.common.errors.TimeoutException: 60000 ms"), BrokerUnavailable),
        (ValueError("a task failed"), ValueError),
    ],
)
def test_an_error_aborts_the_transaction_and_nothing_follows(
    failing: str, error: Exception, raised: type[Exception]
) -> None:
    producer = Producer(failing, error)
    with pytest.raises(raised):
        sink_of(producer).commit(object(), ENDS, None)  # type: ignore[arg-type]
    assert producer.calls[-2:] == [failing, "abort"]


def test_an_error_says_what_was_done_and_for_whom() -> None:
    timeout = ValueError("org.apache.kafka.common.errors.TimeoutException")
    with pytest.raises(BrokerUnavailable, match="claiming a transaction of upstream-one: the broker at kafka:9092"):
        sink_of(Producer("claim", timeout))
    sink = sink_of(Producer("commit", ValueError("ProducerFencedException")))
    with pytest.raises(Fenced, match="committing a transaction of upstream-one: other instances own its partitions"):
        sink.move(ENDS, METADATA)


def test_an_abort_without_a_transaction_is_no_error() -> None:
    sink_of(Producer("abort", ValueError("no transaction"))).abort()


def test_a_close_closes_the_producer() -> None:
    producer = Producer()
    sink_of(producer).close()
    assert producer.calls[-1] == "close"
