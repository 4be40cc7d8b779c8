from lozenge.testing import detector_of, late, run

detector = detector_of(__file__)
TWICE = [{"amount": "12.50", "at": "-10m"}, {"amount": "12.50", "at": "-330s"}]


def test_fires_on_the_second_equal_charge() -> None:
    [alert] = run(detector, TWICE)
    assert alert.reason == "charged 12.50 EUR twice by merchant merchant-1, 4 min 30 s apart"
    assert (alert.entity, alert.evidence) == ("card-1", ("e1", "e2"))
    assert alert.values == {"amount": "12.5000", "currency": "EUR", "seconds_apart": "270.0"}


def test_a_triple_charge_gives_two_alerts() -> None:
    alerts = run(detector, [*TWICE, {"amount": "12.50", "at": "0s"}])
    assert [alert.evidence for alert in alerts] == [("e1", "e2"), ("e2", "e3")]


def test_fires_at_the_limit_and_not_beyond() -> None:
    assert len(run(detector, [{"at": "-10m"}, {"at": "0s"}])) == 1
    assert run(detector, [{"at": "-601s"}, {"at": "0s"}]) == []
    assert len(run(detector, [{"at": "-601s"}, {"at": "0s"}], {"within": "15m"})) == 1


def test_stays_silent_if_anything_differs() -> None:
    others = ({"card_id": "card-2"}, {"merchant_id": "merchant-2"}, {"amount": "12.51"}, {"currency": "USD"})
    assert run(detector, [{"amount": "12.50"}, *({"amount": "12.50", **other} for other in others)]) == []


def test_a_declined_charge_a_reversal_or_a_verification_is_no_charge() -> None:
    for field in ({"auth_result": "declined"}, {"amount": "-5"}, {"amount": "0"}):
        assert run(detector, [field, field]) == []


def test_a_missing_merchant_is_one_merchant() -> None:
    [alert] = run(detector, [{"merchant_id": None}, {"merchant_id": None}])
    assert alert.evidence == ("e1", "e2")


def test_the_earlier_charge_may_arrive_later() -> None:
    [alert] = run(detector, late(TWICE))
    assert alert.evidence == ("e1", "e2")
