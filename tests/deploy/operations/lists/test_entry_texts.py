"""A file or a command whose entries are not all good is refused, with everything that is wrong with them."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from lozenge.errors import ConfigError, UsageError
from lozenge.protocol.list_entries import ListEntry
from lozenge_deploy.operations.lists import entry_texts
from lozenge_deploy.operations.lists.entry_texts import Given, expiry_of, from_file, from_values

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
GIVEN = Given("ann", NOW, "stolen")
PAN = "4000000000000002"


def imported(folder: Path, content: str | bytes, given: Given = GIVEN) -> list[ListEntry]:
    file = folder / "cards.csv"
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    return [*from_file(file, given).values()]


def complaints(folder: Path, content: str | bytes, given: Given = GIVEN) -> tuple[str, ...]:
    with pytest.raises(ConfigError) as raised:
        imported(folder, content, given)
    assert "nothing was changed" in raised.value.hint or "UTF-8" in raised.value.hint
    assert PAN not in str(raised.value)
    return raised.value.problems


@pytest.mark.parametrize(
    "content",
    [
        "value\na\nb\n",
        "value\na\nb",
        "value\r\na\r\n\r\nb\r\n",
        b"\xef\xbb\xbfvalue,reason\na,stolen\nb,\n",
        'expires_at,value\n,"a"\n,b\n',
    ],
)
def test_a_file_is_read_by_the_names_in_its_header(tmp_path: Path, content: str | bytes) -> None:
    assert imported(tmp_path, content) == [ListEntry(value, "stolen", "ann", NOW) for value in "ab"]


def test_the_columns_of_a_row_come_before_what_is_given_for_all(tmp_path: Path) -> None:
    given = Given("ann", NOW, "stolen", NOW + timedelta(days=1))
    found = imported(tmp_path, "value,reason,expires_at\na,lost,30d\nb,,2026-04-01\nc,,\n", given)
    assert [(entry.reason, entry.expires_at) for entry in found] == [
        ("lost", NOW + timedelta(days=30)),
        ("stolen", datetime(2026, 4, 1, tzinfo=UTC)),
        ("stolen", NOW + timedelta(days=1)),
    ]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (
            "",
            "its first line must name the columns value, reason, expires_at, of which value is required; it has",
        ),
        ("card_id\na\n", "it has 'card_id'"),
        (f"{PAN}\n", "it has '400000******0002'"),
        ("value;reason\na;b\n", "it has 'value;reason'"),
        ("value,note\na,b\n", "a list has no column 'note'"),
        ("value,value\na,b\n", "the column value more than once"),
        ("value\n", "it has no entry"),
        ("value,reason\na\n", "line 2: it has 1 fields, and the header has 2"),
        ('value\n"a\n', "line 2: unexpected end of data"),
        ("value\na\nb\na\n", "line 4: value 'a' is in line 2 already"),
        (f"value\n{PAN}\n", "line 2: value '400000******0002' has a card number"),
        ('value\n"a\tb"\n', "line 2: value 'a\\tb' has the control character U+0009"),
        (f"value\n{'x' * 257}\n", "has 257 characters"),
        ("value,expires_at\na,soon\n", "line 2: expires_at: 'soon' is no expiry: write"),
        ("value,expires_at\na,2020-01-01\n", "line 2: expires_at: '2020-01-01' is over already"),
        ("value,expires_at\na,2026-12-31T10:00\n", "line 2: expires_at: '2026-12-31T10:00' has no time zone"),
    ],
)
def test_a_bad_file_is_refused_with_the_line_and_the_cause(tmp_path: Path, content: str, says: str) -> None:
    [problem] = complaints(tmp_path, content)
    assert says in problem


def test_a_file_in_another_encoding_or_in_no_place_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="it is not UTF-8: line 2 has the byte 0xfc"):
        imported(tmp_path, b"value\n\xfc\n")
    with pytest.raises(UsageError, match="No such file"):
        from_file(tmp_path / "missing.csv", GIVEN)


def test_all_problems_of_a_file_are_named_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = f"value,reason,expires_at\n{PAN},,\nb,,soon\nc\nb,x,\n,,\n"
    found = complaints(tmp_path, content, Given("ann", NOW))
    assert [line.partition(":")[0] for line in found] == [f"line {n}" for n in (2, 2, 3, 3, 4, 5, 6, 6)]
    assert sum("it has no reason: fill the column, or give one for all by --reason" in line for line in found) == 3
    monkeypatch.setattr(entry_texts, "MOST_PROBLEMS", 2)
    assert complaints(tmp_path, content, Given("ann", NOW))[2:] == ("and 6 more",)


@pytest.mark.parametrize(
    ("header", "lines"),
    [
        ("card,reason,expires_at", [3, 4, 5, 6]),
        ("value,reason,until", [4, 5, 6]),
        ("value,cause,expires_at", [3, 4, 5, 6]),
        ("card,cause,expires_at", []),
        ("value,value,expires_at", []),
    ],
)
def test_a_wrong_column_hides_no_row(tmp_path: Path, header: str, lines: list[int]) -> None:
    content = f"{header}\na,x,\nb,x,soon\n{PAN},x,\na,x,\nc,x\n"
    column, *rows = complaints(tmp_path, content, Given("ann", NOW))
    assert "column" in column
    assert [row.partition(":")[0] for row in rows] == [f"line {number}" for number in lines]


def test_values_of_a_command_are_checked_as_those_of_a_file() -> None:
    assert [*from_values(["a", "b"], GIVEN)] == ["a", "b"]
    with pytest.raises(ConfigError) as raised:
        from_values(["a", "a", " b", PAN], Given("ann", NOW, ""))
    assert len(raised.value.problems) == 4
    assert PAN not in str(raised.value)


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("30d", NOW + timedelta(days=30)),
        ("2026-12-31", datetime(2026, 12, 31, tzinfo=UTC)),
        ("2026-12-31T18:00:00Z", datetime(2026, 12, 31, 18, tzinfo=UTC)),
        ("2026-12-31T18:00+02:00", datetime(2026, 12, 31, 16, tzinfo=UTC)),
    ],
)
def test_an_expiry_is_a_time_from_now_on_a_day_or_a_time_with_its_zone(text: str, moment: datetime) -> None:
    assert expiry_of(text, NOW) == moment


@pytest.mark.parametrize("text", ["", "soon", "30", "-1d", "0s", "9999999d", "2026-03-01T12:00:00Z", "2026-13-01"])
def test_what_is_no_moment_to_come_is_no_expiry(text: str) -> None:
    with pytest.raises(ValueError, match=r"no expiry|over already"):
        expiry_of(text, NOW)
