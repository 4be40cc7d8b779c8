"""Records of a draft without the card numbers that real ones have, for files that others read."""

from collections.abc import Iterator
from typing import Any

from lozenge.contracts.card_numbers import has_card_number, positions, with_check_digit
from lozenge.contracts.display_text import shown

_MADE_UP = "40000000"


def without_cards(texts: list[str]) -> list[str]:
    """The records with each card number replaced by one that is made up, as long as it was.

    An equal number has an equal replacement. A number of JSON stays one.
    """
    made_up: dict[str, str] = {}
    return [_safe(text, made_up) for text in texts]


def without_card_names(value: Any) -> Any:
    """A raw value without the fields whose name has a card number: no path of a mapping may hold one."""
    if isinstance(value, dict):
        return {name: without_card_names(part) for name, part in value.items() if not has_card_number(name)}
    return [without_card_names(part) for part in value] if isinstance(value, list) else value


def card_names(value: Any) -> Iterator[str]:
    """Those names, with the number masked."""
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    if isinstance(value, dict):
        yield from (shown(name) for name in value if has_card_number(name))
    for part in parts:
        yield from card_names(part)


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
