from lozenge.testing import detector_of, run

detector = detector_of(__file__)


def test_fires_above_the_limit() -> None:
    [alert] = run(detector, [{"amount": "500.01"}])
    assert alert.evidence == ("e1",)


def test_stays_silent_up_to_the_limit() -> None:
    assert run(detector, [{"amount": "500.00"}]) == []


def test_a_missing_amount_is_no_amount() -> None:
    assert run(detector, [{"amount": None}]) == []
