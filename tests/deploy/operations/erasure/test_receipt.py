from datetime import UTC, datetime

from lozenge.errors import BrokerUnavailable
from lozenge_deploy.operations.erasure.receipt import Line, Outcome, found, not_done, unfinished

NOW = datetime(2026, 3, 1, tzinfo=UTC)


def test_a_dry_run_promises_no_moment_and_a_place_without_records_says_so() -> None:
    assert found("table", 3, "rows", dry_run=True, until=NOW) == Line("table", Outcome.WOULD_REMOVE, 3, "rows")
    assert found("table", 3, "rows", dry_run=False, until=NOW).until == NOW
    assert found("table", 0, "rows", dry_run=False, until=NOW) == Line("table", Outcome.NOTHING)


def test_a_place_that_fails_says_why_and_what_to_do_in_one_line() -> None:
    line = not_done("cache", BrokerUnavailable("reading x:\nno broker", hint="start it"))
    assert line.what == "reading x: no broker (start it)"
    assert unfinished([line, Line("table", Outcome.NOTHING), Line("t", Outcome.EXPIRES)]) == [line]
    assert line.row() == {"place": "cache", "outcome": "not done", "records": 0, "what": line.what, "until": None}
