"""Which texts are types of columns, as the formats of files name them; a column of any other type fails each file."""

import json
import re

TEXT = "text"
"""The type of each column of CSV."""
_UNIT = "(?:s|ms|us|ns)"
_ARROW = re.compile(
    r"null|bool|u?int(?:8|16|32|64)|halffloat|float|double|(?:large_)?(?:string|binary)|(?:string|binary)_view"
    r"|date32\[day\]|date64\[ms\]|time32\[(?:s|ms)\]|time64\[(?:us|ns)\]"
    rf"|timestamp\[{_UNIT}(?:, tz=[^\]]+)?\]|duration\[{_UNIT}\]"
    r"|decimal(?:32|64|128|256)\([0-9]+, -?[0-9]+\)|fixed_size_binary\[[0-9]+\]"
    r"|(?:month|day_time|month_day_nano)_interval"
    # the names of fields within may have any character
    r"|(?:(?:large_)?list(?:_view)?|fixed_size_list|struct|map|dictionary|extension)<.*>(?:\[[0-9]+\])?",
    re.DOTALL,
)
_AVRO = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)*")
"""A primitive type, or the name of one that the schema defines."""


def is_arrow_type(text: str) -> bool:
    """Whether Arrow writes a type like this, such as `decimal128(18, 2)`."""
    return _ARROW.fullmatch(text) is not None


def is_avro_type(text: str) -> bool:
    """Whether it is the name of a type of Avro, or the JSON of one."""
    if _AVRO.fullmatch(text):
        return True
    try:
        return isinstance(json.loads(text), dict | list)
    except ValueError:
        return False
