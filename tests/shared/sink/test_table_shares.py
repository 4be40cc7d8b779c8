"""Tables of an archive are shared out by their topics alone."""

from lozenge.sink.table_shares import share_of


def test_a_table_is_in_the_same_share_in_every_release() -> None:
    topics = ("pay.canonical.auth.v1", "pay.canonical.login.v1", "pay.alerts.large_amount.v1")
    assert [share_of(topic, 4) for topic in topics] == [2, 3, 1]


def test_tables_are_in_all_shares() -> None:
    assert {share_of(f"pay.alerts.detector_{number}.v1", 4) for number in range(200)} == {0, 1, 2, 3}
