"""What the status and the headers of an HTTP answer mean for a delivery."""

import pytest

from lozenge_downstream.channels.base.channel import Retry, Sent
from lozenge_downstream.channels.base.http import result_of
from tests.downstream.conftest import NOON


@pytest.mark.parametrize("status", [200, 202, 204])
def test_a_2xx_answer_means_sent(status: int) -> None:
    assert result_of(status, None, NOON) == Sent()


@pytest.mark.parametrize("status", [301, 307, 400, 401, 404, 429, 500, 503])
def test_any_other_answer_is_retried(status: int) -> None:
    assert result_of(status, None, NOON) == Retry(f"HTTP {status}")


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("120", 120.0),
        ("Sun, 01 Mar 2026 12:00:30 GMT", 30.0),
        ("Sun, 01 Mar 2026 11:00:00 GMT", 0.0),
        ("99999999", 86_400.0),
        ("soon", None),
        ("-5", None),
        ("Sun, 01 Mar 2026 12:00:30", None),
    ],
)
def test_retry_after_is_read_as_seconds_or_as_a_date(header: str, seconds: float | None) -> None:
    assert result_of(429, header, NOON) == Retry("HTTP 429", seconds)
