"""Malformed records: records that no normaliser can accept, each made from a valid one for a named reason."""

import json
from datetime import datetime, timedelta

from lozenge_deploy.demo.feed.formats import JSON, Form

REASONS = (
    "empty_value",
    "invalid_json",
    "invalid_utf8",
    "not_an_object",
    "missing_card",
    "missing_amount",
    "wrong_type",
    "impossible_time",
    "future_time",
)
_FAR = timedelta(days=400)  # from any point of a history of less than a year this is in the future


def reasons(form: Form) -> tuple[str, ...]:
    """The reasons that `form` supports: a time without a year is never certainly in the future."""
    return REASONS if form is JSON else tuple(reason for reason in REASONS if reason != "future_time")


def malform(reason: str, value: bytes, when: datetime, form: Form) -> bytes:
    """The valid record `value`, of the time `when`, made malformed for `reason`."""
    match reason:
        case "empty_value":
            return b""
        case "invalid_json":
            return value[: len(value) // 2]
        case "invalid_utf8":
            field = f'"{form.merchant}":"'.encode()
            return value.replace(field, field + b"\xff\xfe")
        case "not_an_object":
            return b'"authorisation"'
    record = json.loads(value)
    match reason:
        case "missing_card":
            del record[form.card]
        case "missing_amount":
            del record[form.amount]
        case "wrong_type":
            record[form.amount] = [record[form.amount]]
        case "impossible_time":
            record[form.time] = form.impossible_time
        case "future_time":
            record[form.time] = (when + _FAR).isoformat(timespec="microseconds")[:-6] + "Z"
    return json.dumps(record, separators=(",", ":")).encode()
