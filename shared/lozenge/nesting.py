"""How many levels data may have: functions that call themselves at each level walk it."""

from typing import Any

MOST_NESTED = 64
"""Levels of lists and objects, whatever limit the interpreter has."""


def is_flat(value: Any) -> bool:
    """Whether data as JSON has it has at most `MOST_NESTED` levels."""
    level = [value]
    for _ in range(MOST_NESTED):
        level = [
            part
            for each in level
            if isinstance(each, dict | list)
            for part in (each.values() if isinstance(each, dict) else each)
        ]
        if not level:
            return True
    return False
