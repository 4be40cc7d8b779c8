"""What judging one batch comes to."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from lozenge.job.output import Finding, Misfired
from lozenge.job.transaction import Record


@dataclass(frozen=True, slots=True)
class Poisoned:
    """A record that no retry will mend, with the error it raises alone."""

    partition: int
    offset: int
    error: Exception


class Judgement(NamedTuple):
    """What one batch comes to: alerts to raise, records to put aside, state to keep, timers that failed."""

    findings: Sequence[Finding]
    poisoned: Sequence[Poisoned] = ()
    state: Sequence[Record] = ()
    misfired: Sequence[Misfired] = ()
