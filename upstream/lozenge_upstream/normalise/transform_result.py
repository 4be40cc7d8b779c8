"""What a transform looks at and makes: a row of texts, and a value with the kind of fault where there is none."""

from collections.abc import Callable
from dataclasses import dataclass

from pyspark.sql import Column
from pyspark.sql import functions as F

# No identifier, code or amount begins with a bracket or reads true or false: such a text is JSON of another type.
OTHER_TYPE = r"^[\[{]|^(true|false)$"
_SCALED = r"[0-9]{1,30}((\.[0-9]{1,18})?[eE]\+?[0-9]{1,2}|(\.[0-9]{1,10})?[eE]-0?[0-8])"
_EXPONENT = rf"^[+-]?({_SCALED}|0(\.0{{1,18}})?[eE]-[0-9]{{1,2}})$"
"""A number with an exponent of which a decimal with 18 places holds every digit."""


@dataclass(frozen=True, slots=True)
class Row:
    """What a transform may look at: nothing that is not in the raw record or the settings."""

    text: Callable[[str], Column]
    """The trimmed text of a raw field; null where it is absent, empty where it is blank."""
    latest: Column
    """The latest time that this record may report."""
    minor_digits: Column
    """Decimals that the event's currency has; null where the currency is unknown."""
    token_key: bytes


@dataclass(frozen=True, slots=True)
class Made:
    """A canonical value and, where it is refused, the kind of fault (null: another field has the reason).

    It is refused where it is null or `bound`, asked of the finished value, says false.
    """

    value: Column
    fault: Column
    bound: Callable[[Column], Column] | None = None

    def accepts(self, value: Column) -> Column:
        """Whether the finished value holds; never null."""
        good = value.isNotNull()
        return good & self.bound(value) if self.bound else good


def fault(text: Column, otherwise: Column | str) -> Column:
    """The kind of fault of a `text` that was refused: of another JSON type, or `otherwise`."""
    kind = F.lit(otherwise) if isinstance(otherwise, str) else otherwise
    return F.when(text.rlike(OTHER_TYPE), "type").otherwise(kind)


def plain(text: Column) -> Column:
    """A number without its exponent, `100` for `1E+2`; any other text as it is."""
    digits = F.regexp_replace(text.try_cast("decimal(38,18)").cast("string"), F.lit(r"\.?0+$"), F.lit(""))
    return F.coalesce(F.when(text.rlike(_EXPONENT), digits), text)
