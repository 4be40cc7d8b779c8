"""What a transform looks at and makes: a row of texts, and a value with the kind of fault where there is none."""

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import reduce
from operator import and_
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F

from lozenge.streams.fields import Field
from lozenge_upstream.normalise.declarations import Condition, Place, Scopes, Slice, Step

MOST_MATCHED = 1_000
"""The pattern of a condition holds for no longer text: Java would match some patterns of it by recursion."""
# No identifier, code or amount begins with a bracket or reads true or false: such a text is JSON of another type.
OTHER_TYPE = r"^[\[{]|^(true|false)$"
_SCALED = r"[0-9]{1,30}((\.[0-9]{1,18})?[eE]\+?[0-9]{1,2}|(\.[0-9]{1,10})?[eE]-0?[0-8])"
_EXPONENT = rf"^[+-]?({_SCALED}|0(\.0{{1,18}})?[eE]-[0-9]{{1,2}})$"
"""A number with an exponent of which a decimal with 18 places holds every digit."""


def _nothing(*_: Any) -> Any:
    raise AssertionError("this row has no lists and maps")


@dataclass(frozen=True, slots=True)
class Row:
    """What a transform may look at: nothing that is not in the raw record or the settings."""

    text: Callable[[str], Column]
    """The trimmed text of a raw field; null where it is absent, empty where it is blank."""
    latest: Column
    """The latest time that this record may report."""
    token_key: bytes
    source: str
    """The name of the mapping, part of every `event_id`."""
    field: Field | None = None
    """The field that is made; None for one of the platform's."""
    name: str = ""
    """The field that is made, by the names that lead there."""
    tokens: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """The word with which each token begins, by the names that lead to it."""
    scopes: Scopes = ()
    """The fields of the records around the field that is made."""
    minor_digits: Mapping[Place, Column] = dataclasses.field(default_factory=dict)
    """The decimals that a currency has, by its field; null where the currency is unknown."""
    container: Callable[[str], Column] = _nothing
    """The array or the map of a raw list or object that is read as such; null where it is absent."""
    within: Callable[[str, Step, Column], "Row"] = _nothing
    """The same for an element of that list or object, by its path, the step to an element, and the element."""

    def has(self, paths: Iterable[str]) -> Column:
        """Whether none of these raw fields is absent, null or blank; never null."""
        return reduce(and_, (F.coalesce(self.text(path), F.lit("")) != "" for path in paths), F.lit(True))

    def part(self, wanted: Slice) -> Column:
        """The text of a raw field, or of the part of it that is wanted."""
        text = padded(self.text(wanted.path), wanted.pad)
        if wanted.start > 1:
            return F.trim(F.substring(text, wanted.start, wanted.length or 128))
        return text if wanted.length is None else F.left(text, F.lit(wanted.length))

    def holds(self, conditions: Iterable[Condition]) -> Column:
        """Whether all of the conditions hold; never null, and true without any."""
        return reduce(and_, map(self._holds, conditions), F.lit(True))

    def _holds(self, condition: Condition) -> Column:
        text = F.coalesce(self.part(condition), F.lit(""))
        if condition.values is not None:
            return text.isin(*condition.values)
        if condition.other_than is not None:
            return ~text.isin(*condition.other_than)
        if condition.pattern is not None:
            fits = text.rlike(f"^(?:{condition.pattern})$")
            return F.when(F.length(text) <= MOST_MATCHED, fits).otherwise(False)
        return (text == "") if condition.blank else (text != "")


@dataclass(frozen=True, slots=True)
class Made:
    """A canonical value and, where it is refused, the kind of fault (null: another field has the reason).

    It is refused where it is null or `bound`, asked of the finished value, says false. Where `absent` says true the
    record is declared to have none.
    """

    value: Column
    fault: Column
    bound: Callable[[Column], Column] | None = None
    absent: Column | None = None
    checked: Column | None = None
    """Of a value of several parts: a struct of the `value` and of its `problems`, texts in place of `fault`."""

    @property
    def whole(self) -> Column:
        """What is computed once for a record: the value, or the struct of the value and of its problems."""
        return self.value if self.checked is None else self.checked

    def value_of(self, whole: Column) -> Column:
        """The value in a column that `whole` made."""
        return whole if self.checked is None else whole["value"]

    def accepts(self, value: Column) -> Column:
        """Whether the finished value holds; never null."""
        good = value.isNotNull()
        return good & self.bound(value) if self.bound else good

    def settles(self, value: Column, present: Column, *, optional: bool, needed: Column | None = None) -> Column:
        """Whether an event may have the finished value, or none; never null.

        `present`: the raw fields that it needs are there. An `optional` one may lack them, unless it is `needed`.
        """
        good = self.accepts(value)
        if optional:
            good = good | ~(present if needed is None else present | needed)
        return good if self.absent is None else good | self.absent

    def problem(self, name: str, present: Column) -> Column:
        """Why it is refused, as `<kind>:<name>`; null where another field has the reason."""
        return F.concat(F.when(~present, "missing").otherwise(self.fault), F.lit(f":{name}"))


def let(value: Column, use: Callable[[Column], Column]) -> Column:
    """What `use` makes of `value`, which is computed once however often it is used.

    An expression is a tree: without this, one that uses another three times holds it three times, and ten such steps
    are more than Spark can analyse. It costs an array of one element, so it is for what few records need.
    """
    return F.get(F.transform(F.array(value), use), F.lit(0))


def fault(text: Column, otherwise: Column | str) -> Column:
    """The kind of fault of a `text` that was refused: of another JSON type, or `otherwise`."""
    kind = F.lit(otherwise) if isinstance(otherwise, str) else otherwise
    return F.when(text.rlike(OTHER_TYPE), "type").otherwise(kind)


def plain(text: Column) -> Column:
    """A number without its exponent, `100` for `1E+2`; any other text as it is."""
    digits = F.regexp_replace(text.try_cast("decimal(38,18)").cast("string"), F.lit(r"\.?0+$"), F.lit(""))
    return F.coalesce(F.when(text.rlike(_EXPONENT), digits), text)


def padded(text: Column, digits: int | None) -> Column:
    """With its leading zeros; a column of numbers with gaps comes as floats, `5411.0`, from data frames."""
    if digits is None:
        return text
    whole = F.regexp_replace(text, F.lit(r"\.0$"), F.lit(""))
    short = F.when(whole.rlike(f"^[0-9]{{1,{digits}}}$"), F.lpad(whole, digits, "0")).otherwise(text)
    # nearly every text has all of its digits, and a regular expression costs more than a look at both ends
    return F.when((F.length(text) == digits) & ~text.endswith(".0"), text).otherwise(short)
