"""Records of a draft without the card numbers that real ones have, for files that others read."""

from lozenge.contracts.card_numbers import positions, with_check_digit

_MADE_UP = "40000000"


def without_cards(texts: list[str]) -> list[str]:
    """The records with each card number replaced by one that is made up, as long as it was.

    An equal number has an equal replacement. A number of JSON stays one.
    """
    made_up: dict[str, str] = {}
    return [_safe(text, made_up) for text in texts]


def _safe(text: str, made_up: dict[str, str]) -> str:
    characters, replaced = list(text), set[int]()
    for found in positions(text):
        if not replaced & {*found}:
            card = "".join(text[at] for at in found)
            made_up.setdefault(card, _card(len(made_up), len(card)))
            for at, digit in zip(found, made_up[card], strict=True):
                characters[at] = digit
            replaced |= {*found}
    return "".join(characters)


def _card(number: int, length: int) -> str:
    return with_check_digit(_MADE_UP + str(number).zfill(length - len(_MADE_UP) - 1))
