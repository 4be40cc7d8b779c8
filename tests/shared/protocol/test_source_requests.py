import pytest

from lozenge.protocol.source_requests import SOURCES, SourceRelease, SourceRequest, SourceRow

RELEASE = SourceRelease("night", 3, {"title": "t"})
REQUEST = SourceRequest("night", 3)


@pytest.mark.parametrize("row", [RELEASE, REQUEST])
def test_a_row_comes_back_as_it_was(row: SourceRow) -> None:
    written = SOURCES.record("topic", row)
    assert SOURCES.decode(written.key or b"", written.value or b"") == row


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (b"night/r4", SOURCES.record("t", RELEASE).value),
        (b"day", SOURCES.record("t", REQUEST).value),
        (b"night/x", b"{}"),
        (b"Night", SOURCES.record("t", REQUEST).value),
        (b"night", b'{"source":"night","release":0}'),
        (b"night", b'{"source":"night","release":1,"instances":9}'),
        (b"night", b"null"),
    ],
)
def test_any_other_record_is_refused(key: bytes, value: bytes) -> None:
    with pytest.raises(ValueError):
        SOURCES.decode(key, value)


def test_a_source_is_deployed_while_there_is_a_request() -> None:
    rows: dict[str, SourceRow] = {SOURCES.key_of(row).decode(): row for row in (RELEASE, REQUEST)}
    assert [state.release for state in SOURCES.deployed(rows)] == [RELEASE]
    del rows["night"]
    assert SOURCES.deployed(rows) == []
    assert SOURCES.state_of("night", rows).releases == {3: RELEASE}
