"""Each problem of a value is said once, and a value is never quoted."""

from typing import Annotated

import pytest
from pydantic import AfterValidator, BaseModel, Field, ValidationError

from lozenge import validation


def _refuse(text: str) -> str:
    raise ValueError("it is refused")


class Given(BaseModel):
    texts: Annotated[tuple[Annotated[str, AfterValidator(_refuse)], ...], Field(min_length=1)]
    name: Annotated[str, Field(min_length=1)] = "n"


@pytest.mark.parametrize(
    ("given", "problems"),
    [
        ({"texts": ["secret"]}, [("texts.0", "it is refused")]),
        ({"texts": []}, [("texts", "Tuple should have at least 1 item after validation, not 0")]),
        (
            {"texts": ["a", "b"], "name": ""},
            [
                ("texts.0", "it is refused"),
                ("texts.1", "it is refused"),
                ("name", "String should have at least 1 character"),
            ],
        ),
    ],
)
def test_each_problem_is_there_once(given: dict[str, object], problems: list[tuple[str, str]]) -> None:
    with pytest.raises(ValidationError) as refused:
        Given.model_validate(given)
    found = validation.problems(refused.value)
    assert [(".".join(map(str, each["loc"])), each["msg"]) for each in found] == problems
    assert not any("input" in each for each in found)
