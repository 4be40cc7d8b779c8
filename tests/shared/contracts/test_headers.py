"""Record headers: CloudEvents, trace context, dead letters."""

from datetime import UTC, datetime

import pytest

from lozenge.contracts.dead_letters import dead_letter_headers, replay_headers
from lozenge.contracts.headers import cloud_event, derived_traceparent
from lozenge.errors import DecodeError

NOW = datetime(2026, 3, 1, 12, 0, 0, 5, tzinfo=UTC)


def test_a_record_carries_cloud_event_attributes_and_its_trace() -> None:
    headers = dict(cloud_event(id="i", source="/upstream/x", type="t", subject="s", time=NOW, traceparent="00-a-b-01"))
    assert headers["ce_id"] == b"i"
    assert headers["ce_specversion"] == b"1.0"
    assert headers["ce_time"] == b"2026-03-01T12:00:00.000005Z"
    assert headers["traceparent"] == b"00-a-b-01"


def test_a_derived_trace_is_a_pure_function_of_the_position() -> None:
    assert derived_traceparent("t", 1, 2) == derived_traceparent("t", 1, 2) != derived_traceparent("t", 1, 3)
    version, trace, span, flags = derived_traceparent("t", 1, 2).split("-")
    assert (version, len(trace), len(span), flags) == ("00", 32, 16, "01")


def dead_letter_of(original: list[tuple[str, bytes | None]]) -> dict[str, bytes | None]:
    error = DecodeError("decoding x")
    return dict(
        dead_letter_headers(
            original, topic="t", partition=3, offset=9, app="a", stage="decode", error=error, failed_at=NOW
        )
    )


def test_a_dead_letter_keeps_the_original_headers_and_says_why() -> None:
    headers = dead_letter_of([("traceparent", b"tp"), ("empty", None)])
    assert headers["traceparent"] == b"tp"
    assert headers["empty"] is None
    assert headers["__connect.errors.offset"] == b"9"
    assert headers["__connect.errors.stage"] == b"decode"
    assert headers["__connect.errors.exception.class.name"] == b"DecodeError"
    assert headers["__connect.errors.exception.message"] == b"decoding x"
    assert headers["attempt"] == b"1"


def test_a_second_failure_keeps_the_first_ones_reason_and_counts_up() -> None:
    again = dead_letter_of([("__connect.errors.stage", b"normalise"), ("attempt", b"1"), ("first-failed-at", b"then")])
    assert again["__connect.errors.stage"] == b"normalise"
    assert again["first-failed-at"] == b"then"
    assert again["attempt"] == b"2"


@pytest.mark.parametrize("attempt", [b"many", b"-1", b"9" * 5_000, b"\xb2", b"", None])
def test_attempts_that_the_platform_did_not_write_count_as_none(attempt: bytes | None) -> None:
    assert dead_letter_of([("attempt", attempt)])["attempt"] == b"1"


def test_another_try_says_its_own_reason_and_counts_on() -> None:
    first = dead_letter_headers(
        [("x", b"1")], topic="t", partition=3, offset=9, app="a", stage="decode", error=DecodeError("no"), failed_at=NOW
    )
    again = dead_letter_of([(name, value) for name, value in replay_headers(first)])
    assert (again["__connect.errors.exception.message"], again["attempt"]) == (b"decoding x", b"2")
    assert (again["__connect.errors.offset"], again["first-failed-at"], again["x"]) == (
        b"9",
        b"2026-03-01T12:00:00.000005Z",
        b"1",
    )
