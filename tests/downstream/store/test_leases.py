"""A lease has one holder until it expires."""

from tests.downstream.conftest import Desk


def test_a_lease_has_one_holder_until_it_expires(desk: Desk) -> None:
    def take(holder: str) -> bool:
        with desk.store.transaction() as t:
            return t.leases.take("relay", holder, 6.0)

    assert [take("a"), take("b"), take("a")] == [True, False, True]
    desk.now += 7
    assert [take("b"), take("a")] == [True, False]
    with desk.store.transaction() as t:
        t.leases.give_up("b")
    assert take("a")
