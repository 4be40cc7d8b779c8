"""One erasure from its first place to its last, with its records in the audit log.

What others write again comes before them: states before the caches of states, tables once the sink has caught up. Each
place is looked at again by each run, so a run after a killed one ends as one that was not killed.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping

from lozenge.errors import LozengeError
from lozenge.kafka.topic_admin import partitions
from lozenge_deploy.operations import audit
from lozenge_deploy.operations.erasure.caches import erase_caches
from lozenge_deploy.operations.erasure.lists import erase_lists
from lozenge_deploy.operations.erasure.loaded_tables import erase_loaded_tables
from lozenge_deploy.operations.erasure.notifier import erase_from_notifier
from lozenge_deploy.operations.erasure.plan import Plan
from lozenge_deploy.operations.erasure.receipt import Line, not_done, unfinished
from lozenge_deploy.operations.erasure.states import closing_windows, erase_states
from lozenge_deploy.operations.erasure.tables import erase_tables
from lozenge_deploy.operations.erasure.topics import expiring

_STEPS: Mapping[str, Callable[[Plan], Iterable[Line]]] = {
    "lists": erase_lists,
    "loaded tables": erase_loaded_tables,
    "states": erase_states,
    "archive": erase_tables,
    "notifier": erase_from_notifier,
    "caches": erase_caches,
    "windows": closing_windows,
    "topics": expiring,
}
"""What is erased, in this order."""


def erased(plan: Plan) -> list[Line]:
    """The receipt. A place that could not be erased is in it, and is no error.

    Nothing is done without its record in the audit log, which has a digest of the value. Raises BrokerUnavailable.
    """
    partitions(plan.kafka)  # without a broker each place would wait for it
    target = f"{plan.subject.key} sha256:{plan.subject.digest}"
    if plan.dry_run:
        return list(_lines(plan))
    audit.record(plan.kafka, "erasure begun", target)
    lines = list(_lines(plan))
    places = {line.place: line.records for line in lines if line.records}
    left = sorted({line.place for line in unfinished(lines)})
    audit.record(plan.kafka, "erasure ended", target, {"removed": places, "not done": left})
    return lines


def _lines(plan: Plan) -> Iterator[Line]:
    for what, step in _STEPS.items():
        try:
            yield from step(plan)
        except LozengeError as error:  # the other places are erased all the same
            yield not_done(what, error)
