"""JSON as stores of caches keep it: which texts are the same value to all of them."""

import json
from decimal import Decimal
from hashlib import blake2b
from typing import Any

import msgspec

_NUL = "\\u0000"
_NUMBER = "\0"
"""Begins a number in what is compared; no text has it there."""


def without_nul(value: str) -> str:
    """JSON without the character NUL, which `jsonb` refuses; it becomes the replacement character."""
    if _NUL not in value:
        return value
    return msgspec.json.encode(_replaced(msgspec.json.decode(value))).decode()


def digest(value: str) -> bytes:
    """16 bytes that are equal for texts of one value, whatever the order of names, spaces and forms of numbers."""
    parsed = json.loads(without_nul(value), parse_float=_number, parse_int=_number)
    return blake2b(json.dumps(parsed, sort_keys=True).encode(), digest_size=16).digest()


def _number(text: str) -> str:
    sign, digits, exponent = Decimal(text).as_tuple()
    significant = "".join(map(str, digits)).lstrip("0")
    shortest = significant.rstrip("0")
    if not shortest:
        return f"{_NUMBER}0"
    return f"{_NUMBER}{'-' * sign}{shortest}E{int(exponent) + len(significant) - len(shortest)}"


def _replaced(value: Any) -> Any:
    if isinstance(value, str):
        return value.replace("\0", "\ufffd")
    if isinstance(value, dict):
        return {_replaced(name): _replaced(each) for name, each in value.items()}
    return [_replaced(each) for each in value] if isinstance(value, list) else value
