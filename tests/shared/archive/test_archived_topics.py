from lozenge.archive.archived_topics import archived_topics
from lozenge.contracts.schemas import newest
from lozenge.contracts.topics import Topics
from lozenge.sink_declarations.archive_sink import ArchiveSink, Records
from tests.streams import AUTH

TOPICS = Topics("team.")
EXISTING = {
    "team.pay.canonical.auth.v1": 4,
    "team.pay.canonical.auth.by-merchant.v1": 4,
    "team.pay.alerts.large_amount.v1": 4,
    "team.pay.shadow.large_amount.r1.v1": 4,
    "team.pay.notifications.v1": 4,
    "team.pay.feedback.v1": 4,
    "team.pay.dlq.upstream.v1": 4,
    "team.pay.dlq.sink-archive.v1": 4,
    "team.lozenge.metrics.v1": 1,
    "pay.notifications.v1": 4,
    "AUTH-JSON": 4,
}


def sink(**declared: object) -> ArchiveSink:
    given = {"name": "archive", "kind": "archive", "title": "All", "owner": "platform"} | declared
    return ArchiveSink.model_validate(given)


def views(**declared: object) -> list[str]:
    return [each.view for each in archived_topics(sink(**declared), TOPICS, [AUTH], EXISTING)]


def test_a_sink_takes_the_topics_of_its_platform_and_no_copies() -> None:
    assert sorted(views()) == [
        "alerts_large_amount",
        "dead_letters_sink_archive",
        "dead_letters_upstream",
        "events_auth",
        "feedback",
        "notifications",
    ]


def test_a_sink_takes_the_records_and_streams_that_it_declares() -> None:
    assert views(records=["alerts", "feedback"]) == ["alerts_large_amount", "feedback"]
    assert views(records=["events"], streams=["login"]) == []


def test_records_are_read_as_their_newest_schema_and_dead_letters_as_they_are() -> None:
    found = {each.view: each for each in archived_topics(sink(), TOPICS, [AUTH], EXISTING)}
    alerts = found["alerts_large_amount"]
    assert alerts.reader == newest("alert")
    assert {schema.version for schema in alerts.readers([])} == {1, 2}
    assert found["events_auth"].reader == AUTH.event_schema
    assert found["dead_letters_upstream"].reader is None
    assert found["dead_letters_upstream"].columns.names[-3:] == ["key", "value", "headers"]
    assert found["feedback"].records is Records.FEEDBACK


def test_an_announced_schema_of_the_same_contract_is_read_too() -> None:
    [alerts] = archived_topics(sink(records=["alerts"]), TOPICS, [AUTH], EXISTING)
    known = alerts.readers([newest("alert").with_id(4711), newest("feedback").with_id(4712)])
    assert {4711} <= {schema.id for schema in known}
    assert 4712 not in {schema.id for schema in known}
