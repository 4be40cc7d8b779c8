"""Detectors that read each other's alerts: a chain of them, which must not lead back to its beginning."""

from collections.abc import Callable, Sequence


def cycle_of(name: str, reads: Callable[[str], str]) -> list[str]:
    """The detectors from `name` on, each before the one whose alerts it reads, if the last one reads those of `name`.

    `reads` is whose alerts a detector reads, "" if none. Empty if there is no such cycle.
    """
    chain = [name]
    while (following := reads(chain[-1])) and following not in chain:
        chain.append(following)
    return chain if following == name else []


def sentence(cycle: Sequence[str]) -> str:
    """What a cycle is, for a person."""
    first, *others = cycle
    if not others:
        return f"{first} reads its own alerts"
    steps = [f"{first} reads the alerts of {others[0]}"]
    steps += [f"{one} those of {other}" for one, other in zip(others, (*others[1:], first), strict=True)]
    return f"a cycle, in which an alert raises others without end: {', '.join(steps)}"
