"""Tables of the platform: a loader writes what its source has, so the rows of a subject go at their source."""

from collections.abc import Iterator

from lozenge.contracts.topics import platform_table
from lozenge.errors import LozengeError
from lozenge_deploy.operations.erasure.compacted import begin_segments, gone_by, naming, stale
from lozenge_deploy.operations.erasure.plan import Plan
from lozenge_deploy.operations.erasure.receipt import Line, Outcome, not_done
from lozenge_deploy.operations.tables.loaded import names


def erase_loaded_tables(plan: Plan) -> Iterator[Line]:
    """A line for each table. One whose source names the subject is NOT_DONE: a loader would write its rows again."""
    for name in names(plan.kafka):
        place = f"loaded table {name}"
        try:
            yield _line_of(plan, place, name)
        except LozengeError as error:
            yield not_done(place, error)


def _line_of(plan: Plan, place: str, name: str) -> Line:
    kafka, topic = plan.kafka, platform_table(plan.kafka.topics, name)
    if rows := len(naming(kafka, topic.name, topic.partitions, plan.subject)):
        what = "remove it from the source of the table; the next load writes tombstones. Then run this again"
        return Line(place, Outcome.NOT_DONE, rows, what)
    old = stale(kafka, topic.name, topic.partitions, plan.subject)
    if not old:
        return Line(place, Outcome.NOTHING)
    if plan.dry_run:
        return Line(place, Outcome.EXPIRES, what="removed by its loader, and not compacted yet")
    begin_segments(kafka, topic.name, old)
    until = gone_by(kafka, topic)
    return Line(place, Outcome.EXPIRES, what="removed by its loader, and not compacted yet", until=until)
