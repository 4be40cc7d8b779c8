"""Dead letters in groups that a person can read."""

from datetime import UTC, datetime

import pytest

from lozenge.contracts.dead_letters import DeadLetter
from lozenge.streams.reasons import OF_A_RECORD
from lozenge_deploy.observe.dead_letter_report import kind_of, meanings, summaries

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


def dead_letter(message: str, stage: str = "detect") -> DeadLetter:
    return DeadLetter((0, 1), "rule", "t", (0, 1), stage, "DetectError", message, 1, "", NOW, b"k", b"v", [])


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("ValueError: event 7 of card_1f is late", "ValueError: event 8 of card_2e is late"),
        ("KeyError: 'm-1'", "KeyError: 'shop'"),
        ("no rate for 12.50 EUR on 2026-03-01", "no rate for 9.00 EUR on 2026-03-02"),
        ('value "a b" is wrong', 'value "c" is wrong'),
        (
            "ValueError: Müller is late (late.py line 31, in step)",
            "ValueError: Smith left (late.py line 31, in step)",
        ),
        ("[CAST_INVALID_INPUT] 'a' is no number (late.py line 9)", "[CAST_INVALID_INPUT] b (c) (late.py line 9)"),
        ("d8651e13-4000-5000-8000-000000000002 is poison", "a8651e13-4000-5000-8000-000000000003 is poison"),
    ],
)
def test_what_differs_only_in_its_values_is_one_group(one: str, other: str) -> None:
    [row] = summaries([dead_letter(one), dead_letter(other), dead_letter(one)], kind_of)
    assert (row["unresolved"], row["reason"]) == (3, f"detect: {one}")


def test_other_reasons_and_other_stages_are_other_groups() -> None:
    found = [dead_letter("missing:mcc"), dead_letter("missing:mcc", "normalise"), dead_letter("missing:country")]
    assert [row["unresolved"] for row in summaries(found, kind_of)] == [1, 1, 1]


def test_another_type_and_another_place_of_an_error_are_other_groups() -> None:
    first, *others = "ValueError: a (late.py line 31, in step)", "KeyError: a (late.py line 31, in step)"
    others += "ValueError: a (late.py line 32, in step)", "ValueError: a (other.py line 31, in step)"
    assert len(summaries(map(dead_letter, [first, first, *others]), kind_of)) == 4


def test_the_reasons_of_upstream_have_a_meaning_and_an_error_of_code_has_none() -> None:
    [meaning] = meanings(dead_letter("missing:mcc, type:amount", "normalise")).values()
    assert [part.split(":")[0] for part in meaning.split("; ")] == ["mcc", "amount"]
    assert meanings(dead_letter("empty", "decode")) == {"meaning": OF_A_RECORD["empty"]}
    assert meanings(dead_letter("ValueError: missing:mcc")) == {}


def test_the_reason_of_a_group_shows_no_card_number() -> None:
    [row] = summaries([dead_letter("no rate for 4000000000000002")], kind_of)
    assert row["reason"] == "detect: no rate for 400000******0002"
