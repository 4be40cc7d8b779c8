"""What both are made to say in the same words: which alerts of which group were told when."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple


class Place(NamedTuple):
    """A group: its receiver, and the labels that its alerts have in common, as text."""

    receiver: str
    group: str


def place(receiver: str, group: Mapping[str, str]) -> Place:
    """The group with these labels."""
    return Place(receiver, json.dumps(group, sort_keys=True))


@dataclass(frozen=True)
class There:
    """One message of Alertmanager's: the alerts of its group that last, and those that are over since the last one."""

    at: float
    place: Place
    firing: frozenset[str]
    over: frozenset[str]


@dataclass(frozen=True)
class Here:
    """One of ours: what is new."""

    at: float
    place: Place
    status: str
    news: frozenset[str]
