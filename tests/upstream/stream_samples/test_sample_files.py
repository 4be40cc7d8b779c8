"""Everything that is wrong with the samples of a stream is named at once, with its file and its sample."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from lozenge_upstream.normalise.mapping_files import RefusedMapping
from lozenge_upstream.stream_samples.sample_files import read
from tests.streams import FOLDER, STREAMS
from tests.upstream.samples import ISO, JSON

GOOD = """
arrived = 2026-03-01T12:00:00Z

[[sample]]
name = "a payment"
record = '''
{"txn_id": "t-1"}
'''
event = { amount = "12.50" }
absent = ["account_id"]

[[sample]]
name = "a probe"
arrived = 2026-03-02T12:00:00Z
record = '{}'
dead_letter = "missing:merchant_id, type:amount"
"""


def problems(tmp_path: Path, text: str, source: str = "auth_json") -> list[str]:
    (tmp_path / f"{source}.toml").write_text(text, "utf-8")
    found, problems = read(tmp_path, [JSON, ISO])
    assert not (found and problems)
    return problems


def test_a_file_has_the_samples_of_one_source(tmp_path: Path) -> None:
    (tmp_path / "auth_json.toml").write_text(GOOD, "utf-8")
    [found], wrong = read(tmp_path, [JSON, ISO])
    assert (found.source, found.arrived, wrong) == ("auth_json", datetime(2026, 3, 1, 12, tzinfo=UTC), [])
    assert [sample.value for sample in found.samples] == [b'{"txn_id": "t-1"}', b"{}"]
    assert found.samples[1].arrived == datetime(2026, 3, 2, 12, tzinfo=UTC)


def test_a_stream_may_have_no_samples(tmp_path: Path) -> None:
    assert read(tmp_path / "samples", [JSON]) == ([], [])


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("arrived = 2026-03-01T12:00:00Z\n", "", "auth_json.toml: arrived: it is missing"),
        ("2026-03-01T12:00:00Z", "2026-03-01T12:00:00", "arrived: it has no time zone"),
        ('event = { amount = "12.50" }', "", "line 4: sample 1: a sample has one of event, dead_letter and skipped"),
        ('name = "a probe"', 'name = "a probe"\nskipped = "x"', "sample 2: a sample has one of event"),
        ("a probe", "a payment", "line 13: a payment: there is another sample of this name; rename one"),
        ("a probe", "A  payment", "A  payment: there is another sample of this name; rename one"),
        ('"a probe"', '" "', "line 13: sample 2.name: it is no name"),
        (
            'amount = "12.50"',
            'amount = "much"',
            'samples/auth_json.toml line 9: a payment: amount is a decimal, such as "12.50", and not',
        ),
        ('amount = "12.50"', 'sum = "12.50"', "a payment: an event of auth has no field sum; it has event_id"),
        ("account_id", "account", "a payment: an event of auth has no field account"),
        ('["account_id"]', '["amount"]', "a payment: amount is absent and in event at once"),
        ("type:amount", "strange:amount", "a probe: no dead letter has the reason 'strange:amount'"),
        ("dead_letter = ", "skipped = ", "a probe: the mapping skips no records as"),
        ("name = ", "title = ", "line 5: sample 1.title: there is no such name here"),
        ("[[sample]]", "[[sample", "not TOML"),
    ],
)
def test_what_is_wrong_is_named_with_its_place(old: str, new: str, problem: str, tmp_path: Path) -> None:
    assert old in GOOD
    found = problems(tmp_path, GOOD.replace(old, new, 1))
    assert any(problem in each for each in found), found


def test_a_name_is_there_once_in_all_samples_of_a_stream(tmp_path: Path) -> None:
    (tmp_path / "auth_iso8583.toml").write_text(GOOD, "utf-8")
    text = GOOD.replace("a probe", "another")
    (tmp_path / "auth_json.toml").write_text(text, "utf-8")
    assert read(tmp_path, [JSON, ISO])[1] == [
        "samples/auth_json.toml line 5: a payment: there is another sample of this name, in "
        "samples/auth_iso8583.toml; rename one"
    ]


def test_samples_of_a_refused_mapping_are_checked_as_far_as_it_can_be_read(tmp_path: Path) -> None:
    text = GOOD.replace('amount = "12.50"', "amount = true").replace("type:amount", "strange:amount")
    (tmp_path / "auth_json.toml").write_text(text, "utf-8")
    for readable, expected in ((JSON, ["a payment", "a probe"]), (None, ["a probe"])):
        found, wrong = read(tmp_path, [], [RefusedMapping("auth_json", "", ("x",), readable)])
        assert (found, [each.split(": ")[1] for each in wrong]) == ([], expected)


def test_samples_of_an_unknown_source_are_a_problem(tmp_path: Path) -> None:
    assert problems(tmp_path, GOOD, "wallet") == [
        "samples/wallet.toml: there is no mapping with the source wallet; there are auth_json, auth_iso8583"
    ]


def test_the_samples_of_the_project_are_right() -> None:
    auth = STREAMS.samples(STREAMS.get("auth"))
    assert auth == FOLDER / "auth" / "samples"
    found, wrong = read(auth, [JSON, ISO])
    assert ([each.source for each in found], wrong) == (["auth_iso8583", "auth_json"], [])
