"""What judging one batch comes to."""

from collections.abc import Sequence
from typing import NamedTuple

from lozenge.job.output import Finding, Poisoned, Unplaced
from lozenge.job.transaction import Record


class Judgement(NamedTuple):
    """What one batch comes to: alerts to raise, records to put aside, state to keep, failures without a record."""

    findings: Sequence[Finding]
    poisoned: Sequence[Poisoned] = ()
    state: Sequence[Record] = ()
    unplaced: Sequence[Unplaced] = ()
