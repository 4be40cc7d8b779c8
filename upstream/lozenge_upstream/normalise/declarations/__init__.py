"""What a mapping may declare: how each canonical field is made of raw ones. `transforms` has what they do."""

from lozenge_upstream.normalise.declarations.amounts import (
    Credits,
    Decimal,
    MinorUnits,
    Remaining,
    Sign,
)
from lozenge_upstream.normalise.declarations.numbers import Boolean, Number
from lozenge_upstream.normalise.declarations.raw_fields import (
    Condition,
    JavaPattern,
    JsonPath,
    Part,
    Skip,
    Slice,
    Step,
    any_element,
    steps,
)
from lozenge_upstream.normalise.declarations.text_fields import (
    IDENTITY_SEPARATOR,
    CardNumbers,
    Constant,
    Join,
    Reference,
    Text,
    Token,
)
from lozenge_upstream.normalise.declarations.times import (
    Local,
    TimestampEpoch,
    TimestampIso,
    TimestampMMDDhhmmss,
    TimestampParts,
    TimestampText,
)
from lozenge_upstream.normalise.declarations.transform import (
    Transform,
)
from lozenge_upstream.normalise.declarations.words import (
    Branch,
    CaseOf,
    Country,
    Currency,
    First,
    Lookup,
    WordTable,
)

__all__ = [
    "IDENTITY_SEPARATOR",
    "Boolean",
    "Branch",
    "CardNumbers",
    "CaseOf",
    "Condition",
    "Constant",
    "Country",
    "Credits",
    "Currency",
    "Decimal",
    "First",
    "JavaPattern",
    "Join",
    "JsonPath",
    "Local",
    "Lookup",
    "MinorUnits",
    "Number",
    "Part",
    "Reference",
    "Remaining",
    "Sign",
    "Skip",
    "Slice",
    "Step",
    "Text",
    "TimestampEpoch",
    "TimestampIso",
    "TimestampMMDDhhmmss",
    "TimestampParts",
    "TimestampText",
    "Token",
    "Transform",
    "WordTable",
    "any_element",
    "steps",
]
