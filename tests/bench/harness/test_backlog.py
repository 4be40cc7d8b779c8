"""Throughput is that of the second half, in events, by the events that raised alerts."""

from tests.bench.harness.backlog import Sample, throughput

RAISING = list(range(0, 1000, 5))


def test_a_steady_system_is_measured_over_its_second_half() -> None:
    """100 events a second, and half a core."""
    moments = [n / 100 for n in RAISING]
    samples = [Sample(t / 4, t / 8, 0) for t in range(45)]
    found = throughput(samples, moments, RAISING)
    assert 95 < found["events/s"] < 105
    assert 190 < found["events/s/core"] < 210


def test_the_batch_that_was_coming_out_at_the_half_is_not_measured() -> None:
    """Four batches of 250 events, one each second, each within a tenth of a second."""
    moments = [n // 250 + n % 250 / 2500 for n in RAISING]
    samples = [Sample(t / 4, t / 4, 0) for t in range(20)]
    found = throughput(samples, moments, RAISING)
    assert 220 < found["events/s"] < 500


def test_alerts_in_two_bursts_are_measured_from_the_end_of_the_first() -> None:
    """An aggregate that alerts on its cards after 500 and after 1000 events, 100 events a second."""
    raising = [*range(400, 500), *range(900, 1000)]
    samples = [Sample(t / 4, t / 4, 0) for t in range(45)]
    found = throughput(samples, [n / 100 for n in raising], raising)
    assert 90 < found["events/s"] < 110


def test_one_batch_has_no_rate() -> None:
    assert throughput([Sample(0, 0, 0), Sample(2, 1, 0)], [1.0] * len(RAISING), RAISING) == {}
