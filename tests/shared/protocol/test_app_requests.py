"""What is deployed of sinks and tables is records that come back as they were; others are refused."""

import msgspec
import pytest

from lozenge.protocol.app_requests import APPS, AppRelease, AppRequest, AppRow
from lozenge.protocol.source_requests import SOURCES, SourceRelease, SourceRequest

RELEASE = AppRelease("sink-last", 3, {"kind": "cache", "url": "${URL}"}, "ann", "why")
REQUEST = AppRequest("sink-last", 3, previous=2, instances=2, paused=True)


@pytest.mark.parametrize("row", [RELEASE, REQUEST, AppRequest("table-limits", 1)])
def test_a_row_comes_back_as_it_was(row: AppRow) -> None:
    written = APPS.record("topic", row)
    assert APPS.decode(written.key or b"", written.value or b"") == row


def test_a_record_calls_its_owner_as_its_kind_does() -> None:
    for row in (RELEASE, REQUEST):
        assert msgspec.to_builtins(row)["app"] == "sink-last"
    for each in (SourceRelease("night", 1, {}), SourceRequest("night", 1)):
        assert msgspec.to_builtins(each)["source"] == "night"


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (b"sink-last/r4", APPS.record("t", RELEASE).value),
        (b"sink-first", APPS.record("t", REQUEST).value),
        (b"last", b'{"app":"last","release":1}'),
        (b"files-night", b'{"app":"files-night","release":1}'),
        (b"sink-last", b'{"app":"sink-last","release":0}'),
        (b"sink-last", b'{"app":"sink-last","release":1,"instances":0}'),
        (b"sink-last", b'{"app":"sink-last","release":1,"instances":1025}'),
        (b"sink-last/r1", b"null"),
    ],
)
def test_any_other_record_is_refused(key: bytes, value: bytes) -> None:
    with pytest.raises(ValueError):
        APPS.decode(key, value)


def test_records_of_this_version_are_read_by_later_ones() -> None:
    """The topic is compacted: a release that nobody changes stays for ever."""
    release = b'{"app":"sink-last","number":3,"declaration":{"kind":"cache"},"by":"ann","at":"2026-11-29T10:00:00Z"}'
    request = b'{"app":"sink-last","release":3,"previous":2,"instances":2,"paused":true,"at":"2026-11-29T10:00:00Z"}'
    source = b'{"source":"night","release":3,"instances":2,"rate":5.0,"retries":{},"at":"2026-11-29T10:00:00Z"}'
    read = msgspec.structs.asdict(APPS.decode(b"sink-last/r3", release))
    assert (read["declaration"], read["follows"]) == ({"kind": "cache"}, 0)
    assert msgspec.structs.asdict(APPS.decode(b"sink-last", request))["previous"] == 2
    assert msgspec.structs.asdict(SOURCES.decode(b"night", source))["previous"] == 0


def test_the_release_before_runs_where_the_one_that_is_requested_cannot() -> None:
    written: list[AppRow] = [*(AppRelease("sink-last", number, {}) for number in (1, 2, 3)), REQUEST]
    rows = {APPS.key_of(row).decode(): row for row in written}
    state = APPS.state_of("sink-last", rows)
    assert [release.number for release in state.to_run] == [3, 2]
    assert state.next_number() == 4
    del rows["sink-last"]
    assert (APPS.deployed(rows), [each.name for each in APPS.states(rows)]) == ([], ["sink-last"])
