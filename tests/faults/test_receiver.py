"""The receiver writes down what it takes, and nothing else."""

import base64
import json
from datetime import UTC, datetime
from pathlib import Path

import httpx2
from standardwebhooks import Webhook

from tests.faults.receiver import Ledger

SECRET = "whsec_" + base64.b64encode(b"k" * 32).decode()


def send(ledger: Ledger, id: str, notification_id: str) -> int:
    now, body = datetime.now(UTC), json.dumps({"data": {"notification_id": notification_id}})
    signature = Webhook(SECRET).sign(id, now, body)
    names = {"webhook-id": id, "webhook-timestamp": str(int(now.timestamp())), "webhook-signature": signature}
    return httpx2.post(ledger.url, content=body.encode(), headers=names, trust_env=False).status_code


def test_it_writes_down_each_message_that_it_takes_and_none_that_it_refuses(tmp_path: Path) -> None:
    with Ledger(SECRET, tmp_path / "deliveries") as ledger:
        assert send(ledger, "a", "a") == 204
        ledger.failing = True
        assert send(ledger, "b", "b") == 500
        ledger.failing = False
        assert [send(ledger, "c", "b"), send(ledger, "a", "a")] == [204, 204]
    assert (tmp_path / "deliveries").read_text() == "a a\nc b\na a\n"
