"""A detector gets a JVM of its own after repeated trouble, if the last one was its own."""

from lozenge_deploy.hosts.auto_isolation import TROUBLE_SECONDS, HostTroubles, Trouble

AT = 1_000_000.0


def troubles(*of: tuple[float, bool]) -> HostTroubles:
    found = HostTroubles()
    for seconds, own in of:
        found = found.added(Trouble(AT + seconds, "hung", own))
    return found


def test_once_is_not_enough() -> None:
    assert not troubles((0, True)).reason_to_move()


def test_twice_is_enough_if_it_was_alone_at_last() -> None:
    assert "2 times within 1 h" in troubles((0, False), (10, True)).reason_to_move()
    assert not troubles((0, True), (10, False)).reason_to_move()


def test_deaths_of_hosts_with_others_never_move_it() -> None:
    assert not troubles(*((n, False) for n in range(9))).reason_to_move()


def test_what_is_long_ago_does_not_count() -> None:
    assert not troubles((0, True), (TROUBLE_SECONDS, True)).reason_to_move()
    assert troubles((0, True), (TROUBLE_SECONDS - 1, True)).reason_to_move()
