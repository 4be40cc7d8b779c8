"""The notifier's store, by its HTTP API: alerts, cases, notifications, deliveries, feedback, silences."""

from collections.abc import Iterator

from lozenge.errors import LozengeError
from lozenge_deploy.operations import notifier_client
from lozenge_deploy.operations.erasure.plan import Plan
from lozenge_deploy.operations.erasure.receipt import Line, Outcome, found, not_done

PLACE = "notifier"


def erase_from_notifier(plan: Plan) -> Iterator[Line]:
    """A line for each kind of row, and one for each kind that the notifier had to leave."""
    asked = {"key": plan.subject.key, "value": plan.subject.value}
    try:
        answer = notifier_client.ask("POST", "/erasures", asked, dry_run=plan.dry_run)
    except LozengeError as error:
        yield not_done(PLACE, error)
        return
    removed = {what: rows for what, rows in answer["removed"].items() if rows}
    for what, rows in removed.items():
        yield found(f"{PLACE}: {what}", rows, "rows of its store", dry_run=plan.dry_run)
    for left in answer["left"]:
        yield Line(f"{PLACE}: {left['what']}", Outcome.NOT_DONE, left["rows"], left["why"])
    if not removed and not answer["left"]:
        yield Line(PLACE, Outcome.NOTHING)
