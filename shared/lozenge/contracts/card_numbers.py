"""Card numbers within text: without them, and whether there are any. One rule for every stage and every view.

A card number has 13 to 19 digits, in a row or in the groups in which cards print them, and its last digit checks the
others (Luhn, ISO/IEC 7812-1). None begins with 0. With 1 begin only those of airlines, which have 15 digits: so a Unix
time in milliseconds, microseconds or nanoseconds is none. Of other numbers of such a length one in ten fits by chance.
Identifiers contain none: 24 or more hexadecimal digits, such as the token of a card, UUIDs, and W3C trace contexts.
"""

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import Column

FEWEST_DIGITS = 13
FIRST_SHOWN, LAST_SHOWN = 6, 4
"""Digits that a masked number keeps; PCI DSS 3.4.1 allows no more of them to be displayed."""

# The same in Python and in Java. Each is searched for at every position: two may overlap, and one of them be none.
_BETWEEN = "[ \u00a0\u2009\u202f\u2010-\u2015./_-]{1,3}"
_GROUPED = ("4 4 4 4", "4 4 4 4 1", "4 4 4 4 2", "4 4 4 4 3", "4 6 5", "4 6 4", "4 3 3 3", "8 8", "6 13")
_IN_A_ROW = "[2-9][0-9]{12,18}|1[0-9]{14}"
_FIRST_OF_GROUPS = "(?=[2-9]|1[0-9]{3}" + _BETWEEN + "[0-9]{6}" + _BETWEEN + "[0-9]{5}(?![0-9]))"


def _groups(sizes: str) -> str:
    return _FIRST_OF_GROUPS + _BETWEEN.join(f"[0-9]{{{size}}}" for size in sizes.split())


PATTERNS = tuple(f"(?<![0-9])(?=({each})(?![0-9]))" for each in (_IN_A_ROW, *map(_groups, _GROUPED)))
_ENOUGH_DIGITS = f"[0-9](?:{_BETWEEN.replace('1,', '0,')}[0-9]){{12}}"
_HEX = "[0-9a-fA-F]"
# One UUID in 20,000 has a number between its hyphens that would pass for a card's, and an id must stay as it is.
_UUID = f"{_HEX}{{8}}(?:-{_HEX}{{4}}){{3}}-{_HEX}{{12}}"
_TRACEPARENT = f"{_HEX}{{2}}-{_HEX}{{32}}-{_HEX}{{16}}-{_HEX}{{2}}"
_IDENTIFIER = f"(?<![0-9A-Za-z])(?:{_UUID}|{_TRACEPARENT}|{_HEX}{{24,}})(?![0-9A-Za-z])"
_DOUBLED = (0, 2, 4, 6, 8, 1, 3, 5, 7, 9)


def masked(text: str) -> str:
    """`text` with asterisks for all digits of each card number but the first 6 and the last 4; as long as it was."""
    if not re.search(_ENOUGH_DIGITS, text):
        return text
    hidden = {at for found in positions(text) for at in found[FIRST_SHOWN:-LAST_SHOWN]}
    return "".join("*" if at in hidden else character for at, character in enumerate(text))


def has_card_number(text: str) -> bool:
    """Whether there is a card number in `text`."""
    return next(positions(text), None) is not None


def positions(text: str) -> Iterator[list[int]]:
    """Of each card number the positions of its digits."""
    identifiers = [found.span() for found in re.finditer(_IDENTIFIER, text)]
    gaps = pairwise([0, *(at for span in identifiers for at in span), len(text)])
    for begin, end in list(gaps)[::2]:
        for pattern in PATTERNS:
            for found in re.finditer(pattern, text[begin:end]):
                digits = [begin + at for at in range(*found.span(1)) if text[begin + at].isdigit()]
                if _checks([int(text[at]) for at in digits]):
                    yield digits


def with_check_digit(digits: str) -> str:
    """The card number that begins with `digits`, all but its last one."""
    return next(found for last in "0123456789" if _checks([*map(int, found := digits + last)]))


def has_card_number_column(text: "Column") -> "Column":
    """`has_card_number` as a Spark expression over a string column; boolean, and false where it is null."""
    from pyspark.sql import functions as F

    return F.when(_possible(text), F.exists(_candidates(text), _fits)).otherwise(F.lit(False))


def masked_column(text: "Column") -> "Column":
    """`masked` as a Spark expression over a string column; null where it is null.

    A text that holds the digits of a card number a second time, where they are none, has them masked there too. Of two
    that overlap the first is masked.
    """
    from pyspark.sql import functions as F

    parts = f"^((?:[0-9][^0-9]*){{{FIRST_SHOWN}}})(.*?)((?:[^0-9]*[0-9]){{{LAST_SHOWN}}})$"

    def hidden(number: "Column") -> "Column":
        begin, middle, end = (F.regexp_extract(number, parts, part) for part in (1, 2, 3))
        return F.concat(begin, F.regexp_replace(middle, "[0-9]", "*"), end)

    found = F.filter(_candidates(text), _fits)
    result = F.aggregate(found, text, lambda left, number: F.replace(left, number, hidden(number)))
    return F.when(_possible(text), result).otherwise(text)


def _possible(text: "Column") -> "Column":
    from pyspark.sql import functions as F

    return (F.length(text) >= FEWEST_DIGITS) & text.rlike(_ENOUGH_DIGITS)


def _candidates(text: "Column") -> "Column":
    from pyspark.sql import functions as F

    others = F.regexp_replace(text, _IDENTIFIER, "#")
    return F.flatten(F.array(*(F.regexp_extract_all(others, F.lit(each), F.lit(1)) for each in PATTERNS)))


def _fits(number: "Column") -> "Column":
    from pyspark.sql import functions as F

    return F.call_function("luhn_check", F.regexp_replace(number, "[^0-9]", ""))


def _checks(digits: list[int]) -> bool:
    """Luhn: each second digit from the right is doubled and its digits are added; the sum ends with 0."""
    return (sum(digits[-1::-2]) + sum(_DOUBLED[digit] for digit in digits[-2::-2])) % 10 == 0
