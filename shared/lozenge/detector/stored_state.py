"""The records of a state topic: the entries of a fold by JSON keys, or the alert ids of an aggregate."""

from datetime import datetime
from typing import Any

import msgspec

from lozenge.detector.fold import Entry

_ENTRY = msgspec.json.Decoder(Entry[Any])


def is_fold_key(key: bytes) -> bool:
    """Whether it is the key of a fold's entry, a JSON list; else it is an alert id."""
    return key[:1] == b"["


def closing_time(value: bytes) -> datetime:
    """When the window of an emitted alert closes; raises ValueError for anything else."""
    moment = datetime.fromisoformat(value.decode())
    if moment.tzinfo is None:
        raise ValueError(f"{value!r} has no offset from UTC")
    return moment


def check_alert_id(key: bytes, value: bytes) -> None:
    """Raises for a record that is no emitted alert of an aggregate."""
    if not key.decode():
        raise ValueError("it has no key")
    closing_time(value)


def check_entry(key: bytes, value: bytes) -> None:
    """Raises for a record that is no entry of a fold, whatever its author's state is."""
    if not is_fold_key(key):
        raise ValueError(f"its key is {key!r}")
    msgspec.json.decode(key, type=list[Any])
    entry = _ENTRY.decode(value)
    if not isinstance(entry.state, dict) or any(at.tzinfo is None for at in (entry.clock, *entry.timers)):
        raise ValueError("it is no entry of state, clock, timers and event ids")


def check(key: bytes, value: bytes) -> None:
    """Raises for a record that is neither."""
    (check_entry if is_fold_key(key) else check_alert_id)(key, value)
