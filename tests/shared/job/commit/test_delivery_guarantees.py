"""What a crash between a batch's transaction and its alerts costs under each guarantee, as the order of the writes."""

from collections.abc import Sequence

import pytest

from lozenge.contracts.record import Record
from lozenge.job.commit.delivery_guarantees import COMMIT_BY_GUARANTEE

ALERT, STATE = Record("alerts", 0, b"card_1", b"alert"), Record("state", 0, b"card_1", b"state")


@pytest.mark.parametrize(
    ("guarantee", "writes"),
    [
        ("exactly-once", [("transaction", [ALERT, STATE])]),
        ("at-least-once", [("outside", [ALERT]), ("transaction", [STATE])]),
        ("at-most-once", [("transaction", [STATE]), ("outside", [ALERT])]),
    ],
)
def test_a_guarantee_is_the_order_of_the_writes(guarantee: str, writes: list[tuple[str, list[Record]]]) -> None:
    done: list[tuple[str, list[Record]]] = []

    def commit(records: Sequence[Record]) -> None:
        done.append(("transaction", [*records]))

    def publish(records: Sequence[Record]) -> None:
        done.append(("outside", [*records]))

    COMMIT_BY_GUARANTEE[guarantee]([ALERT], [STATE], commit, publish)
    assert done == writes


def test_nothing_is_published_at_most_once_if_the_transaction_fails() -> None:
    def refused(_: Sequence[Record]) -> None:
        raise ConnectionError

    published: list[Record] = []
    with pytest.raises(ConnectionError):
        COMMIT_BY_GUARANTEE["at-most-once"]([ALERT], [STATE], refused, published.extend)
    assert published == []
