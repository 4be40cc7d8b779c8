"""What the tests of the store look at: due deliveries, deleted rows, executed statements."""

from collections.abc import Callable
from itertools import count

from sqlalchemy import Engine, event

from lozenge_downstream.store import Retention, Store, Transaction
from tests.downstream.conftest import Desk


def delete_expired(desk: Desk, step: int = 2, before: float | None = None) -> int:
    """Deletes what expired before a moment, else until now; in how many transactions."""
    retention = Retention(desk.now if before is None else before, step)
    for number in count(1):
        with desk.store.transaction(exclusive=True) as t:
            if not t.delete_expired(retention):
                return number
    raise AssertionError


def due(desk: Desk, channel: str = "ops") -> list[str]:
    """The notifications that may go to a channel now."""
    with desk.store.reading() as t:
        return [delivery.notification_id for delivery in t.deliveries.due(channel, 100)]


def executed(url: str, what: Callable[[Transaction], object], verb: str) -> str:
    """The one statement of a kind that something executes."""
    store = Store(url)
    statements: list[str] = []
    event.listen(Engine, "before_cursor_execute", note := lambda *called: statements.append(called[2]))
    with store.transaction() as t:
        what(t)
    event.remove(Engine, "before_cursor_execute", note)
    store.close()
    (found,) = (statement for statement in statements if statement.startswith(verb))
    return found
