"""Which changes of a fold's state a new release can adopt, and what it says about the others."""

from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, Literal

import msgspec
import pytest

from lozenge.detector.fold import Fold, State
from lozenge.detector.state_schema import refusal, shape

HOUR = timedelta(hours=1)


class Charge(State):
    at: datetime
    amount: Decimal


class Seen(State):
    at: datetime | None = None
    charges: list[Charge] = []  # noqa: RUF012 - a struct's default, copied for each instance
    counts: dict[str, int] = {}  # noqa: RUF012


def shaped(state: Any, by: tuple[str, ...] = ("card_id",), expires: timedelta = HOUR) -> dict[str, Any]:
    return shape(Fold(events=None, by=by, state=state, step=lambda *_: (), expires=expires))  # type: ignore[arg-type]


def changed(**fields: Any) -> str | None:
    """The refusal of `Seen` with some fields otherwise, each (type, default), (type,) or None to drop it."""
    own: dict[str, Any] = {
        "at": (datetime | None, None),
        "charges": (list[Charge], []),
        "counts": (dict[str, int], {}),
    }
    wanted = [(name, *field) for name, field in (own | fields).items() if field is not None]
    return refusal(shaped(Seen), shaped(msgspec.defstruct("Seen", wanted, bases=(State,), kw_only=True)))


def test_a_shape_holds_the_key_the_expiry_and_every_field() -> None:
    assert shaped(Seen, ("card_id", "merchant_id")) == {
        "by": ["card_id", "merchant_id"],
        "expires": "1h",
        "fields": {
            "at": ["datetime", "none"],
            "charges": {"items": {"fields": {"at": "datetime", "amount": "decimal"}, "required": ["amount", "at"]}},
            "counts": {"keys": "str", "values": "int"},
        },
        "required": [],
    }


def test_a_shape_survives_as_json() -> None:
    assert msgspec.json.decode(msgspec.json.encode(shaped(Seen))) == shaped(Seen)


def test_an_equal_state_is_kept() -> None:
    assert changed() is None
    assert refusal(shaped(Seen), shaped(Seen, expires=timedelta(days=1))) is None


def test_fields_may_go_and_come_with_a_default() -> None:
    assert changed(counts=None, emitted=(bool, False)) is None


def test_a_field_may_take_more_than_before_but_not_less() -> None:
    assert changed(at=(datetime | int | None, None)) is None
    assert changed(at=(datetime, datetime.min)) == "at was datetime or none and is now datetime"


@pytest.mark.parametrize(
    ("field", "said"),
    [
        ({"at": (str | None, None)}, "at was datetime or none and is now str or none"),
        ({"counts": (dict[str, str], {})}, "counts[values] was int and is now str"),
        ({"counts": (list[int], [])}, "counts was dictionary and is now list"),
        ({"charges": (list[Decimal], [])}, "charges[items] was a nested state and is now decimal"),
        ({"counts": (Literal["a", "b"], "a")}, "counts was dictionary and is now one of a, b"),
    ],
)
def test_a_changed_type_is_refused_by_name(field: dict[str, Any], said: str) -> None:
    assert changed(**field) == said


def test_a_new_field_without_a_default_is_refused_wherever_it_is() -> None:
    assert changed(emitted=(bool,)) == "emitted has no default now, and what is stored may lack it"

    class Dear(Charge):
        merchant: str

    assert changed(charges=(list[Dear], [])) == (
        "charges[items].merchant has no default now, and what is stored may lack it"
    )

    class Cheap(Charge):
        merchant: str = ""

    assert changed(charges=(list[Cheap], [])) is None


def test_every_reason_is_reported() -> None:
    assert (changed(at=(int, 0), emitted=(bool,)) or "").count(";") == 1


@pytest.mark.parametrize("by", [("merchant_id",), ("card_id", "merchant_id")])
def test_another_key_is_refused(by: tuple[str, ...]) -> None:
    said = refusal(shaped(Seen), shaped(Seen, by))
    assert said == f"its keys were made of card_id and are now made of {', '.join(by)}"
