"""A fold over Arrow batches keeps, transfers and writes its state; its alerts do not depend on the batches."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import count
from typing import Any, cast

import pytest

from lozenge import Alert, Event, Settings, State, Timer, fold
from lozenge.contracts.partitioner import partition_of
from lozenge.detector.fold import Failure, Fold, Raised
from lozenge.errors import DetectorError
from lozenge.job.batch_result import BatchResult, joined
from lozenge.job.operators.fold_operator import FoldOperator
from lozenge.kafka.compacted_topic import Stored
from lozenge.kafka.settings import KafkaSettings
from lozenge.streams.definition import StreamDefinition
from lozenge.testing import run_fold
from lozenge.testing.events import PartialEvent
from tests.fold_batches import batch
from tests.merged_streams import BY_CARD
from tests.streams import AUTH

PARTITIONS = range(4)
NO_KAFKA = cast(KafkaSettings, None)  # an operator with restored state reads nothing at a cut-over
STREAM: list[PartialEvent] = [{"card_id": f"card-{n % 5}", "amount": 10 + n % 4} for n in range(60)]
TWO_STREAMS: list[PartialEvent] = [
    {"stream": "sign_in", "card_id": each["card_id"]} if n % 3 == 1 else {"stream": "auth", **each}
    for n, each in enumerate(STREAM)
]
INPUTS = pytest.mark.parametrize("given", [(STREAM, AUTH), (TWO_STREAMS, BY_CARD)], ids=["one stream", "two streams"])


class Count(State):
    count: int = 0


def third(state: Count, event: Event, settings: Settings) -> Iterator[Alert | Timer]:
    state.count += 1
    if event.amount == 13:
        raise ValueError("unlucky")
    yield Timer(event.event_time + timedelta(seconds=30))
    if state.count % 3 == 0:
        yield Alert(reason=f"event {state.count}", values={"card": event.card_id})


def late_third(state: Count, at: datetime, settings: Settings) -> Iterator[Alert]:
    state.count += 1
    if state.count % 7 == 0:
        raise ValueError("late and unlucky")
    yield Alert(reason=f"timer {state.count}")


THIRDS: Fold[Count] = fold(
    cast(Any, None), by="card_id", state=Count, step=third, on_timer=late_third, expires=timedelta(days=1)
)


def operator() -> FoldOperator:
    return FoldOperator(THIRDS, Settings(), "card_id", "lozenge.state.test.v1", PARTITIONS)


def stored(operator: FoldOperator, state: dict[tuple[int, bytes], bytes]) -> None:
    """Applies the operator's state changes, as the compacted topic does."""
    for record in operator.state_changes():
        position = (record.partition, record.key or b"")
        if record.value is None:
            state.pop(position, None)
        else:
            state[position] = record.value


def restored(state: dict[tuple[int, bytes], bytes]) -> FoldOperator:
    new = operator()
    new.load(Stored(partition, key, value) for (partition, key), value in state.items())
    return new


def summary(result: BatchResult) -> tuple[list[tuple[str, str, str]], list[tuple[int, int]], list[str]]:
    return (
        sorted((draft.entity, draft.dedup_key, draft.alert.reason) for draft in result.alerts),
        sorted(failed.position for failed in result.failed_records),
        sorted(failure.cause for failure in result.failures_without_record),
    )


@INPUTS
def test_the_results_are_those_of_the_reference_fold(given: tuple[list[PartialEvent], StreamDefinition]) -> None:
    outcomes = run_fold(THIRDS, Settings(), given[0], "card", given[1])
    raised = [outcome for outcome in outcomes if isinstance(outcome, Raised)]
    failed = [outcome for outcome in outcomes if isinstance(outcome, Failure)]
    result = operator().process(batch(*given))
    assert sorted(draft.alert.reason for draft in result.alerts) == sorted(one.alert.reason for one in raised)
    assert len(result.failed_records) == sum(one.event is not None for one in failed) > 0
    assert len(result.failures_without_record) == sum(one.event is None for one in failed) > 0


@INPUTS
@pytest.mark.parametrize("size", [1, 7, 59])
def test_the_results_do_not_depend_on_the_batches(
    size: int, given: tuple[list[PartialEvent], StreamDefinition]
) -> None:
    whole = batch(*given).sort_by([("_input_offset", "ascending")])
    divided = operator()
    parts = [divided.process(whole.slice(start, size)) for start in range(0, whole.num_rows, size)]
    assert summary(joined(parts, [])) == summary(operator().process(whole))


@INPUTS
@pytest.mark.parametrize("at", [1, 30, 59])
def test_a_restart_resumes_with_the_written_state(at: int, given: tuple[list[PartialEvent], StreamDefinition]) -> None:
    whole = batch(*given).sort_by([("_input_offset", "ascending")])
    first, state = operator(), dict[tuple[int, bytes], bytes]()
    before = first.process(whole.slice(0, at))
    stored(first, state)
    second = restored(state)
    assert second.keys == first.keys > 0
    assert summary(joined([before, second.process(whole.slice(at))], [])) == summary(operator().process(whole))


def test_changes_are_written_once_and_only_for_changed_keys() -> None:
    one = operator()
    one.process(batch([{"card_id": "a"}, {"card_id": "b"}]))
    assert len(one.state_changes()) == 2
    assert one.state_changes() == []
    one.process(batch([{"card_id": "a", "event_id": "another"}]))
    assert len(one.state_changes()) == 1


def test_state_changes_are_in_the_partition_of_their_events() -> None:
    one = operator()
    one.process(whole := batch(STREAM))
    assert {r.partition for r in one.state_changes()} == set(whole.column("_input_partition").to_pylist())


def test_an_expired_key_is_deleted() -> None:
    one, state = operator(), dict[tuple[int, bytes], bytes]()
    partition = partition_of(b"a", len(PARTITIONS))
    neighbour = next(name for n in count() if partition_of((name := f"b{n}").encode(), len(PARTITIONS)) == partition)
    one.process(batch([{"card_id": "a"}]))
    stored(one, state)
    [expired] = state
    one.process(batch([{"card_id": neighbour, "event_id": "later", "at": "5d"}]))
    stored(one, state)
    assert len(state) == one.keys == 1
    assert expired not in state


def test_an_operator_adopts_the_state_of_the_replaced_one() -> None:
    whole = batch(STREAM).sort_by([("_input_offset", "ascending")])
    first, second = operator(), operator()
    before = first.process(whole.slice(0, 30))
    assert second.adopt_state(first) == first.keys
    assert summary(joined([before, second.process(whole.slice(30))], [])) == summary(operator().process(whole))


def test_a_cut_over_emits_all_buffered_alerts_and_writes_every_change_since() -> None:
    """The replaced job may have stored keys that this operator has dropped."""
    state: dict[tuple[int, bytes], bytes] = {}
    live = operator()
    live.process(batch([{"card_id": "a"}]))
    stored(live, state)
    standby = restored(state)
    result = standby.process(batch([{"card_id": "a", "event_id": f"more-{n}", "at": f"{n}s"} for n in range(3)]))
    assert result.alerts
    assert standby.cut_over(NO_KAFKA, result.alerts) == result.alerts
    stored(standby, state)
    assert restored(state).keys == standby.keys


def test_a_fold_must_be_grouped_by_the_key_of_its_detector() -> None:
    with pytest.raises(DetectorError, match="lacks the detector's key account_id"):
        FoldOperator(THIRDS, Settings(), "account_id", "lozenge.state.test.v1", PARTITIONS)
