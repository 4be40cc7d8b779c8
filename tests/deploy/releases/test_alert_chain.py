"""Detectors that read each other's alerts in a circle are found, through any number of them."""

import pytest

from lozenge_deploy.releases.alert_chain import cycle_of, sentence


@pytest.mark.parametrize(
    ("reads", "cycle"),
    [
        ({}, []),
        ({"a": "b"}, []),
        ({"a": "b", "b": "c"}, []),
        ({"a": "a"}, ["a"]),
        ({"a": "b", "b": "a"}, ["a", "b"]),
        ({"a": "b", "b": "c", "c": "d", "d": "a"}, ["a", "b", "c", "d"]),
        ({"a": "b", "b": "c", "c": "b"}, []),
    ],
    ids=["no alerts", "one", "two", "its own", "each other", "through others", "a cycle of others"],
)
def test_a_cycle_leads_back_to_the_detector_itself(reads: dict[str, str], cycle: list[str]) -> None:
    assert cycle_of("a", lambda name: reads.get(name, "")) == cycle


def test_a_cycle_is_said_detector_by_detector() -> None:
    assert sentence(["a"]) == "a reads its own alerts"
    assert sentence(["a", "b"]).endswith(": a reads the alerts of b, b those of a")
    assert sentence(["a", "b", "c"]).endswith(": a reads the alerts of b, b those of c, c those of a")
