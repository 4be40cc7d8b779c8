"""No card number of a real record comes into a file."""

import json

from lozenge.contracts.card_numbers import has_card_number
from lozenge_upstream.stream_draft.safe_records import card_names, without_card_names, without_cards

CARD, OTHER = "5105105105105100", "4111111111111111"


def test_an_equal_card_has_an_equal_replacement_that_is_a_card_too() -> None:
    one, two, three = without_cards([f'{{"pan": "{CARD}"}}', f'{{"pan": "{OTHER}", "was": {CARD}}}', '{"pan": "4111"}'])
    assert CARD not in one + two
    assert OTHER not in two
    first, second = json.loads(one), json.loads(two)
    assert first["pan"] == str(second["was"]) != second["pan"]
    assert has_card_number(first["pan"])
    assert isinstance(second["was"], int)
    assert three == '{"pan": "4111"}'


def test_a_card_within_a_text_or_in_groups_is_replaced_where_it_is() -> None:
    [safe] = without_cards([f'{{"note": "refund to 5105 1051 0510 5100, thanks", "id": 17, "again": "{CARD}"}}'])
    assert "5105" not in safe
    found = json.loads(safe)
    assert found["note"].startswith("refund to 4000 0000 ")
    assert found["note"].endswith(", thanks")
    assert found["again"] == found["note"][10:29].replace(" ", "")


def test_a_field_whose_name_has_a_card_number_is_skipped_wherever_it_is() -> None:
    record = {"a": [{CARD: 1, "b": 2}], f"of {OTHER}": {"c": 3}, "d": "5"}
    assert without_card_names(record) == {"a": [{"b": 2}], "d": "5"}
    assert list(card_names(record)) == ["of 411111******1111", "510510******5100"]
