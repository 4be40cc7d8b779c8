"""What an answer means, and when to try again."""

from datetime import UTC, datetime

import pytest

from lozenge_downstream.config import Webhook
from lozenge_downstream.webhook import Retry, Sent, judge, wait_seconds

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize("status", [200, 202, 204])
def test_2xx_is_sent(status: int) -> None:
    assert judge(status, None, NOW) == Sent()


@pytest.mark.parametrize("status", [301, 307, 400, 401, 404, 410, 429, 500, 503])
def test_anything_else_is_tried_again(status: int) -> None:
    assert judge(status, None, NOW) == Retry(f"HTTP {status}")


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
def test_retry_after_is_read(header: str, seconds: float | None) -> None:
    assert judge(429, header, NOW) == Retry("HTTP 429", seconds)


def test_waits_grow_to_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("S", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
    webhook = Webhook.model_validate({"url": "http://h/", "secret": {"env": "S"}, "first_retry": 5, "max_retry": 100})
    assert [wait_seconds(webhook, n, None, 0.5) for n in (1, 2, 3, 4, 90)] == [5, 20, 80, 100, 100]
    assert wait_seconds(webhook, 1, None, 0.0) == 4
    assert wait_seconds(webhook, 1, None, 1.0) == 6
    assert wait_seconds(webhook, 1, 60.0, 0.5) == 60
    assert wait_seconds(webhook, 3, 60.0, 0.5) == 80
