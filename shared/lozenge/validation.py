"""What pydantic found wrong with values, each problem once and in words for a person."""

import re
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

_LIMITS = {
    "greater_than": "more than",
    "greater_than_equal": "at least",
    "less_than": "less than",
    "less_than_equal": "at most",
}
_KINDS = {
    "bool": "true or false",
    "decimal": "a number",
    "finite": "a finite number",
    "float": "a number",
    "int": "a whole number",
    "string": "a text",
}
"""What a value must be, by the word before the _ in pydantic's name of the problem."""
_TYPES = re.compile(rf"({'|'.join(_KINDS)})_(type|sub_type|parsing|number|from_float)")
_PREFIX = re.compile(r"(?:Value error|Assertion failed), ")
_DEMAND = re.compile(r"[A-Z]\w*(?: input)? should (?=be |have |match )")


def problems(error: ValidationError) -> list[ErrorDetails]:
    """Place (`loc`), kind (`type`) and sentence (`msg`) of each problem, without the values, which may be secret.

    A list whose only element is wrong counts as too short for pydantic too. That is no problem of its own.
    """
    found = error.errors(include_url=False, include_input=False)
    places = [each["loc"] for each in found]
    own = [each for each in found if each["type"] != "too_short" or not _is_within(places, each["loc"])]
    return [ErrorDetails(**{**each, "msg": _sentence(each)}) for each in own]


def sentences(error: ValidationError) -> list[str]:
    """The same as `<place>: <sentence>`."""
    return [f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in problems(error)]


def problem_of(error: Exception) -> str:
    """What an error says on one line; of pydantic's, without the values, which may be secret."""
    said = "; ".join(sentences(error)) if isinstance(error, ValidationError) else str(error)
    return " ".join(said.split())


def _sentence(problem: ErrorDetails) -> str:
    about = problem.get("ctx", {})
    match problem["type"]:
        case "missing":
            return "it is missing"
        case "extra_forbidden":
            return "there is no such name here"
        case "union_tag_invalid":
            return f"there is no {_tag_name(problem)} {about['tag']!r}; there are {about['expected_tags']}"
        case "union_tag_not_found":
            return f"it has no {_tag_name(problem)}"
        case "timezone_aware":
            return "it has no time zone"
        case "list_type" | "tuple_type":
            return "it must be a list"
        case kind if kind in _LIMITS:
            return f"it must be {_LIMITS[kind]} {next(iter(about.values()))}"
        case kind if found := _TYPES.fullmatch(kind):
            return f"it must be {_KINDS[found[1]]}"
    said = problem["msg"].replace(" after validation", "")
    return _DEMAND.sub("it must ", _PREFIX.sub("", said, count=1), count=1)


def _tag_name(problem: ErrorDetails) -> str:
    """The name that says which of several things a table is."""
    return str(problem["ctx"]["discriminator"]).strip("'")


def _is_within(places: list[tuple[Any, ...]], outer: tuple[Any, ...]) -> bool:
    return any(len(place) > len(outer) and place[: len(outer)] == outer for place in places)
