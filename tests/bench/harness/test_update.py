"""How late an alert is counts from the moment at which its event was meant to go, whichever segment it was of."""

import pytest

from tests.bench.harness.producer import Segment, Sent
from tests.bench.harness.update import late_ms

SENT = [
    Sent(Segment(0, 10, rate=10.0), began_ns=0, delivered=10, late_p99_ms=0.0),
    Sent(Segment(10, 20, rate=10.0), began_ns=5_000_000_000, delivered=10, late_p99_ms=0.0),
]


@pytest.mark.parametrize(("number", "meant_ms"), [(0, 0), (9, 900), (10, 5_000), (19, 5_900)])
def test_it_counts_from_the_segment_of_its_event(number: int, meant_ms: int) -> None:
    assert late_ms(SENT, number, (meant_ms + 7) * 1_000_000) == 7.0
