"""Latency is measured from the moment at which an event was meant to go; output that is not exactly once is void."""

import pytest

from tests.bench.harness.consumer import Arrival
from tests.bench.harness.hop import expected, measured
from tests.bench.harness.producer import Segment, Sent
from tests.bench.harness.workload import Task

SEGMENT = Segment(first=100, end=110, rate=10.0)
SENT = Sent(SEGMENT, began_ns=5_000_000_000, delivered=10, late_p99_ms=0.0)
ALL = set(range(100, 110))


def arrivals(numbers: list[int], after_ms: int = 7) -> list[Arrival]:
    return [Arrival(SENT.meant_ns(n) + after_ms * 1_000_000, 0, str(n).encode()) for n in numbers]


def test_latency_counts_from_the_intended_moment_and_the_first_fifth_is_dropped() -> None:
    slow, usual = arrivals([100, 101], after_ms=900), arrivals(list(range(102, 110)))
    values, void, spread = measured([*slow, *usual], SENT, ALL, int)
    assert (values, void) == ({"p50": 7.0, "p99": 7.0}, "")
    assert max(spread) == 7.0


@pytest.mark.parametrize(
    ("numbers", "why"),
    [
        ([*range(100, 109)], "1 missing"),
        ([*range(100, 110), 104], "1 emitted twice"),
        ([*range(100, 111)], "1 unexpected"),
    ],
)
def test_what_does_not_come_out_exactly_once_is_void(numbers: list[int], why: str) -> None:
    assert measured(arrivals(numbers), SENT, ALL, int)[1] == why


def test_what_the_broker_did_not_take_is_void_too() -> None:
    sent = Sent(SEGMENT, SENT.began_ns, delivered=9, late_p99_ms=0.0)
    assert measured(arrivals([*ALL]), sent, ALL, int)[1] == "1 not delivered"


def test_only_events_that_raise_alerts_are_expected_except_of_an_echo() -> None:
    assert expected(SEGMENT, Task("rule", every=5)) == {100, 105}
    assert expected(SEGMENT, Task("rule", every=5), echoes=True) == ALL
