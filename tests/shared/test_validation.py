"""Each problem of a value is said once, and a value is never quoted."""

from datetime import datetime
from decimal import Decimal
from typing import Annotated, Any, Literal

import pytest
from pydantic import AfterValidator, AwareDatetime, BaseModel, Field, TypeAdapter, ValidationError

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
        ({"texts": []}, [("texts", "it must have at least 1 item, not 0")]),
        (
            {"texts": ["a", "b"], "name": ""},
            [
                ("texts.0", "it is refused"),
                ("texts.1", "it is refused"),
                ("name", "it must have at least 1 character"),
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


@pytest.mark.parametrize(
    ("kind", "given", "said"),
    [
        (int, "many", "it must be a whole number"),
        (int, 1.5, "it must be a whole number"),
        (Decimal, "much", "it must be a number"),
        (float, "much", "it must be a number"),
        (bool, "maybe", "it must be true or false"),
        (str, 1, "it must be a text"),
        (list[int], "1", "it must be a list"),
        (Literal["own", "shared"], "maybe", "it must be 'own' or 'shared'"),
        (Annotated[int, Field(ge=1)], 0, "it must be at least 1"),
        (Annotated[int, Field(lt=5)], 5, "it must be less than 5"),
        (Annotated[Decimal, Field(decimal_places=2)], "0.123", "it must have no more than 2 decimal places"),
        (AwareDatetime, datetime(2026, 1, 1), "it has no time zone"),
    ],
)
def test_a_wrong_value_is_named_in_words_for_a_person(kind: Any, given: object, said: str) -> None:
    with pytest.raises(ValidationError) as refused:
        TypeAdapter(kind).validate_python(given)
    assert [each["msg"] for each in validation.problems(refused.value)] == [said]
    assert validation.problem_of(refused.value).endswith(said)
