"""Texts for people: without what only machines may see, whether one shows anything, and its beginning if it is long.

`shown` and `shown_data` are the one way of every view, page, message and error: terminal, HTTP API, notifications.
"""

import re
import unicodedata
from collections.abc import Callable
from typing import Annotated, Any

from pydantic import AfterValidator

from lozenge.contracts.card_numbers import masked

_FILLERS = "\u115f\u1160\u2800\u3164\uffa0"
"""Characters of words and symbols that show nothing: the fillers of Hangul, and the empty pattern of Braille."""
VISIBLE = rf"[^\p{{Z}}\p{{Cc}}\p{{Cf}}{_FILLERS}]"
"""Java's expression for a visible character, as `is_blank` has it."""
ELLIPSIS = "..."
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
_JOINER = "\u200d"
_LOGIN = re.compile(r"(?<=://)[^\s/@]+@")
_BEARER = re.compile(r"(?<=\bBearer )[A-Za-z0-9._~+/=-]{16,}")
_SECRET_NAME = re.compile(
    r"(?:.*[-_.])?(?:authorization|cookie|passwd|password|secret|api[-_]?key|private[-_]?key|cv[cv]2?|pin"
    r"|(?:access|auth|refresh)[-_]?token)",
    re.IGNORECASE,
)
HIDDEN = "***"
_SKIN_TONES = "\U0001f3fb\U0001f3fc\U0001f3fd\U0001f3fe\U0001f3ff"


def shown(text: str) -> str:
    """`text` without card numbers, logins in addresses and bearer tokens; asterisks are in their place."""
    return masked(_BEARER.sub(HIDDEN, _LOGIN.sub(f"{HIDDEN}@", text)))


def shown_data(value: Any) -> Any:
    """The same data with `shown` texts and names, and without the values of names such as `password`.

    A whole number that is a card number becomes a text; the digits of a fraction are none.
    """
    if isinstance(value, dict):
        return {_name(name): _hidden(name, part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [shown_data(part) for part in value]
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return value
    if isinstance(value, str):
        return shown(value)
    if isinstance(value, float) and not value.is_integer():
        return value
    return text if "*" in (text := masked(str(value))) else value


def _name(name: Any) -> Any:
    return shown(name) if isinstance(name, str) else name


def _hidden(name: Any, value: Any) -> Any:
    secret = isinstance(name, str) and _SECRET_NAME.fullmatch(name) is not None
    return HIDDEN if secret and value and isinstance(value, str | int | float) else shown_data(value)


def is_blank(text: str) -> bool:
    """Whether `text` shows nothing: it is empty, or has only spaces, control and format characters, or fillers."""
    return not any(map(_is_visible, text))


def visible(text: str) -> str:
    """The text; raises ValueError if it shows nothing."""
    if is_blank(text):
        raise ValueError("it shows nothing")
    return text


VisibleText = Annotated[str, AfterValidator(visible)]
"""A text of a declaration or a request that shows something."""


def readable(text: str) -> str:
    """`text` with U+FFFD for each control character but tabs and ends of lines: receivers and databases refuse them."""
    return _CONTROL.sub("\ufffd", text)


def shortened(text: str, most: int, size: Callable[[str], int] = len) -> str:
    """`text`, or as much of its beginning as fits, and "...": at most `most` by `size`.

    A character is never divided from its accents, and no joined emoji is divided. `size` must not decrease as a text
    grows. A `most` below the size of "..." gives "...".
    """
    if size(text) <= most:
        return text
    fits, exceeds = 0, len(text)
    while exceeds - fits > 1:
        middle = (fits + exceeds) // 2
        fits, exceeds = (middle, exceeds) if size(text[:middle] + ELLIPSIS) <= most else (fits, middle)
    while fits and (_continues(text[fits]) or text[fits - 1] == _JOINER):
        fits -= 1
    return text[:fits] + ELLIPSIS


def _is_visible(character: str) -> bool:
    category = unicodedata.category(character)
    return category[0] != "Z" and category not in ("Cc", "Cf") and character not in _FILLERS


def _continues(character: str) -> bool:
    return character == _JOINER or character in _SKIN_TONES or unicodedata.category(character)[0] == "M"
