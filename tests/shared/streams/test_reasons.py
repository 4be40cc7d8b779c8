"""Each reason of a dead letter has a sentence."""

import pytest

from lozenge.streams.reasons import CLOCK, OF_A_FIELD, OF_A_RECORD, sentence


@pytest.mark.parametrize("kind", OF_A_RECORD)
def test_a_reason_of_the_whole_record_is_a_sentence(kind: str) -> None:
    assert sentence(kind) == OF_A_RECORD[kind]


@pytest.mark.parametrize("kind", OF_A_FIELD)
def test_a_reason_of_a_field_names_it(kind: str) -> None:
    assert sentence(f"{kind}:device.os") == f"device.os: {OF_A_FIELD[kind]}"


def test_the_clock_of_a_producer_is_no_time_of_an_event() -> None:
    assert "Kafka timestamp" in sentence(CLOCK)
    assert "1980" not in sentence(CLOCK)


def test_a_reason_of_another_release_is_shown_as_it_is() -> None:
    assert sentence("novel:amount") == "novel:amount"
