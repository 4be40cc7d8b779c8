"""Texts for people: whether one shows anything, and its beginning if it is too long for its reader."""

import re
import unicodedata
from collections.abc import Callable

_FILLERS = "\u115f\u1160\u2800\u3164\uffa0"
"""Characters of words and symbols that show nothing: the fillers of Hangul, and the empty pattern of Braille."""
VISIBLE = rf"[^\p{{Z}}\p{{Cc}}\p{{Cf}}{_FILLERS}]"
"""Java's expression for a visible character, as `is_blank` has it."""
ELLIPSIS = "..."
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
_JOINER = "\u200d"
_SKIN_TONES = "\U0001f3fb\U0001f3fc\U0001f3fd\U0001f3fe\U0001f3ff"


def is_blank(text: str) -> bool:
    """Whether `text` shows nothing: it is empty, or has only spaces, control and format characters, or fillers."""
    return not any(map(_is_visible, text))


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
