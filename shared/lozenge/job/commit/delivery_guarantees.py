"""The three delivery guarantees, which differ in one thing: when a batch's alerts are written.

Under each of them state, dead letters, coverage and offsets go into one transaction. So all have the same fence, and a
detector's state is exact even where its alerts may be repeated or lost.
"""

from collections.abc import Callable, Mapping, Sequence

from lozenge.contracts.record import Record

Write = Callable[[Sequence[Record]], None]


def exactly_once(alerts: Sequence[Record], others: Sequence[Record], commit: Write, publish: Write) -> None:
    """Alerts in the transaction: readers of committed records see each of them once, after the transaction."""
    commit([*alerts, *others])


def at_least_once(alerts: Sequence[Record], others: Sequence[Record], commit: Write, publish: Write) -> None:
    """Alerts before the transaction: a crash in between repeats those of one batch, with equal ids.

    A job that was replaced while its process was suspended may repeat them too, before it learns that it is fenced.
    """
    publish(alerts)
    commit(others)


def at_most_once(alerts: Sequence[Record], others: Sequence[Record], commit: Write, publish: Write) -> None:
    """Alerts after the transaction: a crash in between loses those of one batch, and none is ever repeated.

    A job that was replaced while its process was suspended publishes nothing, because its transaction is refused.
    """
    commit(others)
    publish(alerts)


COMMIT_BY_GUARANTEE: Mapping[str, Callable[[Sequence[Record], Sequence[Record], Write, Write], None]] = {
    "exactly-once": exactly_once,
    "at-least-once": at_least_once,
    "at-most-once": at_most_once,
}
"""How a batch is committed, given its alerts, its other records, the transaction and the write outside of it."""
