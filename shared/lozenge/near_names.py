"""Which of the names that there are somebody may have meant by another one."""

from collections.abc import Iterable
from difflib import SequenceMatcher

MOST = 5
_ALIKE = 0.6
"""Of the characters of two names, the share that is the same."""


def near_names(name: str, there: Iterable[str], most: int = MOST) -> list[str]:
    """At most so many names of `there` that are like `name`, the most alike first; whatever their case.

    One that has all of `name` in it is as alike as can be.
    """
    if not name:
        return []
    alike = {each: _likeness(name.lower(), each.lower()) for each in there}
    near = [each for each, likeness in alike.items() if likeness >= _ALIKE]
    return sorted(near, key=lambda each: (-alike[each], each))[:most]


def near_hint(name: str, there: Iterable[str]) -> str:
    """The same for a hint: "near to it: A, B"; "" if no name is near."""
    near = near_names(name, there)
    return f"near to it: {', '.join(near)}" if near else ""


def _likeness(one: str, other: str) -> float:
    return 1.0 if one in other else SequenceMatcher(None, one, other).ratio()
