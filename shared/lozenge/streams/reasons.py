"""Why a raw record becomes no event: every kind of reason, with its sentence for people.

A reason is `<kind>:<field>`, or a bare kind where it concerns the whole record. A dead letter has all of its reasons,
joined by commas: `missing:country, type:amount`.
"""

from collections.abc import Mapping

OF_A_RECORD: Mapping[str, str] = {
    "tombstone": "the record has no value, as a deletion in a compacted topic has none",
    "empty": "the value of the record has no bytes",
    "framed": "the value begins with a zero byte, as records of a schema registry do, so it is no JSON",
    "invalid-utf8": "the value is not UTF-8",
    "lone-surrogate": "a text has half of a surrogate pair, which is no character",
    "invalid-json": "the value is no JSON object: its JSON is broken, or it is an array, a text, a number or null",
}
"""Of stage decode, and then the only reason."""
OF_A_FIELD: Mapping[str, str] = {
    "missing": "the record lacks what it is made of, or has null or a blank text there",
    "type": "the record has another type of JSON there, such as an object in place of a text",
    "format": "the value has not the form that the mapping or the schema requires",
    "unknown": "the code or the word is in no table of the mapping or of the standard",
    "digits": "the number has more digits before the point than the field can carry",
    "decimals": "the number has more decimals than the field or the currency has",
    "kind": "the mapping knows this value neither as a payment nor as a reversal",
    "pan": "the text holds a card number, which no event may copy",
    "zone": "the zone lacks this local time in spring, or has it twice in autumn and the mapping refuses that",
    "future": "the time is later than the Kafka timestamp of the raw record by more than the stream allows",
    "range": "the time is before 1980: a clock that was never set, or an epoch in another unit",
}
CLOCK = "range:raw.timestamp"
"""The reason for a record whose Kafka timestamp says nothing about when it was written."""
_CLOCK = "the Kafka timestamp is not of the years 2000 to 2199: its producer counts in another unit than milliseconds"


def sentence(reason: str) -> str:
    """What a reason means, as in `country: the record lacks it ...`; the reason itself where nobody knows it."""
    if reason == CLOCK:
        return _CLOCK
    kind, _, field = reason.partition(":")
    meaning = (OF_A_FIELD if field else OF_A_RECORD).get(kind)
    return reason if meaning is None else f"{field}: {meaning}" if field else meaning
