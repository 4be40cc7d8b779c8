"""`quix_normalise.py START.json`: raw JSON records become canonical Avro events, card numbers become keyed tokens.

A record that is broken ends the application, for want of a dead-letter topic.
"""

from typing import Any

from quix_app import application
from quixstreams.models import Serializer
from records import NAME, ORDER, encoded_event, normalised


class Avro(Serializer):  # type: ignore[misc]  # Quix Streams is not in this environment
    """Framed Avro."""

    def __call__(self, value: dict[str, Any], ctx: Any) -> bytes:
        return encoded_event(value)


def card(event: dict[str, Any]) -> str:
    """The key of an event."""
    return str(event["card_id"])


def main() -> None:
    app = application(f"{NAME}-normalise")
    source = app.topic(ORDER["raw"], key_deserializer="bytes", value_deserializer="bytes")
    sink = app.topic(ORDER["input"], key_serializer="str", value_serializer=Avro())
    app.dataframe(source).apply(normalised).to_topic(sink, key=card)
    app.run()


main()
