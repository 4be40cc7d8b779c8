import pytest

from lozenge.errors import UsageError
from lozenge.protocol.data_subject import ERASED, SHORTEST, DataSubject

CARD = "card_4f1c09e2"
SUBJECT = DataSubject.checked("card", CARD)


@pytest.mark.parametrize("text", [CARD, f"card:{CARD}", f"({CARD})", f"{CARD}, {CARD}", f"a-{CARD}-b", f'["{CARD}"]'])
def test_a_text_that_has_the_word_names_it_and_loses_it(text: str) -> None:
    assert SUBJECT.is_in(text)
    left = SUBJECT.erased_from(text)
    assert CARD not in left
    assert left == text.replace(CARD, ERASED)


@pytest.mark.parametrize("text", ["", f"{CARD}0", f"x{CARD}", f"_{CARD}", f"{CARD}ü", CARD.upper()])
def test_another_word_that_has_it_as_a_part_does_not(text: str) -> None:
    assert not SUBJECT.is_in(text)
    assert SUBJECT.erased_from(text) == text


def test_data_is_searched_at_any_depth() -> None:
    data = {"a": [{CARD: 1}, (f"of {CARD}", b"x" + CARD.encode() + b"x")], "b": 1.5, "c": None}
    assert SUBJECT.is_in_data(data)
    left = SUBJECT.erased_from_data(data)
    assert left == {"a": [{ERASED: 1}, (f"of {ERASED}", None)], "b": 1.5, "c": None}
    assert not SUBJECT.is_in_data(left)
    assert not SUBJECT.is_in_data([1, 2.5, None, True])


def test_expressions_within_a_value_are_no_expressions() -> None:
    odd = DataSubject.checked("user", "a.b(c)*[d]")
    assert odd.is_in("a.b(c)*[d]!")
    assert not odd.is_in("aXb(c)*[d]")


@pytest.mark.parametrize("value", ["1" * (SHORTEST - 1), "", 'card_"12345', "card_\\12345", "card_\n12345"])
def test_a_value_that_other_words_may_contain_is_refused(value: str) -> None:
    with pytest.raises(UsageError, match="erasing a card"):
        DataSubject.checked("card", value)


def test_what_is_in_its_place_is_never_longer() -> None:
    assert len(ERASED) <= SHORTEST


def test_the_digest_is_of_key_and_value() -> None:
    digests = {DataSubject(key, value).digest for key in ("card", "account") for value in (CARD, f"{CARD}0")}
    assert len(digests) == 4
    assert all(CARD not in digest for digest in digests)
