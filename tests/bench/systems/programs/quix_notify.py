"""`quix_notify.py START.json`: alerts become signed webhooks, one after the other over one connection."""

import base64
import hashlib
import hmac
import json
import time
from typing import Any

import requests
from quix_app import application
from records import NAME, ORDER, decoded_alert

SECRET = base64.b64decode(ORDER["webhook_secret"].removeprefix("whsec_"))
session = requests.Session()


def notified(value: bytes) -> None:
    """Returns when the receiver has taken it; else it ends the application, which is to be started again."""
    alert = decoded_alert(value)
    body, now = json.dumps(message(alert)), str(int(time.time()))
    signed = hmac.new(SECRET, f"{alert['alert_id']}.{now}.{body}".encode(), hashlib.sha256).digest()
    headers = {
        "content-type": "application/json",
        "webhook-id": alert["alert_id"],
        "webhook-timestamp": now,
        "webhook-signature": f"v1,{base64.b64encode(signed).decode()}",
    }
    session.post(ORDER["webhook"], data=body, headers=headers, timeout=15).raise_for_status()


def message(alert: dict[str, Any]) -> dict[str, Any]:
    """What the webhook brings."""
    data = {
        "detector": alert["detector"],
        "entity": alert["entity"],
        "severity": alert["severity"],
        "title": alert["title"],
        "text": alert["reason"],
    }
    return {"type": "notification.opened", "timestamp": alert["event_time"].isoformat(), "data": data}


def main() -> None:
    app = application(f"{NAME}-notify")
    alerts = app.topic(ORDER["output"], key_deserializer="bytes", value_deserializer="bytes")
    app.dataframe(alerts).update(notified)
    app.run()


main()
