"""The test kit: any detector on a list of partial events, in a process without Kafka.

    from lozenge.testing import beside, run

    detector = beside(__file__)

    def test_fires_above_the_limit():
        [alert] = run(detector, [{"amount": "900.00", "at": "-10m"}, {"amount": "12.50"}])
        assert alert.evidence == ("e1",)

`run` goes through the same code as the live job from the event's columns to the alert's bytes; only
Kafka is left out. `events` shows what a partial event becomes, `repeated`, `shuffled`, `late` and
`hostile` make a bad day of a good one, `plain_fold` is the fold by itself. What every detector promises
(`promises`) `lozenge test` shows by itself on the events of all runs; `check` does so for some events.
"""

from lozenge.testing.events import NOW, events
from lozenge.testing.faults import hostile, late, repeated, shuffled
from lozenge.testing.harness import spark
from lozenge.testing.invariants import check
from lozenge.testing.reference_fold import plain_fold
from lozenge.testing.runner import AlertRecord, DeadLetter, Run, beside, declared, run

__all__ = [
    "NOW",
    "AlertRecord",
    "DeadLetter",
    "Run",
    "beside",
    "check",
    "declared",
    "events",
    "hostile",
    "late",
    "plain_fold",
    "repeated",
    "run",
    "shuffled",
    "spark",
]
