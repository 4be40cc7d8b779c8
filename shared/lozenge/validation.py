"""What pydantic found wrong with values, each problem once."""

from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails


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
    return problem["msg"].removeprefix("Value error, ")


def _tag_name(problem: ErrorDetails) -> str:
    """The name that says which of several things a table is."""
    return str(problem["ctx"]["discriminator"]).strip("'")


def _is_within(places: list[tuple[Any, ...]], outer: tuple[Any, ...]) -> bool:
    return any(len(place) > len(outer) and place[: len(outer)] == outer for place in places)
