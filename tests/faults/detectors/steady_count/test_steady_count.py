from lozenge.testing import detector_of, run

detector = detector_of(__file__)


def test_fires_at_the_fiftieth_payment() -> None:
    [alert] = run(detector, [{}] * 51)
    assert alert.evidence == ("e50",)
    assert alert.values["number"] == "50"


def test_fires_with_another_checksum_if_a_payment_is_lost() -> None:
    first, second = (run(detector, [{"event_id": f"{n}"} for n in numbers]) for numbers in (range(50), range(1, 51)))
    assert first[0].values["checksum"] != second[0].values["checksum"]


def test_stays_silent_before() -> None:
    assert run(detector, [{}] * 49) == []


def test_a_missing_amount_counts_too() -> None:
    assert len(run(detector, [{"amount": None}] * 50)) == 1
