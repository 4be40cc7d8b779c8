"""The receiver of webhooks notes every message, and when it came."""

import time
import urllib.request

from tests.bench.harness.webhooks import Webhooks


def test_every_message_is_noted_once_with_its_moment() -> None:
    with Webhooks() as gauge:
        before = time.time_ns()
        for n in range(3):
            with urllib.request.urlopen(gauge.url, data=b"message %d" % n) as answer:
                assert answer.status == 204
        assert gauge.count == 3
        arrivals = gauge.take()
        assert [arrival.value for arrival in arrivals] == [b"message 0", b"message 1", b"message 2"]
        assert before < arrivals[0].came_ns < arrivals[2].came_ns < time.time_ns()
        assert (gauge.count, gauge.take()) == (0, [])
