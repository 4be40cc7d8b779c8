"""What the tests of the pipeline have in common."""

from collections.abc import Callable

from lozenge_downstream.model import ReceivedRecord
from lozenge_downstream.store.silences import Silence
from tests.downstream.conftest import Desk

MakeRecord = Callable[..., ReceivedRecord]
BY_CARD = {"group_by": ["entity"], "group_interval": "5m", "resolve_timeout": "1h"}


def statuses(desk: Desk) -> list[str]:
    return [n["status"] for n in desk.notifications()]


def silence(desk: Desk, *matchers: str, seconds: float = 600) -> Silence:
    from lozenge_downstream.routing.matchers import parse

    with desk.store.transaction() as t:
        return t.silences.add([parse(m) for m in matchers], "ann", "planned works", desk.now + seconds)


def take_one_and_silence_the_next(desk: Desk, record: MakeRecord) -> None:
    """A case of two alerts: the first is notified, the second is not."""
    desk.routing(route=BY_CARD | {"send_resolved": True})
    desk.take(record(0))
    silence(desk, 'detector = "large_amount"', seconds=90_000)
    desk.take(record(1))
