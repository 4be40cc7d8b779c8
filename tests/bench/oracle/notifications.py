"""The notifications of both systems in one form: which alerts of which group were notified when."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple


class AlertGroup(NamedTuple):
    """A group: its receiver, and the labels that its alerts have in common, as text."""

    receiver: str
    labels: str


def group_of(receiver: str, group: Mapping[str, str]) -> AlertGroup:
    """The group with these labels."""
    return AlertGroup(receiver, json.dumps(group, sort_keys=True))


@dataclass(frozen=True)
class There:
    """One message of Alertmanager's: the alerts of its group that last, and those that are over since the last one."""

    at: float
    group: AlertGroup
    firing: frozenset[str]
    over: frozenset[str]


@dataclass(frozen=True)
class Here:
    """One of ours: what is new."""

    at: float
    group: AlertGroup
    status: str
    news: frozenset[str]
