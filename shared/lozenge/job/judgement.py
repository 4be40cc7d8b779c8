"""What judging one batch comes to."""

from collections.abc import Sequence
from typing import NamedTuple

from lozenge.job.output import Finding, Poisoned, Unplaced


class Judgement(NamedTuple):
    """What one batch comes to: alerts to raise, records to put aside, failures without a record."""

    findings: Sequence[Finding]
    poisoned: Sequence[Poisoned] = ()
    unplaced: Sequence[Unplaced] = ()


def joined(parts: Sequence[Judgement], put_aside: Sequence[Poisoned]) -> Judgement:
    """What several batches come to, with the records that were kept out of them."""
    return Judgement(
        findings=[finding for part in parts for finding in part.findings],
        poisoned=[*put_aside, *(poisoned for part in parts for poisoned in part.poisoned)],
        unplaced=[unplaced for part in parts for unplaced in part.unplaced],
    )
