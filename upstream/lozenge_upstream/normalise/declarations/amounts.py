"""Amounts: in major or minor units, and what says whether one is a payment."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from lozenge_upstream.normalise.declarations.raw_fields import Condition, Slice
from lozenge_upstream.normalise.declarations.transform import FromPath


class Sign(Slice):
    """The raw field that separates payments from reversals, and its values. A record with another one is refused."""

    plus: tuple[str, ...]
    minus: tuple[str, ...]

    @model_validator(mode="after")
    def _are_different(self) -> "Sign":
        if both := sorted({*self.plus} & {*self.minus}):
            raise ValueError(f"{', '.join(both)} cannot be payments and reversals at once")
        return self


class Credits(Slice):
    """The raw field, or its beginning, whose `values` say that the amount goes back: a refund."""

    values: Annotated[tuple[str, ...], Field(min_length=1)]


class Remaining(Slice):
    """What a reversal of a part leaves of the amount; absent, blank or 0 where the whole is reversed.

    Only where `when` holds does the raw field say that.
    """

    when: tuple[Condition, ...] = ()


class _Amount(FromPath):
    """With `sign` another field says whether it is a payment. `invert`: payments are written as negative amounts.

    `credits` turns the sign of refunds, and of their reversals. `currency` is the event's field with its currency;
    unset, that is the field named like this one, `settlement_currency` of `settlement_amount`, or else the only field
    of the stream with codes of currencies.
    """

    currency: str | None = None
    sign: Sign | None = None
    credits: Credits | None = None
    invert: bool = False

    @property
    def paths(self) -> tuple[str, ...]:
        return (*self.required, *((self.credits.path,) if self.credits else ()))

    @property
    def required(self) -> tuple[str, ...]:
        return (self.path, self.sign.path) if self.sign else (self.path,)


class Decimal(_Amount):
    """An amount in major units, as a JSON number or a string: `12.50`, or `1.25E+1` as Java prints it.

    `symbols` may stand on either side of the number, before or after its sign: `$-54.00`, `12.50 EUR`. `thousands`
    separates groups of digits, and `decimal_mark` the decimals. `accounting`: `(54.00)` and `54.00-` are negative.
    """

    transform: Literal["decimal"]
    symbols: tuple[Annotated[str, Field(pattern=r"^[^0-9+.,()\s-]{1,8}$")], ...] = ()
    thousands: Literal[",", ".", " ", "'"] | None = None
    decimal_mark: Literal[".", ","] = "."
    accounting: bool = False

    @model_validator(mode="after")
    def _marks_differ(self) -> "Decimal":
        if self.thousands == self.decimal_mark:
            raise ValueError(f"{self.thousands} cannot separate thousands and decimals at once")
        return self


class MinorUnits(_Amount):
    """An amount in minor units of the event's currency: `1250` is 12.50 EUR and 1250 JPY."""

    transform: Literal["minor_units"]
    remaining: Remaining | None = None

    @property
    def paths(self) -> tuple[str, ...]:
        rest = self.remaining
        return (*super().paths, *((rest.path, *(each.path for each in rest.when)) if rest else ()))
