"""The test kit: runs any detector on a list of partial events, in one process and without Kafka.

    from lozenge.testing import detector_of, run

    detector = detector_of(__file__)

    def test_fires_above_the_limit():
        [alert] = run(detector, [{"amount": "900.00", "at": "-10m"}, {"amount": "12.50"}])
        assert alert.evidence == ("e1",)

`run` executes the code of the live job, from the event's columns to the alert's bytes. Only Kafka is missing.

`events` completes partial events. `repeated`, `shuffled`, `late` and `hostile` make difficult input of them. `run_fold`
runs a fold without Spark. `lozenge test` checks the invariants of every detector on the events of all its tests;
`check` checks them on events of your choice.
"""

from lozenge.testing.events import NOW, events
from lozenge.testing.faults import hostile, late, repeated, shuffled
from lozenge.testing.harness import spark
from lozenge.testing.invariants import check
from lozenge.testing.reference_fold import run_fold
from lozenge.testing.runner import AlertRecord, DeadLetterRecord, Run, detector_of, run, with_manifest

__all__ = [
    "NOW",
    "AlertRecord",
    "DeadLetterRecord",
    "Run",
    "check",
    "detector_of",
    "events",
    "hostile",
    "late",
    "repeated",
    "run",
    "run_fold",
    "shuffled",
    "spark",
    "with_manifest",
]
